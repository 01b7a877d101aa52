#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Migrates a virtual machine from one QEMU to another, over RDMA, and saves the memory that arrived.

	migrate.py SOURCE-SOCKET TARGET-SOCKET rdma:ADDRESS:PORT SIZE FILE [CAPABILITY...]

Both machines are stopped. SIZE: of the memory, in bytes. The sockets speak QMP, the protocol of QEMU's monitor.
"""
import json
import socket
import sys
import time


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(100)
        self.socket.connect(path)
        self.lines = self.socket.makefile()
        json.loads(self.lines.readline())		# the greeting
        self.run("qmp_capabilities")

    def run(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        for line in self.lines:
            answer = json.loads(line)
            if "event" in answer:
                continue
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            return answer["return"]
        sys.exit(f"{command}: QEMU has gone")


def main(source, target, uri, size, file, *capabilities):
    source, target = Monitor(source), Monitor(target)
    for monitor in source, target:
        monitor.run("migrate-set-capabilities",
                    capabilities=[{"capability": name, "state": True} for name in capabilities])
    target.run("migrate-incoming", uri=uri)
    source.run("migrate", uri=uri)
    while True:
        state = source.run("query-migrate")
        if state["status"] in ("completed", "failed", "cancelled"):
            break
        time.sleep(0.1)
    print(json.dumps(state))
    if state["status"] != "completed":
        print("the source is", source.run("query-status")["status"])
        return 1
    while target.run("query-status")["status"] == "inmigrate":
        time.sleep(0.1)
    target.run("pmemsave", val=0, size=int(size), filename=file)
    for monitor in source, target:
        monitor.run("quit")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:]))
