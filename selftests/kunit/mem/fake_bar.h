/* SPDX-License-Identifier: GPL-2.0 */
/*
 * I/O memory for tests. Under UML: an address range whose accessors use ordinary memory. Elsewhere: the frame buffer of
 * QEMU's VGA adapter.
 */
#ifndef ROAN_FAKE_BAR_H
#define ROAN_FAKE_BAR_H

#include <linux/types.h>

struct fake_bar {
	phys_addr_t start;
	u64 size;
	void *owner;
};

int fake_bar_get(struct fake_bar *bar);	/* -ENODEV: none on this machine. One user at a time */
void fake_bar_put(struct fake_bar *bar);	/* after all mappings are gone */

#endif /* ROAN_FAKE_BAR_H */
