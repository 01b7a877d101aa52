// SPDX-License-Identifier: GPL-2.0
/*
 * The ib_device: its attributes, and how it is created (`rdma link add`) and removed (netdev unregistered, `rdma link
 * del`, module unload). Of the verbs it has the queries of device and port: the table at the end names the function of
 * each.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>
#include "base/user_mem.h"
#include "base/base.h"
#include "flow/flow.h"
#include "mem/mem.h"
#include "net/net.h"
#include "tx/tx.h"
#include "verbs/verbs.h"
#include "compat/ops.h"

#define FW_VERSION	"1.0.0"
#define VENDOR_PART_ID	0x6e31

static DEFINE_MUTEX(adding);	/* serialises roan_device_add(), for roan_set_guids() */

/* ---- attributes of the device and its port ---- */

static void fill_attrs(struct ib_device_attr *a)
{
	a->fw_ver = 1ull << 32;
	a->timestamp_mask = ~0ull;
	a->hca_core_clock = 1000000;	/* kHz; CQE timestamps are in nanoseconds */
	a->max_mr_size = ~0ull;
	a->page_size_cap = ~0xfffull;
	a->vendor_id = ROAN_VENDOR_ID;
	a->vendor_part_id = VENDOR_PART_ID;
	a->hw_ver = 1;
	a->max_qp = ROAN_MAX_QP;
	a->max_qp_wr = ROAN_MAX_WR;
	a->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR | IB_DEVICE_CURR_QP_STATE_MOD |
			      IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
			      IB_DEVICE_SRQ_RESIZE | IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW |
			      IB_DEVICE_MEM_WINDOW_TYPE_2B | IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE;
	if (IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		a->device_cap_flags |= IB_DEVICE_FLUSH_PERSISTENT;
	a->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG | IBK_ON_DEMAND_PAGING;
	a->odp_caps = roan_odp_caps;
	a->max_send_sge = ROAN_MAX_SGE;
	a->max_recv_sge = ROAN_MAX_SGE;
	a->max_sge_rd = ROAN_MAX_SGE;
	a->max_cq = ROAN_MAX_CQ;
	a->max_cqe = ROAN_MAX_CQE;
	a->max_mr = ROAN_MAX_MR;
	a->max_mw = ROAN_MAX_MR;
	a->max_pd = ROAN_MAX_PD;
	a->max_qp_rd_atom = ROAN_MAX_RD_ATOMIC;
	a->max_qp_init_rd_atom = ROAN_MAX_RD_ATOMIC;
	a->max_res_rd_atom = ROAN_MAX_RD_ATOMIC * ROAN_MAX_QP;
	/*
	 * Atomic with the CPU, too (GLOB). But with GLOB, UCX 1.13 checks for PCIe atomics: report HCA as adapters do.
	 */
	a->atomic_cap = IB_ATOMIC_HCA;
	a->max_mcast_grp = ROAN_MAX_MCAST_ATTACH;
	a->max_mcast_qp_attach = ROAN_MAX_MCAST_QPS;
	a->max_total_mcast_qp_attach = ROAN_MAX_MCAST_ATTACH;
	a->max_ah = ROAN_MAX_AH;
	a->max_srq = ROAN_MAX_SRQ;
	a->max_srq_wr = ROAN_MAX_WR;
	a->max_srq_sge = ROAN_MAX_SGE;
	a->max_fast_reg_page_list_len = ROAN_MAX_FAST_REG_PAGES;
	a->max_dm_size = ROAN_MAX_DM;
	a->max_pkeys = 1;
	a->local_ca_ack_delay = 15;
}

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	int err = roan_udata_none(udata);

	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	fill_attrs(attr);
	attr->sys_image_guid = to_roan_dev(ibdev)->sys_image_guid;
	return 0;
}

/* PortInfo's violation counters have 16 bits and saturate (IBTA vol. 1, 14.2.5.6). */
static u32 violations(const struct roan_dev *dev, enum roan_counter which)
{
	return min_t(u64, roan_stats_sum(dev, which), U16_MAX);
}

