# SPDX-License-Identifier: GPL-2.0
# roan: the kernel module, its libibverbs provider, and everything that tests them. `make help` lists the targets.
# Results go to build/; nothing is written beside the sources.

# Rises with each commit, and with each change of a file.
VERSION	= $(shell tools/package version)
KDIR	?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) $(lastword $(sort $(wildcard /lib/modules/*/build))))
ARCH	?= $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
DESTDIR	?=
SYSTEMLIB ?= lib
SOURCES	?= /usr/src/roan
HOSTCC	?= cc
ROOM	:= selftests/vm
SECONDS_FUZZ ?= 60

# Build folder of a kernel: its release, and a suffix that tells apart kernels of one release.
release	 = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h 2>/dev/null)
variant	 = $(if $(filter um,$(ARCH)),-um)$(if $(shell grep -s '^CONFIG_KASAN=y' $(KDIR)/.config),-debug)$(if $(COVERAGE),-coverage)
OUT	 = build/$(release)$(variant)
ifeq ($(origin OUT),command line)	# what else is in that folder would be deleted
$(error OUT cannot be set: the module is built in build/RELEASE)
endif

all: module provider			## module for KDIR (default: the running kernel if its headers are installed, else the highest-named one), provider

help:
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# Kernels up to 6.12 write objects into the folder of M=. So M= is a copy of the tree made of links, one per kernel.
mirror:
	@test -n "$(release)" || { echo "KDIR='$(KDIR)' holds no configured kernel (install linux-headers)"; exit 1; }
	@mkdir -p $(OUT)/selftests
	@# Another kernel of the same release has other structs, and its headers may be older than the objects.
	@[ "$$(cat $(OUT)/kdir 2> /dev/null)" = "$(realpath $(KDIR))" ] || find $(OUT) -mindepth 1 -not -path $(OUT)/selftests -delete
	@echo "$(realpath $(KDIR))" > $(OUT)/kdir
	@find $(OUT) -xtype l -delete
	@cp -asf --no-preserve=timestamps $(CURDIR)/kernel $(CURDIR)/include $(CURDIR)/Kbuild $(OUT)/
	@cp -asf --no-preserve=timestamps $(CURDIR)/selftests/kunit $(CURDIR)/selftests/gpu $(CURDIR)/selftests/bench \
		$(CURDIR)/selftests/cc $(CURDIR)/selftests/net $(CURDIR)/selftests/verbs $(CURDIR)/selftests/fuzz $(OUT)/selftests/

module: mirror describe			## build/<release>/roan.ko; KDIR=DIR [ARCH=um] [UBSAN=1] [COVERAGE=y] [ROAN_TESTS=y] [STRICT=1]
	$(MAKE) -C $(KDIR) M=$(CURDIR)/$(OUT) ARCH=$(ARCH) ROAN_VERSION=$(VERSION) $(if $(STRICT),W=1 ROAN_WERROR=y) $(KARGS) modules

describe: build/describe.json		## names, units, ranges and meanings of parameters and counters, for the tools
build/describe.json: tools/describe.c kernel/core/cc/params.h kernel/core/flow/pfc_rules.h kernel/base/counters.h kernel/base/latency.h
	@mkdir -p $(@D)
	@t=$@.$$$$; $(HOSTCC) -Wall -Wextra -Ikernel -o $$t.bin $< && $$t.bin > $$t && mv $$t $@; rc=$$?; rm -f $$t $$t.bin; exit $$rc

provider:				## build/provider/libroan-rdmav<N>.so
	$(MAKE) -C provider OUT=$(CURDIR)/build/provider

programs: provider describe		## the tests' C programs
	$(MAKE) -C selftests/verbs
	$(MAKE) -C selftests/cc
	$(MAKE) -C selftests/gpu
	$(MAKE) -C selftests/security

test: describe				## the protocol core in userspace: suites and simulator (ASan, UBSan); output of `roan gpu`, `roan top`; `roan add`; alert rules; commands of getting-started.md
	$(MAKE) -s -C selftests/unit run
	@selftests/gpu/roan_gpu.sh
	@selftests/tools/top.sh golden || [ $$? = 4 ]		# 4: skipped
	@selftests/tools/exporter.sh static || [ $$? = 4 ]
	@selftests/tools/strangers.sh
	@selftests/tools/link.sh
	@selftests/tools/first_hour.sh static

mutate:					## mutation test of kernel/core/cc: lists code changes that no case notices; minutes
	$(MAKE) -s -C selftests/unit mutate

coverage:				## lines of kernel/core that suites, simulators and fuzzers execute, by folder; LIST=1: the other lines, too
	$(MAKE) -s -C selftests/unit coverage

kernel-coverage:			## lines of kernel/ that the guests of `make check` in UML execute, by folder; LIST=1: the other lines, too
	@tools/setup
	rm -rf build/*-um-debug-coverage && mkdir -p build
	grep -v /kunit.sh $(ROOM)/suites > build/suites-coverage	# KUnit runs a second copy of the code
	-COVERAGE=y $(ROOM)/suites.sh -f build/suites-coverage uml-debug
	selftests/fuzz/uverbs/lines.py $(if $(LIST),-m) build/*-um-debug-coverage/roan.ko build/*-um-debug-coverage/ran/*

fuzz:					## libFuzzer on the core, SECONDS_FUZZ per target
	$(MAKE) -C selftests/fuzz run SECONDS=$(SECONDS_FUZZ)

lint:					## W=1, sparse, checkpatch, shellcheck, rules of this repository
	selftests/lint/lint.sh

cross:					## for s390x (big-endian) and arm64: W=1, sparse; the core under qemu-user
	selftests/lint/cross.sh

kunit:					## the suites inside a UML kernel with KASAN
	$(MAKE) -s -C selftests/unit ktap
	KUNIT=1 $(ROOM)/run.sh uml-debug -k log_buf_len=4M $(ROOM)/kunit.sh

selftest: describe			## every script of selftests/vm/suites in its lab
	$(ROOM)/suites.sh guests

long:					## what `check` has no time for: packages rebooted, more kernels, longer scripts (two hours of CPU)
	@tools/setup
	@$(ROOM)/ktap_count.sh "$(ROOM)/suites.sh -f $(ROOM)/suites-long"

paths:					## scripts that move data, on links with all settings of GSO, GRO, MTU and loss (two hours of CPU)
	@tools/setup
	@$(ROOM)/ktap_count.sh "$(ROOM)/suites.sh -f $(ROOM)/suites-paths"

foreign:				## scripts on other CPUs, emulated: arm64, s390x (big-endian)
	@tools/setup build lab tests s390x
	@$(ROOM)/ktap_count.sh "$(ROOM)/suites.sh -f $(ROOM)/suites-foreign"

smp:					## scripts in kernels with KASAN and lockdep, and with KCSAN, on 4 emulated CPUs
	@tools/setup
	@$(ROOM)/ktap_count.sh "$(ROOM)/suites.sh -f $(ROOM)/suites-smp"

soak:					## HOURS=2 of random operations, faults and removals, in each lab in turn; totals over all runs
	@tools/setup
	$(ROOM)/soak.sh

bench:					## Documentation/benchmarks.md, measurements.md and figures, by selftests/bench
	@tools/setup build lab tests bench
	selftests/bench/run.sh

cc:					## congestion control in virtual time, compared with the model (half an hour, two guests at a time)
	selftests/cc/check

check:					## all of the above but mutate, coverage, kernel-coverage, bench, cc, cross, foreign, long, paths, smp and soak; ends with "N passed, N failed, N skipped"
	@tools/setup
	@$(ROOM)/ktap_count.sh $(ROOM)/suites.sh

bare:					## .ci/run in a new Debian 12 root with git only; BARE="make test": another command; CACHE=empty: no cache
	$(ROOM)/bare.sh $(if $(BARE),"$(BARE)")

demo:					## two hosts in a stock kernel talk RDMA; HOST=1: in the running kernel
	@$(if $(HOST),HOST=1 )$(ROOM)/demo.sh

install: module provider		## installs module, provider with its driver file, and the tool roan, under DESTDIR
	$(if $(DESTDIR),,tools/package alone $(release) install)
	$(MAKE) -C $(KDIR) M=$(CURDIR)/$(OUT) ARCH=$(ARCH) $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) INSTALL_MOD_DIR=updates modules_install
	$(if $(DESTDIR),,depmod $(release))	# modules_install omits it, as header packages have no System.map
	$(MAKE) -C provider OUT=$(CURDIR)/build/provider DESTDIR=$(DESTDIR) install
	$(MAKE) install-tool

install-tool: describe			## installs the tool roan, its manual pages, the rule and unit of `roan add`, and for `roan vm` the module's sources, under DESTDIR
	install -D -m 755 tools/roan $(DESTDIR)/usr/sbin/roan
	install -D -m 755 -t $(DESTDIR)/usr/share/roan/vm tools/vm/*.sh
	install -m 644 tools/vm/fstab $(DESTDIR)/usr/share/roan/vm
	VERSION=$(VERSION) tools/package sources $(DESTDIR)$(SOURCES)
	install -D -m 644 -t $(DESTDIR)/usr/share/roan tools/roan_*.py build/describe.json tools/answer-rxe.conf
	install -D -m 755 -t $(DESTDIR)/usr/share/roan tools/roan-cni
	sed -i '1s|.*|#!/usr/bin/python3|' $(DESTDIR)/usr/sbin/roan $(DESTDIR)/usr/share/roan/roan-cni		# not what PATH has first
	install -D -m 644 -t $(DESTDIR)/usr/share/roan/monitoring tools/monitoring/roan*
	install -D -m 644 tools/roan.bash $(DESTDIR)/usr/share/bash-completion/completions/roan
	install -D -m 644 -t $(DESTDIR)/$(SYSTEMLIB)/systemd/system tools/systemd/*.service
	install -D -m 644 -t $(DESTDIR)/$(SYSTEMLIB)/udev/rules.d tools/systemd/90-roan.rules
	install -d $(DESTDIR)/etc/roan $(DESTDIR)/usr/share/man/man4 $(DESTDIR)/usr/share/man/man8
	tools/man_pages.py $(DESTDIR)/usr/share/man

uninstall:				## removes what `make install` and `make dkms` have installed from this tree, under DESTDIR; files in /etc/roan that `roan add` wrote stay
	$(if $(DESTDIR),,tools/package dkms-remove)
	rm -rf build/installed
	$(MAKE) install DESTDIR=$(CURDIR)/build/installed
	cd build/installed && find . ! -type d ! -name 'modules.*' -printf '$(DESTDIR)/%P\0' | xargs -0 rm -f
	cd build/installed && find . -depth -type d -path '*roan*' -printf '$(DESTDIR)/%P\0' | xargs -0 rmdir --ignore-fail-on-non-empty 2> /dev/null || true	# not all need be there
	rm -rf build/installed
	$(if $(DESTDIR),,depmod $(release))

kernel-tree:				## places the driver into the kernel source SRC, as drivers/infiniband/sw/roan
	tools/kernel-tree $(SRC)

dkms:					## hands the module's sources to DKMS, which builds them for each kernel
	tools/package dkms

deb:					## build/deb/: roan, roan-dkms, libroan, libroan-dev as Debian packages; tools/package module KERNEL: the module built
	tools/package deb

rpm:					## build/rpm/: the same packages for distributions with rpm
	tools/package rpm

clean:					## remove build/
	rm -rf build

.PHONY: all help mirror module describe provider programs test mutate coverage kernel-coverage fuzz lint cross kunit selftest long paths foreign bench cc check bare demo install install-tool uninstall dkms deb rpm smp soak kernel-tree clean
