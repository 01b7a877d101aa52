# SPDX-License-Identifier: GPL-2.0
# While the module is built, prints which features it lacks because the kernel was configured without an option. Options
# that it cannot be built without are errors in require.h. selftests/lint/options_test.sh builds it without all of these.

# Kbuild is read several times in a build: only Makefile.build has set obj-y before, and only with CONFIG_MODULES the
# configuration is there.
without = $(if $(CONFIG_$(1)),,$(info roan: this kernel has no CONFIG_$(1): $(2)))
ifeq ($(origin obj-y)$(CONFIG_MODULES),filey)
$(call without,DCB,priorities of the interface's DCB application table are not used; a packet's priority is DSCP >> 3)
$(call without,XPS,packets of one queue pair may leave by several transmit queues)
$(call without,INFINIBAND_ADDR_TRANS,no rdma_cm; programs have to exchange addresses themselves)
$(call without,CGROUP_RDMA,no rdma controller; objects of a control group are not limited)
$(call without,ARCH_HAS_PMEM_API,no FLUSH to persistence)
$(call without,NF_CONNTRACK,no connection tracking; firewall rules cannot match roan's packets by connection)
endif
