/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of congestion control, defined once: name, unit, range, default of each profile, meaning. The struct,
 * the sysfs files (ports/1/cc_param/NAME), their range checks and the tests are made from this list; `make test`
 * compares it with the table in Documentation/qos-pfc.md. A name that ConnectX has is spelled and scaled as there. To
 * add a parameter, append a line and read it from struct roan_cc_params with READ_ONCE(), so that a change applies
 * from the next event on.
 *
 * X(name, unit, min, max, paper, mlx, meaning)
 *   paper: of dcqcn; Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015
 *   mlx:   of all others: defaults of ConnectX adapters
 */
#ifndef ROAN_CC_PARAMS_H
#define ROAN_CC_PARAMS_H

#include "core/core_env.h"

#define ROAN_CC_MAX_MBPS	800000		/* maximum of every rate in the list */

/*
 * Settings of the device that are not of an algorithm: files of cc_param with code of their own in verbs/sysfs_cc.c.
 *
 * X(name, unit, min, max, default, meaning); unit "name": the value is a word
 */
#define ROAN_CC_DEVICE_PARAMS(X)									\
	X(algo, "name", 0, 0, 0, "none, fixed, dcqcn, dcqcn-mlx or swift")				\
	X(program_algo, "bool", 0, 1, 1, "1: a program may choose its queue pairs' algorithm")		\
	X(link_speed, "Mb/s", 0, ROAN_CC_MAX_MBPS, 0, "of the link; 0: as the interface reports")	\
	X(traffic_class, "TOS", 0, 255, 0, "of packets whose address has traffic class 0")	\
	X(peer_mode, "name", 0, 0, 0, "auto or standard: whether packets say that this host supports SACK")	\
	X(any_interface, "mode", 0, 2, 0, "1: packets may come by any interface, not only their GID's; 2: leave, too")

