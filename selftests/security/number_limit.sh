#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Address handles and memory keys have numbers, which the users of a device share: one user takes all it can get, and
# another still gets some.
HERE=$(dirname "$(readlink -f "$0")")
. "$HERE/../vm/lib.sh"
. "$HERE/share.sh"

LIMIT=131072	# of a user: ROAN_USER_AH and ROAN_USER_KEY of kernel/roan.h, an eighth of the device's

takes_its_share() { take one "-u 2001" "$1" 1100000 && got one "$LIMIT: Cannot allocate memory"; }
neighbour_gets_some() { take two "-u 2002" "$1" 10 && got two "10: all"; }
no_second_share() { take again "-u 2001" "$1" 1 && got again "0: Cannot allocate memory"; }
returned() { drop one && take one "-u 2001" "$1" 10 && got one "10: all"; }

share_up
for what in ah mw; do
	share_check -k "$what: a user gets $LIMIT, then ENOMEM" takes_its_share $what
	share_check -k "$what: another user still gets some" neighbour_gets_some $what
	share_check -k "$what: the first user gets no more in another process" no_second_share $what
	share_check "$what: what a user gave up it can take again" returned $what
done
ktap_end
