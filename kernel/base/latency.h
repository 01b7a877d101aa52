/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of all histograms of times, defined once: name, meaning. The enum, the files of ports/1/latency/ and
 * build/describe.json are made from it. Each is kept per device and CPU. Includes nothing: also a program in userspace
 * is built from it (tools/describe.c).
 *
 * X(name, meaning)
 */
#ifndef ROAN_LATENCY_H
#define ROAN_LATENCY_H

#define ROAN_LATENCIES(X)	\
	X(rtt, "round trips of RC: from the sending of a packet to the response that acknowledges it")	\
	X(send, "SENDs of RC, from the send queue to the completion")	\
	X(write, "RDMA WRITEs of RC, from the send queue to the completion")	\
	X(read, "RDMA READs of RC, from the send queue to the completion")	\
	X(atomic, "atomics and ATOMIC_WRITEs of RC, from the send queue to the completion")	\
	X(flush, "FLUSHes of RC, from the send queue to the completion")

/* Bucket i has the times of less than 2^(10 + i) ns that no earlier bucket has; the last one has all longer ones. */
#define ROAN_LATENCY_SHIFT	10
#define ROAN_LATENCY_BUCKETS	24

#define X(name, meaning) ROAN_LAT_##name,
enum roan_latency { ROAN_LATENCIES(X) ROAN_NUM_LATENCIES };
#undef X

#endif /* ROAN_LATENCY_H */
