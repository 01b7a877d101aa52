/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_SYSFS	512

struct sysfs_file {
	char path[160], original[96];
	int device;
	bool writable, changed;
};

extern struct sysfs_file sysfs[MAX_SYSFS];
extern uint32_t nr_sysfs;

struct tc_netem_qopt;
extern int link_socket, link_index;	/* AF_PACKET on the second host's interface */

void new_link(int c);
void set_wire(int c, const struct tc_netem_qopt *netem);
void write_parameter(uint32_t i, const char *text);

#endif
