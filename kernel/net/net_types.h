/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Routes, as queues keep them. Only types: net/net.h has the functions.
 */
#ifndef ROAN_NET_TYPES_H
#define ROAN_NET_TYPES_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct dst_entry;

/* A direction's way out: route cached, IPv4 identification. Written under the lock of the queue it belongs to. */
struct roan_dst_cache {
	struct dst_entry *dst;
	u32 cookie;
	union ib_gid sgid;	/* the addresses dst was looked up for */
	union ib_gid dgid;
	int ifindex;		/* and their interface: two may have the same address */
	u16 cpu;		/* whose transmit queue all goes through */
	u16 ip_id;
};

#endif /* ROAN_NET_TYPES_H */