/* RTNL not held: roan_query_port_rate() takes it. */
static int query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *ndev = to_roan_dev(ibdev)->ndev;
	int mtu = READ_ONCE(ndev->mtu) - (int)ROAN_NET_HEADERS;

	if (roan_port_up(ndev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = netif_running(ndev) ? IB_PORT_PHYS_STATE_POLLING : IB_PORT_PHYS_STATE_DISABLED;
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(mtu);
	attr->gid_tbl_len = ROAN_GID_TABLE;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = ROAN_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->bad_pkey_cntr = violations(to_roan_dev(ibdev), ROAN_CNT_rx_bad_pkey);
	attr->qkey_viol_cntr = violations(to_roan_dev(ibdev), ROAN_CNT_rx_bad_qkey);
	roan_query_port_rate(to_roan_dev(ibdev), attr);
	return 0;
}

static int port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (to_roan_dev(ibdev)->l3)
		imm->core_cap_flags |= RDMA_CORE_PORT_IBA_ROCE;	/* for rdma_cm: gid.c */
	imm->pkey_tbl_len = 1;
	imm->gid_tbl_len = ROAN_GID_TABLE;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static void fw_string(struct ib_device *ibdev, char *str)
{
	strscpy(str, FW_VERSION, IB_FW_VERSION_NAME_MAX);
}

static int modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static const struct uapi_definition roan_uapi_defs[] = {
	UAPI_DEF_CHAIN(roan_ucontext_defs),
	UAPI_DEF_CHAIN(roan_doorbell_defs),
	UAPI_DEF_CHAIN(roan_dm_defs),
	UAPI_DEF_CHAIN(roan_qp_cc_defs),
	UAPI_DEF_CHAIN(roan_comp_cntr_defs),
	{}
};

/* ---- creation ---- */

static void device_init_ibdev(struct roan_dev *dev)
{
	struct ib_device *ib = &dev->ib;

	ib->node_type = RDMA_NODE_IB_CA;
	ib->phys_port_cnt = 1;
	/* Not for CPUs that a VM may get: nvmet makes a receive queue for each. */
	ib->num_comp_vectors = num_present_cpus();
	ib->local_dma_lkey = 0;
	ib->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);	/* roan_cq_raise_armed() */
	strscpy(ib->node_desc, "roan", sizeof(ib->node_desc));
	ib_set_device_ops(ib, &roan_dev_ops);
	ib_set_device_ops(ib, &roan_comp_cntr_ops);
	ib_set_device_ops(ib, &roan_dmah_ops);
	roan_gid_init(dev);
	ib->driver_def = roan_uapi_defs;
}

static void device_log_port_in_use(const char *name, struct net_device *ndev)
{
	struct ib_device *rxe = ib_device_get_by_netdev(ndev, RDMA_DRIVER_RXE);

	if (rxe) {
		pr_err("roan: %s: UDP port 4791 is in use by rdma_rxe (%s): unload rdma_rxe first\n",
		       name, dev_name(&rxe->dev));
		ib_device_put(rxe);
	} else {
		pr_err("roan: %s: UDP port 4791 is in use in %s's namespace: unload rdma_rxe or close that socket\n",
		       name, netdev_name(ndev));
	}
}

/*
 * Releases what device_new() has set up so far. The core calls it after unregistration, when the last user is gone;
 * ib_dealloc_device() calls it for a device that was not registered.
 */
static void dealloc_driver(struct ib_device *ibdev)
{
	struct roan_dev *dev = to_roan_dev(ibdev);

	roan_port_speed_exit(dev);
	roan_gid_exit(dev);
	if (dev->rnet) {
		roan_net_del_dev(dev->rnet, dev);
		roan_net_put(dev->rnet);
	}
	roan_sq_poller_exit(dev);
	roan_qos_del_dev(dev);
	roan_dm_bar_detach(dev);
	roan_user_mem_forget(&dev->dm_used);
	roan_users_forget(dev);
	roan_pfc_exit(dev);
	roan_parent_del(dev);
	rcu_barrier();	/* pending RCU callbacks finish before the tables below are freed */
	if (dev->keys.tbl)
		roan_key_table_exit(dev);
	xa_destroy(&dev->ahs);
	free_percpu(dev->stats);
	netdev_put(dev->ndev, &dev->ndev_tracker);
}

static int connect_net(struct roan_dev *dev, const char *name)
{
	struct roan_net *rnet = roan_net_get(dev->ndev);
	int err;

	if (IS_ERR(rnet)) {
		if (PTR_ERR(rnet) == -EADDRINUSE)
			device_log_port_in_use(name, dev->ndev);
		return PTR_ERR(rnet);
	}
	dev->rnet = rnet;
	roan_set_guids(dev);
	err = roan_net_add_dev(rnet, dev);
	if (err) {
		dev->rnet = NULL;
		roan_net_put(rnet);
	}
	return err;
}

