/* SPDX-License-Identifier: GPL-2.0 */
/* The route cache embedded in queues. Only types: net/net.h has the functions. */
#ifndef ROAN_NET_TYPES_H
#define ROAN_NET_TYPES_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct dst_entry;

/* Cached route of one direction, and its IPv4 identification. Written under the lock of the queue that contains it. */
struct roan_dst_cache {
	struct dst_entry *dst;
	u32 cookie;
	/* of the lookup: rules and routes may depend on each */
	union ib_gid sgid;
	union ib_gid dgid;
	int ifindex;		/* two interfaces may have the same address */
	u32 flow_label;
	u16 sport;		/* UDP source port */
	u8  tclass;
	bool unbound;		/* routes chose the interface */
	u16 cpu;		/* the transmit queue (XPS) of this CPU is used */
	u16 ip_id;
};

#endif /* ROAN_NET_TYPES_H */
