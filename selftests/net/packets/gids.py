# SPDX-License-Identifier: GPL-2.0
"""gids.py: GIDs of addresses, in the format of verbs, and their index in a device's table."""
import ipaddress
import os


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
