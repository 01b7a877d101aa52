/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of all counters, defined once: name, unit, meaning. The enum, what `rdma statistic` and
 * ports/1/hw_counters/ show, and build/describe.json, from which the tools take units and meanings, are made from it;
 * `make test` compares it with the table in Documentation/observability.md. A dropped packet counts once, under an rx_
 * or tx_ name, or as duplicate_request, out_of_seq_request, stale_response, resp_invalid_requests or rp_cnp_ignored; a
 * multicast packet once for each member that drops it. Names that rdma_rxe also has mean the same. Includes nothing:
 * also a program in userspace is built from it (tools/describe.c).
 *
 * X(name, unit, meaning)
 */
#ifndef ROAN_COUNTERS_H
#define ROAN_COUNTERS_H

#define ROAN_COUNTERS(X)	\
	X(sent_pkts, "packets", "handed to the IP stack, retransmissions included")	\
	X(sent_bytes, "bytes", "of sent_pkts, from BTH to ICRC")	\
	X(sent_skbs, "skbs", "of sent_pkts: one skb is one packet or a GSO packet of several")	\
	X(sent_edt_skbs, "skbs",	\
	  "of sent_skbs, handed over early with a departure time, for an fq qdisc to keep (pacer_edt)")	\
	X(sent_multicast_pkts, "packets", "of sent_pkts, to multicast groups")	\
	X(rcvd_pkts, "packets", "received with a correct ICRC")	\
	X(rcvd_bytes, "bytes", "of rcvd_pkts, from BTH to ICRC")	\
	X(rcvd_skbs, "skbs", "received; several packets in one skb if GRO merged them")	\
	X(rcvd_multicast_pkts, "packets", "of rcvd_pkts, to a multicast group with a member here")	\
	X(rcvd_ce_pkts, "packets", "received with ECN Congestion Experienced, of any kind")	\
	X(rdma_sends, "work requests", "SENDs completed, of any kind")	\
	X(rdma_recvs, "work requests", "receive work requests completed")	\
	X(duplicate_request, "packets", "requests with a PSN that was executed before: the peer retransmitted")	\
	X(out_of_seq_request, "gaps",	\
	  "requests with a PSN beyond the expected one: a packet was lost or reordered on the way here")	\
	X(rcvd_rnr_err, "packets", "RNR NAKs received: the peer had no receive buffer, or waited for memory")	\
	X(send_rnr_err, "packets", "RNR NAKs sent")	\
	X(rcvd_seq_err, "packets", "sequence-error NAKs received: a packet was lost on the way to the peer")	\
	X(implied_nak_seq_err, "events", "a response skipped a READ or atomic that was not answered yet")	\
	X(local_ack_timeout_err, "events", "the ACK timeout of a QP expired")	\
	X(roce_adp_retrans_to, "events", "retransmission before the ACK timeout, by measured round trip")	\
	X(retry_exceeded_err, "work requests", "failed with IBV_WC_RETRY_EXC_ERR")	\
	X(retry_rnr_exceeded_err, "work requests", "failed with IBV_WC_RNR_RETRY_EXC_ERR")	\
	X(resent_pkts, "packets", "sent again, for whatever reason")	\
	X(stale_response, "packets", "responses that acknowledge nothing new")	\
	X(req_remote_access_errors, "packets", "NAK \"remote access error\" received")	\
	X(req_remote_invalid_request, "packets", "NAK \"invalid request\" received")	\
	X(req_remote_op_errors, "packets", "NAK \"remote operational error\" received")	\
	X(resp_remote_access_errors, "packets", "NAK \"remote access error\" sent")	\
	X(resp_invalid_requests, "packets", "NAK \"invalid request\" sent")	\
	X(resp_remote_op_errors, "packets", "NAK \"remote operational error\" sent")	\
	X(resp_cqe_error, "completions", "receive completions with an error other than a flush")	\
	X(req_cqe_error, "completions", "send completions with an error other than a flush")	\
	X(cq_overflow, "completions", "lost because the CQ was full")	\
	X(np_ecn_marked_roce_packets, "packets",	\
	  "data packets received with Congestion Experienced (without ACKs, CNPs and refused datagrams)")	\
	X(np_cnp_sent, "packets", "CNPs sent for np_ecn_marked_roce_packets")	\
	X(rp_cnp_handled, "packets", "CNPs received and given to a congestion control algorithm")	\
	X(rp_cnp_ignored, "packets", "CNPs received without effect: no algorithm, or not from the QP's peer")	\
	X(rx_prio0_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio1_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio2_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio3_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio4_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio5_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio6_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(rx_prio7_pause, "frames", "802.1Qbb frames received that name the priority, XOFF or XON")	\
	X(pause_honoured, "frames", "802.1Qbb frames received that started a pause or changed its end")	\
	X(pause_ignored, "frames",	\
	  "802.1Qbb frames received: priority not in pfc_prio_mask, or that of CNPs, or after a watchdog event") \
	X(pfc_storm, "events", "the watchdog ended a pause")	\
	X(paused_us, "us",	\
	  "time during which PFC held back a packet of at least one QP; `port_xmit_wait` with 64 bits") \
	X(tx_prio0_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio1_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio2_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio3_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio4_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio5_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio6_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(tx_prio7_pause, "frames", "802.1Qbb frames sent for the priority: XOFF, its renewal, or XON")	\
	X(pfc_tx_watchdog, "events", "the watchdog ended an XOFF of this host's own")	\
	X(rx_pause_length, "frames", "MAC control frames of a wrong length")	\
	X(rx_pause_dest, "frames", "MAC control frames to another address than 01:80:C2:00:00:01")	\
	X(rx_pause_opcode, "frames", "MAC control frames with another opcode (802.3x link pause among them)")	\
	X(rx_pause_vector, "frames", "MAC control frames that enable classes beyond 7")	\
	X(page_faults, "ranges",	\
	  "on-demand paging: given to a worker to be faulted in because a packet or work request needed them")	\
	X(page_prefetch, "ranges",	\
	  "on-demand paging: named in ibv_advise_mr(), also if the call faulted them in itself")	\
	X(page_invalidations, "ranges", "on-demand paging: invalidated by the MMU notifier")	\
	X(rx_early_kept, "packets",	\
	  "RC: received before an earlier request that was lost or is late, and kept until that one was executed") \
	X(rx_fault_queued, "packets", "received, and queued until the page fault was served")	\
	X(rx_fault_dropped, "packets",	\
	  "UC, UD: dropped: the page was not present, and the queue for such packets was full")	\
	X(link_downed, "events", "the port left ACTIVE")	\
	X(rx_truncated, "packets", "dropped: too short for the UDP length, the BTH or the opcode")	\
	X(rx_bad_version, "packets", "dropped: BTH transport header version other than 0")	\
	X(rx_bad_opcode, "packets", "dropped: no such opcode")	\
	X(rx_bad_icrc, "packets", "dropped: wrong ICRC")	\
	X(rx_no_device, "packets",	\
	  "dropped: no device of the namespace has the destination address or is on the receiving interface")	\
	X(rx_unknown_qp, "packets", "dropped: no such QP")	\
	X(rx_wrong_peer, "packets",	\
	  "dropped: not the connected QP's addresses, or none of the datagram QP's device; or another namespace") \
	X(rx_wrong_interface, "packets",	\
	  "dropped: came by another interface, VLAN or VRF than its GID belongs to (any_interface)") \
	X(rx_wrong_service, "packets", "dropped: the opcode belongs to another transport service than the QP's") \
	X(rx_bad_state, "packets", "dropped: the QP is in a state in which it cannot receive")	\
	X(rx_bad_pkey, "packets", "dropped: P_Key does not match")	\
	X(rx_bad_qkey, "packets", "dropped: Q_Key does not match")	\
	X(rx_no_wqe, "packets", "UC, UD: dropped: no receive work request posted")	\
	X(rx_too_long, "packets", "UC, UD: dropped: longer than the receive work request")	\
	X(rx_access, "packets", "UC: dropped: R_Key, range or access right")	\
	X(rx_key_limit, "messages",	\
	  "UC: WRITEs dropped without a look at their R_Key: 16 others of that QP were refused in the same second") \
	X(rx_uc_lost, "packets", "UC: dropped: belongs to a message of which an earlier packet is missing")	\
	X(rx_invalid, "packets",	\
	  "dropped: UC, UD: breaks a protocol rule; any: IP options or IPv6 extension headers")	\
	X(rx_no_group_member, "packets", "multicast, dropped: no QP is attached to the group")	\
	X(rx_policy, "packets", "dropped by an IPsec policy, or refused by connection tracking")	\
	X(rx_after_nak, "packets",	\
	  "RC: dropped: awaits a retransmission after an RNR NAK, or no space to keep it") \
	X(rx_no_memory, "packets", "RC: dropped: first READ or atomic: no memory for responder resources")	\
	X(tx_no_route, "packets", "dropped: no route to the peer")	\
	X(tx_no_memory, "packets", "dropped: no memory for an skb")	\
	X(tx_dropped, "packets",	\
	  "too long for the route; dropped by netfilter or a full qdisc (Linux 7.x: those of a CPU that sends alone)") \
	X(tx_unprivileged, "skbs",	\
	  "not roan's own: dropped: to UDP port 4791, by a socket opened without CAP_NET_RAW (sendto(): EPERM)")

#endif /* ROAN_COUNTERS_H */
