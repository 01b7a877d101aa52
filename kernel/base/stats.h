/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of all counters: per CPU, shown by `rdma statistic` and in ports/1/hw_counters/. A dropped
 * packet counts once, under an rx_ or tx_ name, or as duplicate_request, out_of_seq_request, stale_response,
 * resp_invalid_requests or rp_cnp_ignored; a multicast packet once for each member that drops it. Names that rdma_rxe
 * also has mean the same.
 * Documentation/observability.md has the same list with units; `make test` compares the names.
 */
#ifndef ROAN_STATS_H
#define ROAN_STATS_H

#include <linux/percpu.h>

#define ROAN_COUNTERS(X)											\
	X(sent_pkts)			/* packets handed to the IP stack, retransmissions included */		\
	X(sent_bytes)			/* bytes of these, from BTH to ICRC */					\
	X(sent_skbs)			/* skbs of these; an skb is one packet or a GSO packet of several */	\
	X(sent_edt_skbs)		/* of sent_skbs: handed over early, for an fq qdisc to keep (pacer_edt) */\
	X(sent_multicast_pkts)		/* of sent_pkts: to multicast groups */					\
	X(rcvd_pkts)			/* packets received with a correct ICRC */				\
	X(rcvd_bytes)												\
	X(rcvd_skbs)												\
	X(rcvd_multicast_pkts)		/* of rcvd_pkts: to multicast groups with a member here */		\
	X(rcvd_ce_pkts)			/* of rcvd_pkts: marked ECN Congestion Experienced */			\
	X(rdma_sends)			/* send work requests completed */					\
	X(rdma_recvs)			/* receive work requests completed */					\
	X(duplicate_request)											\
	X(out_of_seq_request)											\
	X(rcvd_rnr_err)			/* RNR NAKs received */							\
	X(send_rnr_err)			/* RNR NAKs sent */							\
	X(rcvd_seq_err)			/* sequence-error NAKs received */					\
	X(implied_nak_seq_err)		/* responses that skipped an unanswered READ or atomic */		\
	X(local_ack_timeout_err)										\
	X(roce_adp_retrans_to)		/* retransmissions before the ACK timeout, by measured round trip */	\
	X(retry_exceeded_err)											\
	X(retry_rnr_exceeded_err)										\
	X(resent_pkts)												\
	X(stale_response)		/* responses that acknowledge nothing new */				\
	X(req_remote_access_errors)	/* NAK remote access received */					\
	X(req_remote_invalid_request)	/* NAK invalid request received */					\
	X(req_remote_op_errors)		/* NAK remote operational error received */				\
	X(resp_remote_access_errors)	/* NAK remote access sent */						\
	X(resp_invalid_requests)	/* NAK invalid request sent */						\
	X(resp_remote_op_errors)	/* NAK remote operational error sent */					\
	X(resp_cqe_error)		/* receive completions with an error other than a flush */		\
	X(req_cqe_error)		/* send completions with an error other than a flush */			\
	X(cq_overflow)			/* completions lost because the CQ was full */				\
	X(np_ecn_marked_roce_packets)	/* data packets received with Congestion Experienced */			\
	X(np_cnp_sent)			/* CNPs sent for these packets */					\
	X(rp_cnp_handled)		/* CNPs given to a congestion control algorithm */			\
	X(rp_cnp_ignored)		/* CNPs without effect: no algorithm, or not from the peer */		\
	X(rx_prio0_pause)		/* 802.1Qbb frames received for this priority, XOFF or XON */		\
	X(rx_prio1_pause)											\
	X(rx_prio2_pause)											\
	X(rx_prio3_pause)											\
	X(rx_prio4_pause)											\
	X(rx_prio5_pause)											\
	X(rx_prio6_pause)											\
	X(rx_prio7_pause)											\
	X(pause_honoured)		/* of these: a pause began or got another end */			\
	X(pause_ignored)		/* ignored: not in the mask, priority of CNPs, or the watchdog */	\
	X(pfc_storm)			/* the watchdog ended a pause */					\
	X(tx_prio0_pause)		/* 802.1Qbb frames sent: XOFF, its renewal, or XON */			\
	X(tx_prio1_pause)											\
	X(tx_prio2_pause)											\
	X(tx_prio3_pause)											\
	X(tx_prio4_pause)											\
	X(tx_prio5_pause)											\
	X(tx_prio6_pause)											\
	X(tx_prio7_pause)											\
	X(pfc_tx_watchdog)		/* the watchdog ended an XOFF of this host's own */			\
	X(rx_pause_length)		/* MAC control frames of a wrong length */				\
	X(rx_pause_dest)		/* MAC control frames not to 01:80:C2:00:00:01 */			\
	X(rx_pause_opcode)		/* MAC control frames with another opcode */				\
	X(rx_pause_vector)		/* MAC control frames that enable classes beyond 7 */			\
	X(page_faults)			/* on-demand paging: ranges requested by a packet or work request */	\
	X(page_prefetch)		/* ranges requested by ibv_advise_mr() */				\
	X(page_invalidations)		/* ranges invalidated by the MMU notifier */				\
	X(rx_early_kept)		/* RC: came before an earlier request, and kept until that was executed */	\
	X(rx_fault_queued)		/* packets queued until their pages were faulted in */			\
	X(rx_fault_dropped)		/* UC, UD: dropped: page fault pending, and that queue was full */	\
	X(link_downed)												\
	X(rx_truncated)			/* too short for the UDP length, the BTH or the opcode */		\
	X(rx_bad_version)											\
	X(rx_bad_opcode)											\
	X(rx_bad_icrc)												\
	X(rx_no_device)			/* no device of the namespace has the address or the interface */	\
	X(rx_unknown_qp)											\
	X(rx_wrong_peer)		/* addresses are not the QP's: rx_from_peer() */				\
	X(rx_wrong_service)		/* opcode of another transport service than the QP's */			\
	X(rx_bad_state)			/* the QP cannot receive in its state */				\
	X(rx_bad_pkey)												\
	X(rx_bad_qkey)												\
	X(rx_no_wqe)			/* UC, UD: no receive work request posted */				\
	X(rx_too_long)			/* UC, UD: longer than the receive work request */			\
	X(rx_access)			/* UC: R_Key, range or access right */					\
	X(rx_key_limit)			/* UC: R_Key not looked up: core/transport/key_limit.h */		\
	X(rx_uc_lost)			/* UC: remainder of a message of which a packet is missing */		\
	X(rx_invalid)			/* UC, UD: breaks a protocol rule; IP options or extension headers */	\
	X(rx_no_group_member)		/* multicast to a group without an attached QP */			\
	X(rx_policy)			/* IPsec policy, conntrack */						\
	X(rx_after_nak)			/* RC: waiting for the retransmission after a NAK or RNR NAK */		\
	X(rx_no_memory)			/* RC: first READ or atomic: no memory for responder resources */	\
	X(tx_no_route)												\
	X(tx_no_memory)												\
	X(tx_dropped)			/* dropped by the IP stack: netfilter, a full qdisc */			\
	X(tx_unprivileged)		/* not roan's: from a socket of a program without CAP_NET_RAW */

#define X(name) ROAN_CNT_##name,
enum roan_counter { ROAN_COUNTERS(X) ROAN_NUM_COUNTERS };
#undef X

struct roan_stats {
	u64 count[ROAN_NUM_COUNTERS];
};

/* Any context. */
#define roan_count_n(dev, name, n)	this_cpu_add((dev)->stats->count[ROAN_CNT_##name], (n))
#define roan_count(dev, name)		roan_count_n(dev, name, 1)

#endif /* ROAN_STATS_H */
