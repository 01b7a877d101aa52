/* SPDX-License-Identifier: GPL-2.0 */
/* Per-CPU memory that packets are written to (tx_page_pool.c). */
#ifndef ROAN_TX_PAGE_POOL_H
#define ROAN_TX_PAGE_POOL_H

#include <linux/mm_types_task.h>

/*
 * Returns a page with at least @len bytes at its offset, and more up to its size. A caller that uses them takes a
 * reference to the page and advances the offset; otherwise it changes neither. @first: the bytes need not continue what
 * was written last. NULL: no memory. Softirqs stay off until the bytes are written.
 */
struct page_frag *roan_tx_page_get(u32 len, bool first);

#endif /* ROAN_TX_PAGE_POOL_H */
