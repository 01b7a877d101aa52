# SPDX-License-Identifier: GPL-2.0
"""device.py: what the kernel shows of a device: the GIDs of addresses, in the format of verbs, and a QP's attributes."""
import ipaddress
import json
import os
import subprocess


def gid_of(address):
    """An IPv4 address is mapped into IPv6."""
    address = ipaddress.ip_address(address)
    return ipaddress.ip_address(f"::ffff:{address}") if address.version == 4 else address


def gid_index(dev, address, netdev=None):
    """The first one, or that of interface @netdev: several may have the address."""
    port = f"/sys/class/infiniband/{dev}/ports/1"
    for i in sorted(map(int, os.listdir(f"{port}/gids"))):
        with open(f"{port}/gids/{i}") as f:
            if ipaddress.ip_address(f.read().strip()) != gid_of(address):
                continue
        with open(f"{port}/gid_attrs/ndevs/{i}") as f:
            if netdev and f.read().strip() != netdev:
                continue
        with open(f"{port}/gid_attrs/types/{i}") as f:
            if "v2" in f.read():
                return i
    raise RuntimeError(f"no GID {address}")


def shown(dev, qp):
    """The QP's attributes by `rdma resource show qp -dd`."""
    out = subprocess.run(["rdma", "-j", "-dd", "resource", "show", "qp", "link", f"{dev}/1", "lqpn", str(qp.qp_num)],
                         check=True, capture_output=True)
    return {k.removeprefix("drv_"): value for k, value in json.loads(out.stdout)[0].items()}
