# SPDX-License-Identifier: GPL-2.0
import json
import subprocess


def shown(dev, qp):
    """The QP's attributes by `rdma resource show qp -dd`."""
    out = subprocess.run(["rdma", "-j", "-dd", "resource", "show", "qp", "link", f"{dev}/1", "lqpn", str(qp.qp_num)],
                         check=True, capture_output=True)
    return {k.removeprefix("drv_"): value for k, value in json.loads(out.stdout)[0].items()}