/* The netdev was unregistered, or moved to another namespace. RTNL held */
static bool device_netdev_left(const struct roan_dev *dev)
{
	return dev->ndev->reg_state != NETREG_REGISTERED || !roan_net_is(dev->rnet, dev_net(dev->ndev));
}

/* -ENODEV: the netdev left before a netdev event could find the new device. */
static int device_recheck_netdev(const struct roan_dev *dev)
{
	int err;

	rtnl_lock();
	err = device_netdev_left(dev) ? -ENODEV : 0;
	rtnl_unlock();
	return err;
}

/* @net: where the device begins if RDMA namespaces are exclusive */
static int device_new(const char *name, struct net_device *ndev, struct net *net)
{
	struct roan_dev *dev = roan_alloc_device(net);
	int err;

	if (!dev)
		return -ENOMEM;
	get_device(&dev->ib.dev);	/* a user may delete the device as soon as it is registered */
	dev->ndev = ndev;
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&dev->users);
	roan_cc_param_init(&dev->cc);
	roan_dm_init(dev);
	roan_port_speed_init(dev);
	roan_pfc_init(dev);
	roan_sq_poller_init(&dev->poller);
	roan_qos_add_dev(dev);
	device_init_ibdev(dev);

	err = roan_key_table_init(dev);
	if (err)
		goto err_dealloc;
	err = -ENOMEM;
	dev->stats = alloc_percpu(struct roan_stats);
	if (!dev->stats)
		goto err_dealloc;
	err = connect_net(dev, name);
	if (err)
		goto err_dealloc;
	err = roan_parent_add(dev) ?: ib_device_set_netdev(&dev->ib, ndev, 1);
	if (err)
		goto err_dealloc;
	err = ib_register_device(&dev->ib, name, NULL);
	if (err == -ENFILE)
		err = -EEXIST;	/* the core returns ENFILE if the name is in use */
	if (err)
		goto err_dealloc;
	err = device_recheck_netdev(dev);
	if (err)
		ib_unregister_device(&dev->ib);
	put_device(&dev->ib.dev);
	return err;

err_dealloc:
	ib_dealloc_device(&dev->ib);
	put_device(&dev->ib.dev);
	return err;
}

int roan_device_add(const char *name, struct net_device *ndev)
{
	struct ib_device *old;
	struct net *net;
	int err = roan_netdev_check(name, ndev);

	if (err)
		return err;
	net = roan_net_hold_of(ndev);	/* the core does not hold it before the device is registered */
	if (!net)
		return -ENODEV;
	mutex_lock(&adding);
	old = ib_device_get_by_netdev(ndev, ROAN_DRIVER_ID);
	if (old) {	/* the common case; roan_net_add_dev() finds the others */
		ib_device_put(old);
		err = -EEXIST;
	} else {
		err = device_new(name, ndev, net);
	}
	mutex_unlock(&adding);
	put_net(net);
	return err;
}

/* ---- removal: the core calls the remove() of its clients first, the last registered client before the others ---- */

/*
 * For a new device, and after a move to another RDMA namespace: no event found the device until now, so what it takes
 * from its netdev is read again.
 */
static int client_add(struct ib_device *ibdev)
{
	struct roan_dev *dev = to_roan_dev(ibdev);

	if (ibdev->ops.driver_id != ROAN_DRIVER_ID)
		return -EOPNOTSUPP;
	rtnl_lock();
	dev->port_active_sent = roan_port_up(dev->ndev);
	roan_parent_show_netdev(dev);
	roan_port_speed_update(dev);
	if (device_netdev_left(dev))
		ib_unregister_device_queued(ibdev);
	rtnl_unlock();
	roan_gid_enable(dev);
	return 0;
}

/* Before any client: client_remove() ran before a move to another RDMA namespace. */
static int enable_driver(struct ib_device *ibdev)
{
	WRITE_ONCE(to_roan_dev(ibdev)->removing, false);
	return 0;
}

static void client_remove(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(to_roan_dev(ibdev)->removing, true);
	roan_qp_flush_on_device(to_roan_dev(ibdev));
	roan_gid_disable(to_roan_dev(ibdev));
}

/* Registered after ib_uverbs, so its remove() is called first and flushes user QPs before the core destroys them. */
static struct ib_client client = {
	.name	= "roan",
	.add	= client_add,
	.remove	= client_remove,
};

