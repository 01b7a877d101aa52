#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Prints compiler flags for the kernel headers in $1: -DHAVE_* for each feature found, and an include folder if a header
# is missing. $2 is the root of roan's tree. Checks the text of the headers, not the version, because stable kernels
# back-port. Compiles nothing.
inc=$1/include

have() { # NAME HEADER PATTERN
	grep -qs -- "$3" "$inc/$2" && printf ' -DHAVE_%s' "$1"
}

# Greps the declaration of one member of struct ib_device_ops, joined to one line.
op() { # NAME MEMBER PATTERN
	sed -n "/(\*$2)(/,/;/p" "$inc/rdma/ib_verbs.h" | tr '\n' ' ' | grep -q -- "$3" && printf ' -DHAVE_%s' "$1"
}

op   CREATE_CQ_ATTRS		create_cq uverbs_attr_bundle
op   REG_DMABUF_ATTRS		reg_user_mr_dmabuf uverbs_attr_bundle
have CREATE_USER_CQ		rdma/ib_verbs.h '(\*create_user_cq)('
have RESIZE_USER_CQ		rdma/ib_verbs.h '(\*resize_user_cq)('
have REG_MR_DMAH		rdma/ib_verbs.h 'struct ib_dmah \*dmah'
have UMEM_GET_VA		rdma/ib_umem.h 'ib_umem_get_va('
have SKB_CLOCK			linux/skbuff.h 'SKB_CLOCK_MONOTONIC'
have UDP_GRO_FIELD		linux/udp.h 'gro_enabled:1'
have ENCAP_ENABLE_SOCKET	net/udp_tunnel.h 'udp_tunnel_encap_enable(struct socket '
have VM_FLAGS_SET		linux/mm.h 'void vm_flags_set('
have VM_SHADOW_STACK		linux/mm.h 'VM_SHADOW_STACK'
have HRTIMER_SETUP		linux/hrtimer.h 'hrtimer_setup('
have FLOWI4_DSCP		net/flow.h 'define flowi4_dscp'
have CT_CONFIRM			linux/netfilter.h '(\*confirm)(struct sk_buff'
have FILL_RES_SRQ		rdma/ib_verbs.h '(\*fill_res_srq_entry)('
have ROCE_DEL_NETDEV_GIDS	rdma/ib_verbs.h 'roce_del_all_netdev_gids('
have IB_FLUSH			rdma/ib_verbs.h 'IB_WR_FLUSH'
have ODP_FLUSH			rdma/ib_verbs.h 'IB_ODP_SUPPORT_FLUSH'
have DMABUF_VMAP_UNLOCKED	linux/dma-buf.h 'dma_buf_vmap_unlocked('
have DMABUF_INVALIDATE		linux/dma-buf.h '(\*invalidate_mappings)('
have CONST_KOBJECT_NS_TYPE	linux/kobject.h '(\*child_ns_type)(const struct kobject'
have QUERY_PORT_SPEED		rdma/ib_verbs.h '(\*query_port_speed)('
have REPORT_PORT_EVENT		rdma/ib_verbs.h '(\*report_port_event)('
have USER_MMAP_DISASSOCIATE	rdma/ib_verbs.h 'void rdma_user_mmap_disassociate('
have SPEED_CHANGE_EVENT		rdma/ib_verbs.h 'IB_EVENT_DEVICE_SPEED_CHANGE'
have ALLOC_DMAH			rdma/ib_verbs.h '(\*alloc_dmah)('
have COMP_CNTR			rdma/ib_verbs.h '(\*create_comp_cntr)('
have ROBUST_UDATA		rdma/ib_verbs.h 'uverbs_robust_udata'
have ALLOC_DEVICE_WITH_NET	rdma/ib_verbs.h 'define ib_alloc_device_with_net('
have IMPORT_NS_STRING		linux/module.h 'MODULE_IMPORT_NS(ns).*MODULE_INFO(import_ns, ns)'
[ -e "$inc/linux/unaligned.h" ] || printf ' -I%s/kernel/compat/include' "$2"
echo
