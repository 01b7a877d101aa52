/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of this CPU's for packets to be written to (tx_page_pool.c). */
#ifndef ROAN_TX_PAGE_POOL_H
#define ROAN_TX_PAGE_POOL_H

#include <linux/mm_types_task.h>

/*
 * A place of @len bytes at the offset of what is returned, and behind it what is left up to its size. Who writes there takes a
 * reference to the page and moves the offset, or leaves both alone. @first: it need not continue what was written last. NULL: no
 * memory. Softirqs off, until it is written.
 */
struct page_frag *roan_tx_page_get(u32 len, bool first);

#endif /* ROAN_TX_PAGE_POOL_H */
