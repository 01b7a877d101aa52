/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Errors for kernels that roan cannot be built for. In a kernel's own tree this file is absent: Kconfig has the
 * conditions there.
 */
#ifndef ROAN_COMPAT_REQUIRE_H
#define ROAN_COMPAT_REQUIRE_H

#include <linux/version.h>

#if KERNEL_VERSION(6, 1, 0) > LINUX_VERSION_CODE
#error "roan needs Linux 6.1 or newer"
#endif
#ifndef CONFIG_64BIT
#error "roan needs a 64-bit kernel: registered memory is reached through the direct map"
#endif
#if !IS_ENABLED(CONFIG_NETFILTER)
#error "roan needs CONFIG_NETFILTER: it receives packets with a LOCAL_IN hook"
#endif
/* roan's per-CPU data relies on local_bh_disable(). With PREEMPT_RT that needs a lock, which is optional since 6.18. */
#if defined(CONFIG_PREEMPT_RT) && KERNEL_VERSION(6, 18, 0) <= LINUX_VERSION_CODE && \
	!defined(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK)
#error "roan needs CONFIG_PREEMPT_RT_NEEDS_BH_LOCK with CONFIG_PREEMPT_RT"
#endif
#if !IS_ENABLED(CONFIG_INFINIBAND)
#error "roan needs CONFIG_INFINIBAND"
#endif
#if !IS_ENABLED(CONFIG_IPV6)
#error "roan needs CONFIG_IPV6: GIDs are IPv6 addresses to the RDMA core"
#endif
#if !IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS)
#error "roan needs CONFIG_INFINIBAND_USER_ACCESS: memory regions and rings are the uverbs module's"
#endif
#if !IS_ENABLED(CONFIG_NET_UDP_TUNNEL)
#error "roan needs CONFIG_NET_UDP_TUNNEL: it opens UDP port 4791 as a tunnel does"
#endif
#if !IS_ENABLED(CONFIG_HMM_MIRROR)
#error "roan needs CONFIG_HMM_MIRROR: on-demand paging; CONFIG_INFINIBAND_ON_DEMAND_PAGING selects it"
#endif

#endif /* ROAN_COMPAT_REQUIRE_H */