#ifdef HAVE_USER_MMAP_DISASSOCIATE
/* ib_uverbs must be loaded first, and stay. In kernels with this function nothing else may be used of it. */
static const void *const keeps_ib_uverbs __used = rdma_user_mmap_disassociate;
#endif

/* ---- init and exit ---- */

int roan_client_init(void)
{
	return ib_register_client(&client);
}

/* No device is added and no unregistration queued any more: waits until all devices are unregistered. */
void roan_client_exit(void)
{
	ib_unregister_driver(ROAN_DRIVER_ID);
	ib_unregister_client(&client);
}

const struct ib_device_ops roan_dev_ops = {
	.owner			= THIS_MODULE,
	.driver_id		= ROAN_DRIVER_ID,
	.uverbs_abi_ver		= ROAN_UVERBS_ABI_VERSION,
#ifdef HAVE_ROBUST_UDATA
	.uverbs_robust_udata	= 1,
#endif
	.device_group		= &roan_device_group,
	.port_groups		= roan_port_groups,
	.dealloc_driver		= dealloc_driver,
	.enable_driver		= enable_driver,

	.query_device		= query_device,
	.query_port		= query_port,
#ifdef HAVE_REPORT_PORT_EVENT
	.report_port_event	= roan_report_port_event,
#endif
#ifdef HAVE_QUERY_PORT_SPEED
	.query_port_speed	= roan_query_port_speed,
#endif
	.query_pkey		= query_pkey,
	.get_port_immutable	= port_immutable,
	.get_link_layer		= link_layer,
	.get_dev_fw_str		= fw_string,
	.modify_device		= modify_device,
	.process_mad		= roan_process_mad,
	.alloc_hw_port_stats	= roan_alloc_port_stats,
	.get_hw_stats		= roan_get_hw_stats,
	.fill_res_qp_entry	= roan_fill_res_qp,
	.fill_res_cq_entry	= roan_fill_res_cq,
	.fill_res_mr_entry	= roan_fill_res_mr,
#ifdef HAVE_FILL_RES_SRQ
	.fill_res_srq_entry	= roan_fill_res_srq,
#endif

	.alloc_ucontext		= roan_alloc_ucontext,
	.dealloc_ucontext	= roan_dealloc_ucontext,
	.disassociate_ucontext	= roan_disassociate_ucontext,
	.query_ucontext		= roan_query_ucontext,
	.mmap			= roan_mmap,
	.mmap_free		= roan_mmap_free,

	.alloc_pd		= roan_alloc_pd,
	.dealloc_pd		= roan_dealloc_pd,
	.create_ah		= roan_create_ah,
	.create_user_ah		= roan_create_ah,
	.query_ah		= roan_query_ah,
	.destroy_ah		= roan_destroy_ah,

	ROAN_CQ_OPS,
	.destroy_cq		= roan_destroy_cq,
	.poll_cq		= roan_poll_cq,
	.req_notify_cq		= roan_req_notify_cq,

	.create_srq		= roan_create_srq,
	.modify_srq		= roan_modify_srq,
	.query_srq		= roan_query_srq,
	.destroy_srq		= roan_destroy_srq,
	.post_srq_recv		= roan_post_srq_recv,

	.create_qp		= roan_create_qp,
	.modify_qp		= roan_modify_qp,
	.query_qp		= roan_query_qp,
	.destroy_qp		= roan_destroy_qp,
	.post_send		= roan_post_send,
	.post_recv		= roan_post_recv,
	.attach_mcast		= roan_attach_mcast,
	.detach_mcast		= roan_detach_mcast,

	.get_dma_mr		= roan_get_dma_mr,
	.reg_user_mr		= ROAN_REG_USER_MR,
	.reg_user_mr_dmabuf	= roan_compat_reg_dmabuf,
	.rereg_user_mr		= roan_rereg_user_mr,
	.advise_mr		= roan_advise_mr,
	.alloc_mr		= roan_alloc_mr,
	.map_mr_sg		= roan_map_mr_sg,
	.dereg_mr		= roan_dereg_mr,
	.alloc_dm		= roan_alloc_dm,
	.dealloc_dm		= roan_dealloc_dm,
	.reg_dm_mr		= roan_reg_dm_mr,
	.alloc_mw		= roan_alloc_mw,
	.dealloc_mw		= roan_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_ah, roan_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, roan_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, roan_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, roan_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, roan_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, roan_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, roan_ucontext, ib),
};
