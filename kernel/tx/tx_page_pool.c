// SPDX-License-Identifier: GPL-2.0
/*
 * Where packets that are sent are written, on each CPU: pages that are used again as soon as no skb has them any more, the first
 * such one of a few, so that they stay in the cache. What goes there is gso.c's.
 */
#include <linux/mm.h>
#include <linux/percpu.h>

#include "tx/tx.h"
#include "tx/tx_page_pool.h"
#include "core/transport/wire.h"

#define ROOM_ORDER	3
#define ROOMS		8	/* a CPU: 256 KB */
#define CRC_ALIGN	16

struct rooms {
	struct page_frag *now;	/* one of them, or NULL */
	struct page_frag room[ROOMS];
};

static DEFINE_PER_CPU(struct rooms, rooms);

static bool new_room(struct page_frag *pf, u32 len)
{
	u32 order = ROOM_ORDER;
	struct page *page;

	if (pf->page)
		put_page(pf->page);
	pf->page = NULL;
	page = alloc_pages(GFP_ATOMIC | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY, order);
	if (!page) {
		order = get_order(len);
		page = alloc_pages(GFP_ATOMIC | __GFP_COMP | __GFP_NOWARN, order);
	}
	if (!page)
		return false;
	pf->page = page;
	pf->offset = 0;
	pf->size = PAGE_SIZE << order;
	return true;
}

/*
 * Carry-less multiplication wants 16 bytes at a time, aligned; what is left over at either end is looked up in a table,
 * byte by byte. A full packet of any path MTU is a multiple of 16 long from BTH to ICRC, so it is enough that the first
 * packet's BTH ends on such a boundary.
 */
static u32 first_offset(u32 offset)
{
	return ALIGN(offset + ROAN_BTH_LEN, CRC_ALIGN) - ROAN_BTH_LEN;
}

/* Every skb that used it is gone. */
static bool is_free(const struct page_frag *pf)
{
	return pf->page && page_ref_count(pf->page) == 1;
}

/* Another room of @len bytes: a free one, or else the oldest is left to the skbs that have it. */
static struct page_frag *next_room(struct rooms *r, u32 len)
{
	struct page_frag *pf;

	for (pf = r->room; pf < r->room + ROOMS; pf++)
		if (!pf->page || (is_free(pf) && pf->size >= len))
			break;
	if (pf == r->room + ROOMS)
		pf = r->now && r->now + 1 < pf ? r->now + 1 : r->room;
	if (!(is_free(pf) && pf->size >= len) && !new_room(pf, len))
		return NULL;
	pf->offset = first_offset(0);
	r->now = pf;
	return pf;
}

struct page_frag *roan_room(u32 len, bool first)
{
	struct rooms *r = this_cpu_ptr(&rooms);
	struct page_frag *pf = r->now;

	if (!pf)
		return next_room(r, len + CRC_ALIGN);
	if (is_free(pf))
		pf->offset = 0;
	if (first)
		pf->offset = first_offset(pf->offset);
	if (pf->offset < pf->size && pf->size - pf->offset >= len)
		return pf;
	return next_room(r, len + CRC_ALIGN);
}

void roan_room_exit(void)
{
	struct page_frag *pf;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct rooms *r = per_cpu_ptr(&rooms, cpu);

		for (pf = r->room; pf < r->room + ROOMS; pf++)
			if (pf->page)
				put_page(pf->page);
		memset(r, 0, sizeof(*r));
	}
}