#define ROAN_CC_PARAMS(X)										\
	/* reaction point: alpha */									\
	X(dce_tcp_g, "1/1024", 1, 1023, 1020, 1019, "alpha keeps this share per update; a CNP adds the rest")	\
	X(dce_tcp_rtt, "us", 1, 131071, 55, 1, "alpha update period")					\
	X(initial_alpha_value, "1/1024", 1, 1023, 1023, 1023, "alpha at the first CNP")			\
	/* reaction point: cuts */									\
	X(rate_to_set_on_first_cnp, "Mb/s", 0, ROAN_CC_MAX_MBPS, 0, 0, "rate after the first CNP; 0: a normal cut") \
	X(rpg_gd, "log2", 10, 11, 11, 11, "a cut takes alpha/2 (11) or alpha (10) of the rate")		\
	X(rpg_min_dec_fac, "%", 1, 100, 50, 50, "a cut leaves at least this much of the rate")		\
	X(rpg_min_rate, "Mb/s", 1, ROAN_CC_MAX_MBPS, 10, 1, "floor of the rate")			\
	X(rpg_max_rate, "Mb/s", 0, ROAN_CC_MAX_MBPS, 0, 0, "at this rate limiting ends; 0: the link's rate")	\
	X(rate_reduce_monitor_period, "us", 0, 131071, 0, 4, "cuts happen at multiples of this; 0: at each CNP") \
	X(clamp_tgt_rate, "bool", 0, 1, 1, 0, "every cut lowers the target rate, too")			\
	X(clamp_tgt_rate_after_time_inc, "bool", 0, 1, 1, 1, "also a cut after an increase by the timer")	\
	/* reaction point: increases */									\
	X(rpg_time_reset, "us", 1, 131071, 55, 300, "period of increases by time")			\
	X(rpg_byte_reset, "64 B", 0, 1 << 25, 156250, 32767, "bytes between increases by volume; 0: none")	\
	X(rpg_threshold, "steps", 0, 31, 5, 1, "steps of fast recovery")				\
	X(rpg_ai_rate, "Mb/s", 1, ROAN_CC_MAX_MBPS, 40, 5, "additive step of the target rate")		\
	X(rpg_hai_rate, "Mb/s", 1, ROAN_CC_MAX_MBPS, 200, 50, "hyper step of the target rate")		\
	/* from here on shared by all algorithms: roan_cc_param_is_shared(). Notification point */	\
	X(min_time_between_cnps, "us", 0, 131071, 50, 4, "shortest time between two CNPs of a scope")	\
	X(cnp_scope, "0 qp 1 dip 2 port", 0, 2, 0, 0, "what min_time_between_cnps applies to")		\
	X(cnp_dscp, "DSCP", 0, 63, 48, 48, "DSCP of CNPs")							\
	X(cnp_802p_prio, "priority", 0, 7, 6, 6, "priority of CNPs")						\
	X(roce_cc_prio_mask, "bits", 0, 255, 255, 255, "priorities with congestion control")	\
	/* pacer */											\
	X(pacer_burst_us, "us", 1, 1000, 20, 20, "a GSO packet has the bytes of this time at the rate ...")	\
	X(pacer_burst_max, "B", 0, 65535, 16384, 16384, "... but at most this, and at least one packet")	\
	X(pacer_edt, "bool", 0, 1, 0, 0, "hand packets early to an fq qdisc below, if there is one")	\
	/* limits of bytes in flight, any algorithm; RC only */						\
	X(window_packets, "packets", 1, 65536, 256, 256, "limit in flight, of QPs that reach RTS afterwards")	\
	X(paths, "paths", 0, 64, 0, 0, "UDP source ports, of QPs that reach RTS afterwards; 0: automatic")	\
	X(window_max, "KB", 0, 1 << 20, 0, 0, "limit in flight; 0: none")			\
	X(window_bdp, "%", 0, 10000, 0, 0, "limit in flight, of link speed * shortest round trip; 0: none")	\
	/* algorithm `fixed` */										\
	X(fixed_rate, "Mb/s", 0, ROAN_CC_MAX_MBPS, 0, 0, "0: unlimited")				\
	/* algorithm `swift` */										\
	X(swift_target_us, "us", 0, 100000, 150, 150, "target round trip; 0: twice the shortest + swift_slack_us") \
	X(swift_slack_us, "us", 0, 100000, 50, 50, "with swift_target_us 0: delay within the hosts")	\
	X(swift_max_window, "KB", 0, 1 << 20, 0, 0, "limit in flight; 0: what the link carries in twice the target") \
	X(swift_min_rate, "Mb/s", 0, ROAN_CC_MAX_MBPS, 10, 10, "floor of the rate; 0: a packet in 1000 round trips") \
	X(swift_ai, "1/1024 packet", 1, 65536, 1024, 1024, "growth of the window per round trip below target")	\
	X(swift_beta, "1/1024", 1, 1024, 819, 819, "a cut is this share of the relative excess of delay")	\
	X(swift_max_mdf, "1/1024", 1, 1023, 512, 512, "largest cut, as a share of the window")	\
	X(swift_fs_range_us, "us", 0, 100000, 50, 50, "flow scaling: largest addition to the target; 0: none")	\
	X(swift_fs_min, "1/1024 packet", 1, 1 << 20, 102, 102, "flow scaling: window that gets the largest addition") \
	X(swift_fs_max, "1/1024 packet", 2, 1 << 20, 102400, 102400, "flow scaling: window that gets no addition")

#define X(name, unit, min, max, paper, mlx, meaning) u32 name;
struct roan_cc_params {
	ROAN_CC_PARAMS(X)
};

#undef X

#define X(name, unit, min, max, paper, mlx, meaning) ROAN_CC_PARAM_##name,
enum roan_cc_param { ROAN_CC_PARAMS(X) ROAN_CC_NUM_PARAMS };
#undef X

struct roan_cc_param_info {
	const char *name;
	u32 min, max;		/* inclusive */
	u32 paper, mlx;		/* defaults */
};

extern const struct roan_cc_param_info roan_cc_param_table[ROAN_CC_NUM_PARAMS];

/*
 * The parameters of DCQCN's reaction point have a value for each algorithm. Each of the others is one value for the
 * device: a new one is stored in the sets of all algorithms.
 */
static inline bool roan_cc_param_is_shared(enum roan_cc_param which)
{
	return which > ROAN_CC_PARAM_rpg_hai_rate;
}

/*
 * One value by index. roan_cc_param_set() returns false and changes nothing if @value is out of range. Any context, no
 * lock: one store.
 */
u32 roan_cc_param_get(const struct roan_cc_params *params, enum roan_cc_param which);
bool roan_cc_param_set(struct roan_cc_params *params, enum roan_cc_param which, u32 value);

#endif /* ROAN_CC_PARAMS_H */
