// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of the port: hw_counters/, and by performance management MADs, for InfiniBand tools and
 * ports/1/counters/ (IBTA vol. 1, 16.1.3). Does not set counters, and does not answer other management classes.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include "base/base.h"
#include "flow/flow.h"
#include "verbs/verbs.h"

/* The unit of the data counters (words) is four bytes. */
struct pma_counts {
	u64 xmit_words, rcv_words, xmit_pkts, rcv_pkts, xmit_multicast, rcv_multicast;
};

static struct pma_counts pma_counts_of(const struct roan_dev *dev)
{
	return (struct pma_counts) {
		.xmit_words = roan_stats_sum(dev, ROAN_CNT_sent_bytes) >> 2,
		.rcv_words = roan_stats_sum(dev, ROAN_CNT_rcvd_bytes) >> 2,
		.xmit_pkts = roan_stats_sum(dev, ROAN_CNT_sent_pkts),
		.rcv_pkts = roan_stats_sum(dev, ROAN_CNT_rcvd_pkts),
		.xmit_multicast = roan_stats_sum(dev, ROAN_CNT_sent_multicast_pkts),
		.rcv_multicast = roan_stats_sum(dev, ROAN_CNT_rcvd_multicast_pkts),
	};
}

/* The 16-bit and 32-bit counters saturate. */
static __be32 sticky32(u64 v)
{
	return cpu_to_be32(min_t(u64, v, U32_MAX));
}

static __be16 sticky16(u64 v)
{
	return cpu_to_be16(min_t(u64, v, U16_MAX));
}

static void class_port_info(void *data)
{
	struct ib_class_port_info *info = data;

	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH | IB_PMA_CLASS_CAP_XMIT_WAIT;
}

/* @multicast may exceed @all, as the two counters are not read atomically. */
static __be64 unicast(u64 all, u64 multicast)
{
	return cpu_to_be64(all - min(all, multicast));
}

/*
 * The unit of port_xmit_wait is 1 us. port_rcv_constraint_errors and port_xmit_constraint_errors are for switch ports
 * that enforce partitions, and 0 on an end port: ib_port_attr.bad_pkey_cntr counts P_Key mismatches.
 */
static void port_counters(struct roan_dev *dev, void *data)
{
	struct ib_pma_portcounters *c = data;
	struct pma_counts t = pma_counts_of(dev);
	u64 dropped = roan_stats_sum(dev, ROAN_CNT_tx_no_route) + roan_stats_sum(dev, ROAN_CNT_tx_no_memory) +
		      roan_stats_sum(dev, ROAN_CNT_tx_dropped);

	c->port_select = 1;
	c->link_downed_counter = min_t(u64, roan_stats_sum(dev, ROAN_CNT_link_downed), U8_MAX);
	c->port_rcv_errors = sticky16(roan_stats_sum(dev, ROAN_CNT_rx_bad_icrc) +
				      roan_stats_sum(dev, ROAN_CNT_rx_truncated));
	c->port_xmit_discards = sticky16(dropped);
	c->port_xmit_data = sticky32(t.xmit_words);
	c->port_rcv_data = sticky32(t.rcv_words);
	c->port_xmit_packets = sticky32(t.xmit_pkts);
	c->port_rcv_packets = sticky32(t.rcv_pkts);
	c->port_xmit_wait = sticky32(div_u64(roan_pfc_waited(dev), NSEC_PER_USEC));
}

static void port_counters_ext(const struct roan_dev *dev, void *data)
{
	struct ib_pma_portcounters_ext *c = data;
	struct pma_counts t = pma_counts_of(dev);

	c->port_select = 1;
	c->port_xmit_data = cpu_to_be64(t.xmit_words);
	c->port_rcv_data = cpu_to_be64(t.rcv_words);
	c->port_xmit_packets = cpu_to_be64(t.xmit_pkts);
	c->port_rcv_packets = cpu_to_be64(t.rcv_pkts);
	c->port_unicast_xmit_packets = unicast(t.xmit_pkts, t.xmit_multicast);
	c->port_unicast_rcv_packets = unicast(t.rcv_pkts, t.rcv_multicast);
	c->port_multicast_xmit_packets = cpu_to_be64(t.xmit_multicast);
	c->port_multicast_rcv_packets = cpu_to_be64(t.rcv_multicast);
}

int roan_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		     const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index)
{
	struct roan_dev *dev = to_roan_dev(ibdev);
	struct ib_pma_mad *pma = (struct ib_pma_mad *)out;

	if (port != 1)
		return IB_MAD_RESULT_FAILURE;
	/* The core passes other classes to registered agents. Never reply to a response: two ports would loop. */
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT || in->mad_hdr.method & IB_MGMT_METHOD_RESP)
		return IB_MAD_RESULT_SUCCESS;

	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = 0;
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET) {
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD);
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	}

	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		class_port_info(pma->data);
		break;
	case IB_PMA_PORT_COUNTERS:
		port_counters(dev, pma->data);
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		port_counters_ext(dev, pma->data);
		break;
	default:
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

/* What CPUs count, but for the time of pauses, which is that of all QPs together. */
int roan_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct roan_dev *dev = to_roan_dev(ibdev);
	int i;

	if (!port || !stats)
		return -EINVAL;
	for (i = 0; i < ROAN_NUM_COUNTERS; i++)
		stats->value[i] = roan_stats_sum(dev, i);
	stats->value[ROAN_CNT_paused_us] = div_u64(roan_pfc_waited(dev), NSEC_PER_USEC);
	return ROAN_NUM_COUNTERS;
}
