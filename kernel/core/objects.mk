# SPDX-License-Identifier: GPL-2.0
# The pure core, below core/. One list for the module (Kbuild), the userspace suites (selftests/unit) and the fuzzers.
core-objs := $(addprefix transport/,wire.o opcode.o requester.o requester_rx.o requester_repair.o requester_sack.o requester_reorder.o requester_paths.o requester_paths_auto.o requester_paths_next.o requester_read.o responder.o responder_early.o)
core-objs += $(addprefix crc/,icrc.o crc_shiftxor.o crc_vpclmul.o)
core-objs += $(addprefix cc/,rtt.o path_window.o cc.o params.o dcqcn.o swift.o fixed.o cwnd_bound.o pacer.o np.o)
core-objs += $(addprefix flow/,pfc_rules.o inflight_limit.o)
