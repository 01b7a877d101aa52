/* SPDX-License-Identifier: GPL-2.0 */
/*
 * I/O memory for tests, where there is no device that has some to spare: under UML an address range whose accessors end
 * in ordinary memory, elsewhere the frame buffer of the VGA adapter that QEMU gives every machine.
 */
#ifndef ROAN_FAKE_BAR_H
#define ROAN_FAKE_BAR_H

#include <linux/types.h>

struct fake_bar {
	phys_addr_t start;
	u64 size;
	void *owner;
};

int fake_bar_get(struct fake_bar *bar);	/* -ENODEV: there is none here. One user at a time */
void fake_bar_put(struct fake_bar *bar);	/* all of it is unmapped */

#endif /* ROAN_FAKE_BAR_H */
