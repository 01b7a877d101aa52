/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One list of counters: events with a spec name, per CPU, shown by `rdma statistic` and in ports/1/hw_counters/. Every
 * packet that is dropped counts exactly once, under an rx_ or tx_ name. Names that rdma_rxe also has mean the same.
 */
#ifndef ROAN_STATS_H
#define ROAN_STATS_H

#include <linux/percpu.h>

#define ROAN_COUNTERS(X)											\
	X(sent_pkts)			/* packets handed to the IP stack */					\
	X(sent_bytes)			/* ... bytes from BTH to ICRC */					\
	X(sent_skbs)			/* ... skbs: sent_pkts / sent_skbs is the mean train length */		\
	X(sent_edt_skbs)		/* ... of them handed over before their time, for an fq to keep */	\
	X(sent_multicast_pkts)		/* of sent_pkts: to multicast groups */					\
	X(rcvd_pkts)			/* packets with a good ICRC */						\
	X(rcvd_bytes)											\
	X(rcvd_skbs)											\
	X(rcvd_multicast_pkts)		/* of rcvd_pkts: to multicast groups */					\
	X(rcvd_ce_pkts)			/* of them marked Congestion Experienced */				\
	X(rdma_sends)			/* send work requests completed */					\
	X(rdma_recvs)			/* receive work requests completed */					\
	X(duplicate_request)										\
	X(out_of_seq_request)										\
	X(rcvd_rnr_err)			/* RNR NAKs received */							\
	X(send_rnr_err)			/* RNR NAKs sent */							\
	X(rcvd_seq_err)			/* sequence NAKs received */						\
	X(implied_nak_seq_err)		/* a response that skipped an unanswered READ or atomic */		\
	X(local_ack_timeout_err)									\
	X(roce_adp_retrans_to)		/* retransmissions before that, by measured round trip */		\
	X(retry_exceeded_err)										\
	X(retry_rnr_exceeded_err)									\
	X(resent_pkts)											\
	X(stale_response)		/* responses that said nothing new */					\
	X(req_remote_access_errors)	/* NAK remote access received */					\
	X(req_remote_invalid_request)	/* NAK invalid request received */					\
	X(req_remote_op_errors)		/* NAK remote operational error received */				\
	X(resp_remote_access_errors)	/* NAK remote access sent */						\
	X(resp_invalid_requests)	/* NAK invalid request sent */						\
	X(resp_remote_op_errors)	/* NAK remote operational error sent */					\
	X(resp_cqe_error)		/* receive completions with an error, flushes apart */			\
	X(req_cqe_error)		/* send completions with an error, flushes apart */			\
	X(cq_overflow)			/* completions lost */							\
	X(np_ecn_marked_roce_packets)	/* data packets that came with Congestion Experienced */		\
	X(np_cnp_sent)			/* CNPs for them */							\
	X(rp_cnp_handled)		/* CNPs that an algorithm was told of */					\
	X(rp_cnp_ignored)		/* CNPs for which there is no congestion control, or not from the peer */	\
	X(rx_prio0_pause)		/* 802.1Qbb frames that name this priority, to stop it or to let it go on */	\
	X(rx_prio1_pause)										\
	X(rx_prio2_pause)										\
	X(rx_prio3_pause)										\
	X(rx_prio4_pause)										\
	X(rx_prio5_pause)										\
	X(rx_prio6_pause)										\
	X(rx_prio7_pause)										\
	X(pause_honoured)		/* of them: a pause began or got another end */				\
	X(pause_ignored)		/* ... not heeded: not in the mask, the CNPs' priority, or a storm */	\
	X(pfc_storm)			/* the watchdog ended a pause */					\
	X(tx_prio0_pause)		/* 802.1Qbb frames sent: stop, stop on, or go on */			\
	X(tx_prio1_pause)										\
	X(tx_prio2_pause)										\
	X(tx_prio3_pause)										\
	X(tx_prio4_pause)										\
	X(tx_prio5_pause)										\
	X(tx_prio6_pause)										\
	X(tx_prio7_pause)										\
	X(pfc_tx_watchdog)			/* the watchdog ended a pause that we had asked for */			\
	X(rx_pause_length)		/* MAC control frames of another length */				\
	X(rx_pause_dest)		/* ... not to 01:80:C2:00:00:01 */					\
	X(rx_pause_opcode)		/* ... with another opcode */						\
	X(rx_pause_vector)		/* ... that enable classes there are not */				\
	X(page_faults)			/* on-demand paging: ranges brought in because they were wanted */	\
	X(page_prefetch)		/* ... because ibv_advise_mr() asked */					\
	X(page_invalidations)		/* ... taken away by the MMU */						\
	X(rx_fault_queued)			/* ... packets that waited here for memory to be placed in */		\
	X(rx_fault_dropped)			/* UC, UD: such a packet, and no room for it to wait */			\
	X(link_downed)											\
	X(rx_truncated)			/* too short for its UDP length, BTH or opcode */			\
	X(rx_bad_version)										\
	X(rx_bad_opcode)										\
	X(rx_bad_icrc)											\
	X(rx_no_device)			/* QP 1 or a group that no device of the namespace has */		\
	X(rx_unknown_qp)										\
	X(rx_wrong_peer)		/* for a connected QP, but not from its peer */				\
	X(rx_wrong_service)		/* opcode of another transport service than the QP's */			\
	X(rx_bad_state)			/* the QP cannot receive in its state */				\
	X(rx_bad_pkey)											\
	X(rx_bad_qkey)											\
	X(rx_no_wqe)			/* UC, UD: no receive work request posted */				\
	X(rx_too_long)			/* UC, UD: longer than the receive work request */			\
	X(rx_access)			/* UC: key, range or access refused */					\
	X(rx_uc_lost)			/* UC: rest of a message with a hole */					\
	X(rx_invalid)			/* UC, UD: breaks the protocol */					\
	X(rx_no_group_member)		/* multicast nobody attached to */					\
	X(rx_policy)			/* refused by an IPsec policy */					\
	X(rx_after_nak)			/* RC: waiting for the retransmission that a NAK or RNR NAK asked for */\
	X(rx_no_memory)			/* RC: the first READ or atomic, and no memory to remember it in */	\
	X(tx_no_route)											\
	X(tx_no_memory)											\
	X(tx_dropped)			/* the IP stack dropped it: netfilter, queue full */

#define X(name) ROAN_CNT_##name,
enum roan_counter { ROAN_COUNTERS(X) ROAN_NUM_COUNTERS };
#undef X

struct roan_stats {
	u64 count[ROAN_NUM_COUNTERS];
};

/* Any context; @dev has `struct roan_stats __percpu *stats`. */
#define roan_count_n(dev, name, n)	this_cpu_add((dev)->stats->count[ROAN_CNT_##name], (n))
#define roan_count(dev, name)		roan_count_n(dev, name, 1)

#endif /* ROAN_STATS_H */
