/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names that differ between kernels, so that the rest of the code is written for one. The compiler's command line
 * includes this header before every file. It has only macros, because core/ is compiled with it too and must not get
 * the kernel's headers. Adapters that need types (the ops table) are in ops.h.
 *
 *   roan_umem_get(dev, addr, size, access)	ib_umem_get()
 *   roan_alloc_device(net)			ib_alloc_device_with_net(); in older kernels for the first namespace
 *   roan_udp_enable_gro(sk)			udp_set_bit(GRO_ENABLED, sk)
 *   roan_udp_enable_encap(sk)			udp_tunnel_encap_enable()
 *   VM_SHADOW_STACK				0 on kernels without shadow stacks
 *   roan_hrtimer_setup(timer, fn, clock, mode)	hrtimer_setup()
 *   ROAN_FLOWI4_TOS(tos)				initializer of a struct flowi4: flowi4_tos or flowi4_dscp
 *   ROAN_SKB_CLOCK_MONOTONIC			argument of skb_set_delivery_time()
 *   ROAN_IMPORT_NS(ns)				MODULE_IMPORT_NS()
 *   ROAN_CONST_KOBJECT				argument type of child_ns_type() in struct kobj_type
 *   roan_dma_buf_vmap(buf, map), ..._vunmap()	dma_buf_vmap_unlocked() ...
 *   ROAN_MOVE_NOTIFY				move_notify or its successor in struct dma_buf_attach_ops
 */
#ifndef ROAN_COMPAT_H
#define ROAN_COMPAT_H

#include "compat/require.h"

#ifdef HAVE_UMEM_GET_VA
#define roan_umem_get(dev, addr, size, access)	ib_umem_get_va(dev, addr, size, access)
#else
#define roan_umem_get(dev, addr, size, access)	ib_umem_get(dev, addr, size, access)
#endif

#ifdef HAVE_ALLOC_DEVICE_WITH_NET
#define roan_alloc_device(net)			ib_alloc_device_with_net(roan_dev, ib, net)
#else
#define roan_alloc_device(net)			ib_alloc_device(roan_dev, ib)
#endif

#ifdef HAVE_UDP_GRO_FIELD	/* 6.2 to 6.5, older updates of 6.1 and 6.6 */
#define roan_udp_enable_gro(sk)			((void)(udp_sk(sk)->gro_enabled = 1))
#else
#define roan_udp_enable_gro(sk)			udp_set_bit(GRO_ENABLED, sk)
#endif

#ifdef HAVE_ENCAP_ENABLE_SOCKET
#define roan_udp_enable_encap(sk)		udp_tunnel_encap_enable((sk)->sk_socket)
#else
#define roan_udp_enable_encap(sk)		udp_tunnel_encap_enable(sk)
#endif

#ifdef HAVE_HRTIMER_SETUP
#define roan_hrtimer_setup(timer, fn, clock, mode)	hrtimer_setup(timer, fn, clock, mode)
#else
#define roan_hrtimer_setup(timer, fn, clock, mode)	\
	do {						\
		hrtimer_init(timer, clock, mode);	\
		(timer)->function = (fn);		\
	} while (0)
#endif

#ifndef HAVE_VM_SHADOW_STACK
#define VM_SHADOW_STACK				VM_NONE
#endif

#ifdef HAVE_FLOWI4_DSCP
#define ROAN_FLOWI4_TOS(tos)			.flowi4_dscp = inet_dsfield_to_dscp(tos)
#else
#define ROAN_FLOWI4_TOS(tos)			.flowi4_tos = (tos)
#endif

#ifdef HAVE_SKB_CLOCK
#define ROAN_SKB_CLOCK_MONOTONIC		SKB_CLOCK_MONOTONIC
#else
#define ROAN_SKB_CLOCK_MONOTONIC		true
#endif

#ifdef HAVE_IMPORT_NS_STRING
#define ROAN_IMPORT_NS(ns)			MODULE_IMPORT_NS(#ns)
#else
#define ROAN_IMPORT_NS(ns)			MODULE_IMPORT_NS(ns)
#endif

#ifdef HAVE_CONST_KOBJECT_NS_TYPE
#define ROAN_CONST_KOBJECT			const struct kobject
#else
#define ROAN_CONST_KOBJECT			struct kobject
#endif

#ifdef HAVE_DMABUF_VMAP_UNLOCKED
#define roan_dma_buf_vmap(buf, map)		dma_buf_vmap_unlocked(buf, map)
#define roan_dma_buf_vunmap(buf, map)		dma_buf_vunmap_unlocked(buf, map)
#else
#define roan_dma_buf_vmap(buf, map)		dma_buf_vmap(buf, map)
#define roan_dma_buf_vunmap(buf, map)		dma_buf_vunmap(buf, map)
#endif

#ifdef HAVE_DMABUF_INVALIDATE
#define ROAN_MOVE_NOTIFY			invalidate_mappings
#else
#define ROAN_MOVE_NOTIFY			move_notify
#endif

#ifndef HAVE_IB_FLUSH
/*
 * The userspace ABI numbers of FLUSH and ATOMIC_WRITE. An RDMA core without them refuses the access bits, so FLUSH is
 * not announced, and never passes such a work request down. The provider's rings can still carry these opcodes.
 */
#define IB_WR_ATOMIC_WRITE		((enum ib_wr_opcode)15)
#define IB_WC_FLUSH			((enum ib_wc_opcode)8)
#define IB_WC_ATOMIC_WRITE		((enum ib_wc_opcode)9)
#define IB_ACCESS_FLUSH_GLOBAL		BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT	BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL		0
#define IB_DEVICE_FLUSH_PERSISTENT	0
#define IB_DEVICE_ATOMIC_WRITE		BIT_ULL(40)
#endif

#ifndef HAVE_ODP_FLUSH		/* also numbers of the userspace ABI */
#define IB_ODP_SUPPORT_FLUSH		(IB_DEVICE_FLUSH_GLOBAL ? BIT(6) : 0)
#define IB_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)
#endif

#endif /* ROAN_COMPAT_H */
