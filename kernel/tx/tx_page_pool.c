// SPDX-License-Identifier: GPL-2.0
/*
 * Per-CPU pages into which packets are written for sending. A page is reused as soon as no skb references it. The
 * search starts at the first of a few pages, so that those in use stay in the cache. Does not decide what is written
 * there: gso.c does.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sizes.h>

#include "tx/tx.h"
#include "core/transport/wire.h"

#define FRAG_ORDER	get_order(SZ_32K)
#define FRAGS		8	/* pages of FRAG_ORDER per CPU: 256 KiB, if base pages have at most 32 KiB */
#define CRC_ALIGN	16

struct tx_pages {
	struct page_frag *cur;	/* the one in use, or NULL */
	struct page_frag frag[FRAGS];
};

static DEFINE_PER_CPU(struct tx_pages, tx_pages);

static bool tx_frag_alloc(struct page_frag *pf, u32 len)
{
	u32 order = FRAG_ORDER;
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
 * The CRC by carry-less multiplication takes 16 aligned bytes at a time, and the bytes left over at either end one by
 * one, by a table. A full packet of any path MTU has a multiple of 16 bytes from BTH to ICRC, so it is enough to align
 * the end of the first packet's BTH.
 */
static u32 tx_frag_offset(u32 offset)
{
	return ALIGN(offset + ROAN_BTH_LEN, CRC_ALIGN) - ROAN_BTH_LEN;
}

/* No skb references the page. */
static bool tx_frag_is_free(const struct page_frag *pf)
{
	return pf->page && page_ref_count(pf->page) == 1;
}

/*
 * Selects another page with @len bytes: an unused one, or else the next in turn is replaced. The skbs that reference
 * the replaced page keep it.
 */
static struct page_frag *tx_frag_next(struct tx_pages *r, u32 len)
{
	struct page_frag *pf;

	for (pf = r->frag; pf < r->frag + FRAGS; pf++)
		if (!pf->page || (tx_frag_is_free(pf) && pf->size >= len))
			break;
	if (pf == r->frag + FRAGS)
		pf = r->cur && r->cur + 1 < pf ? r->cur + 1 : r->frag;
	if (!(tx_frag_is_free(pf) && pf->size >= len) && !tx_frag_alloc(pf, len))
		return NULL;
	pf->offset = tx_frag_offset(0);
	r->cur = pf;
	return pf;
}

struct page_frag *roan_tx_page_get(u32 len, bool first)
{
	struct tx_pages *r = this_cpu_ptr(&tx_pages);
	struct page_frag *pf = r->cur;

	if (!pf)
		return tx_frag_next(r, len + CRC_ALIGN);
	if (tx_frag_is_free(pf))
		pf->offset = 0;
	if (first)
		pf->offset = tx_frag_offset(pf->offset);
	if (pf->offset < pf->size && pf->size - pf->offset >= len)
		return pf;
	return tx_frag_next(r, len + CRC_ALIGN);
}

void roan_tx_page_pool_exit(void)
{
	struct page_frag *pf;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct tx_pages *r = per_cpu_ptr(&tx_pages, cpu);

		for (pf = r->frag; pf < r->frag + FRAGS; pf++)
			if (pf->page)
				put_page(pf->page);
		memset(r, 0, sizeof(*r));
	}
}
