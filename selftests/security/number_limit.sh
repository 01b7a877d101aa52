#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Address handles, memory keys and completion counters are limited in number, and the users of a device share them: one
# user takes all it can get, and another still gets some. WHAT=cntr: completion counters, which only newer kernels have.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/share.sh"

# Of a user: ROAN_USER_AH, ROAN_USER_KEY and ROAN_USER_COMP_CNTR of kernel/roan.h, an eighth of the device's.
limit() { if [ "$1" = cntr ]; then echo 8192; else echo 131072; fi; }

takes_its_share() { take one "-u 2001" "$1" 1100000 && got one "$(limit "$1"): Cannot allocate memory"; }
neighbour_gets_some() { take two "-u 2002" "$1" 10 && got two "10: all"; }
no_second_share() { take again "-u 2001" "$1" 1 && got again "0: Cannot allocate memory"; }
returned() { drop one && take one "-u 2001" "$1" 10 && got one "10: all"; }

share_up
ulimit -l unlimited	# each counter is a page
for what in ${WHAT:-ah mw}; do
	share_check -k "$what: a user gets $(limit "$what"), then ENOMEM" takes_its_share $what
	share_check -k "$what: another user still gets some" neighbour_gets_some $what
	share_check -k "$what: the first user gets no more in another process" no_second_share $what
	share_check "$what: what a user gave up it can take again" returned $what
done
ktap_end
