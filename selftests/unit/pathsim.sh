#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# pathsim.sh PATHSIM: what QPs with 32 paths reach over several links, with three seeds each; and what those choose that
# find out themselves how many they use, with thirty. KTAP.
. "$(dirname "$(readlink -f "$0")")/../vm/lib.sh"
over() { # ARGUMENTS OF PATHSIM...
	local seed
	for seed in 1 2 3; do
		"$PATHSIM" -s $seed "$@" || return
	done
}
choose() { # one|several ARGUMENTS OF PATHSIM...
	local chosen=$1 seed
	shift
	for seed in {1..30}; do
		"$PATHSIM" -s "$seed" -p 0 -e "$chosen" "$@" || return
	done
}
PATHSIM=$1
ktap_header
ktap_check "four links of 10 Gb/s" over -l 95 -r 0 10 10 10 10
ktap_check "path MTU 1024" over -l 92 -r 0 -m 1024 10 10 10 10
ktap_check "links of 10, 10, 5 and 2.5 Gb/s" over -l 87 -r 0 10 10 5 2.5
ktap_check "links of 10, 10, 5 and 2.5 Gb/s, 64 paths" over -p 64 -l 85 -r 0 10 10 5 2.5
ktap_check "a link with the sixfold delay" over -l 86 -r 0 10,us=50 10 10 10
ktap_check "one of four loses 2 %" over -l 92 -r 1.05 10,loss=2 10 10 10
ktap_check "all four lose 2 %" over -l 82 -r 1.1 10,loss=2 10,loss=2 10,loss=2
ktap_check "one of four fails after 15 of 40 ms" over -l 79 -r 1.05 10,down=15 10 10 10
ktap_check "one fails for 5 ms" over -l 91 -r 1.05 10,down=15-20 10 10 10
ktap_check "three of four fail" over -l 50 -r 1.05 10,down=15 10,down=16 10,down=17 10
ktap_check "eight QPs over four links, each gets its share" over -q 8 -t 100 -l 95 -f 85 10 10 10 10
ktap_check "32 QPs over four links, each gets its share" over -q 32 -t 200 -l 95 -f 85 10 10 10 10
ktap_check "one link" over -l 95 -r 0 10
ktap_check "one path, 10 Gb/s, 20 us, 5 % lost" over -p 1 -l 90 -r 1.05 10,loss=5
ktap_check "one path, 10 Gb/s, 100 us, 5 % lost" over -p 1 -l 90 -r 1.05 10,us=50,loss=5
ktap_check "one path, 40 Gb/s, 100 us, 1 % lost" over -p 1 -l 87.8 -r 1.05 40,us=50,loss=1
ktap_check "four QPs with one path each, 0.5 % lost, each gets its share" over -p 1 -q 4 -t 100 -l 95 -f 85 10,loss=0.5
ktap_check "one path, 5 % of packets overtake others" over -p 1 -l 95 -r 0 40,reorder=5
ktap_check "one path, 25 Gb/s, 20 us, path MTU 1024, 1 % lost" over -p 1 -l 90 -r 1.05 -m 1024 25,loss=1
ktap_check "a queue of 100 KB that drops the rest, one QP" over -p 1 -t 100 -l 95 -r 1.05 10,queue=100
ktap_check "a queue of 266 KB, eight QPs: none stands still" over -p 1 -q 8 -t 200 -l 95 -f 20 -r 1.05 10,queue=266
ktap_check "a queue of 266 KB, four QPs, each gets its share" over -p 1 -q 4 -t 200 -l 95 -f 85 -r 1.05 10,queue=266
ktap_check "a queue of 500 KB, eight QPs, each gets its share" over -p 1 -q 8 -t 200 -l 95 -f 85 -r 1.05 10,queue=500
ktap_check "a queue of 500 KB, four QPs, 40 Gb/s, 100 us" over -p 1 -q 4 -t 200 -l 95 -f 50 -r 1.05 40,us=50,queue=500
ktap_check "READs, four links of 10 Gb/s" over -R -l 90 -r 10 10 10 10 10
ktap_check "READs, path MTU 1024" over -R -l 88 -r 20 -m 1024 10 10 10 10
ktap_check "READs, links of 10, 10, 5 and 2.5 Gb/s" over -R -l 85 -r 40 10 10 5 2.5
ktap_check "READs, one of four loses 2 %" over -R -l 65 -r 1.3 10,loss=2 10 10 10
ktap_check "READs, one of four fails after 15 of 40 ms" over -R -l 78 -r 1.7 10,down=15 10 10 10
ktap_check "READs, one fails for 5 ms" over -R -l 90 -r 2 10,down=15-20 10 10 10
ktap_check "eight QPs with READs, each gets its share" over -R -q 8 -t 100 -l 92 -f 80 -r 150 10 10 10 10
ktap_check "READs, one path, 5 % of packets overtake others" over -R -p 1 -l 95 -r 60 40,reorder=5
ktap_check "automatic: four links, from 50 ms on" choose several -t 100 -w 50 -l 85 -r 0 10 10 10 10
ktap_check "automatic: links of 10, 10, 5 and 2.5 Gb/s, from 150 ms on" choose several -t 200 -w 150 -l 85 -r 0 10 10 5 2.5
ktap_check "automatic: four links, all lose 1 %" choose several -t 100 -w 50 -l 85 -r 1.05 10,loss=1 10,loss=1 10,loss=1 10,loss=1
ktap_check "automatic: one link" choose one -t 200 -l 96 -r 0 10
ktap_check "automatic: one link, 1 % lost" choose one -t 200 -l 95 -r 1.05 10,loss=1
ktap_check "automatic: one link, 5 % of packets overtake others" choose one -t 200 -l 95 -r 0 40,reorder=5
ktap_check "automatic: one link, four QPs" choose one -q 4 -t 200 -l 95 10
ktap_check "automatic: one link, four QPs whose load comes and goes" choose one -q 4 -i -t 200 40
ktap_end
