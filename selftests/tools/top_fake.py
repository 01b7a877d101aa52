#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""`roan top` over figures that are made up here, and are the same in each run: for the golden screens of top.sh. Four queue pairs on
one device, looked at twelve times, a second apart; one is capped, one waits for its peer, one loses packets, one has nothing to send.
The view is stopped: keys change it, time does not. With a number of devices and one of lines, it prints the list."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools"))
import roan_figures
import roan_top

LOOKS = 12
now = 0
COMMON = {"ifname": "roan0", "state": "RTS", "type": "RC", "mtu": 4096, "window_pkts": 256, "max_rd_atomic": 16, "next_psn": 0, "epsn": 0,
          "cc": "dcqcn", "pid": 4711}


def qp(qpn, comm, packets, **more):
    una = (0xfffff0 + sum(packets(i) for i in range(now))) % (1 << 24)	# wraps in the first second
    end = una + more.pop("flying", 0)
    return dict(COMMON, lqpn=qpn + 11517200, rqpn=qpn + 100, comm=comm, una_psn=una, end_psn=end, **more)


def queue_pairs(dev=None):
    return [qp(17, "ib_write_bw", lambda i: 30000 + 2000 * (i % 5), flying=100, sq_works=128, sq_unsent=30, paced=1, rate_kbps=1200000,
               cap_kbps=1200000, srtt_ns=48200, alpha_1024=512, cnps=7 * now, cuts=3 * now, msn=1),
            qp(18, "storage-target-daemon", lambda i: 200, flying=1, sq_works=5, sq_unsent=4, rnr_wait=1, rnr_naks=50 * now, srtt_ns=2100000),
            qp(19, "ucx_perftest", lambda i: 9000, flying=30, sq_works=16, resent=900 * now, seq_naks=80 * now, srtt_ns=83000, paused_ms=100 * now),
            qp(20, "mpirun", lambda i: 0, srtt_ns=12000)]


def device(name):
    return {"device": name, "state": "active", "algo": "dcqcn", "mbps": 100000, "paused_us": 100000 * now,
            "counters": {"sent_bytes": 200000000 * now, "rcvd_bytes": 1000000 * now, "resent_pkts": 900 * now, "rx_no_wqe": 3 * now}}


class Watch(roan_figures.Watch):
    def glance(self):
        pass

    def look(self):
        global now
        now += 1
        super().look()
        if now == LOOKS:
            model.stopped = True


roan_figures.queue_pairs, roan_figures.device, roan_figures.devices = queue_pairs, device, lambda: ["roan%d" % i for i in range(int((sys.argv + ["1"])[1]))]
roan_figures.time.monotonic = lambda: float(now)
model = roan_top.Model(Watch(), interval=1.0)
while not model.stopped:
    model.watch.look()
if len(sys.argv) > 2:
    print("\n".join(model.lines(80, int(sys.argv[2]))))
else:
    roan_top.run(model)
