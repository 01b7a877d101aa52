#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What a switch announces by LLDP, and what `roan doctor` makes of it: first with programs that print what lldpctl and lldptool print, then,
where lldpd is installed, with one that runs in h1 and receives frames that h2 sends in the switch's place."""
import json
import os
import socket
import struct
import subprocess
import tempfile

from doctor_world import case, enter, fails, forked, result, roan_doctor_net, sh, skip, wait_for

DOT1, DOT3 = b"\x00\x80\xc2", b"\x00\x12\x0f"
REST = [2] * 8		# TSA: ETS


def tlvs(frame=9216, pfc=1 << 3, apps=((3, 5, 26), (3, 3, 4791)), percent=(50, 50, 0, 0, 0, 0, 0, 0)):
    """(OUI, subtype, bytes) of a switch that has priority 3 in its class 1, and all others in class 0."""
    found = [(DOT3, 4, struct.pack("!H", frame))] if frame else []
    if percent:
        found += [(DOT1, 9, bytes([2, 0, 1, 0, 0, *percent, *REST]))]
    if pfc is not None:
        found += [(DOT1, 11, bytes([8, pfc]))]
    if apps:
        found += [(DOT1, 12, b"\0" + b"".join(struct.pack("!BH", prio << 5 | kind, number) for prio, kind, number in apps))]
    return found


def lldpctl(found):
    """As lldpctl -f json0 (1.0.16) prints it."""
    port = {"id": [{"type": "ifname", "value": "swp7"}]}
    unknown = [{"oui": ",".join("%02X" % b for b in oui), "subtype": str(kind), "len": str(len(text)), "value": ",".join("%02X" % b for b in text)}
               for oui, kind, text in found if oui == DOT1]
    port.update({"mfs": [{"value": str(struct.unpack("!H", text)[0])}] for oui, kind, text in found if oui == DOT3})
    return json.dumps({"lldp": [{"interface": [{"name": "eth9", "chassis": [{"name": [{"value": "leaf1"}]}], "port": [port], "unknown-tlvs": [{"unknown-tlv": unknown}]}]}]})


LLDPTOOL = """Chassis ID TLV
	MAC: 02:00:00:00:00:99
Port ID TLV
	Ifname: swp7
System Name TLV
	leaf1
Maximum Frame Size TLV
	9216
IEEE 8021QAZ ETS Configuration TLV
	 Willing: no
	 CBS: not supported
	 MAX_TCS: 2
	 PRIO_MAP: 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 
	 TC Bandwidth: 50% 50% 0% 0% 0% 0% 0% 0% 
	 TSA_MAP: 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:ets 7:ets 
IEEE 8021QAZ PFC TLV
	 Willing: no
	 MACsec Bypass Capable: no
	 PFC capable traffic classes: 8
	 PFC enabled: 3 
IEEE 8021QAZ APP TLV
	App#   1 	 Prio 3 	 Sel 3 	 P-ID	 UDP or DCCP Port: 4791
	Prio:3 	 dscp:  26, 
End of LLDPDU TLV
"""
GOOD = {"pfc_prio_mask": 8, "traffic_class": 104}
# name, what is to be found, settings of the device, what the switch announces
CASES = [
    ("the switch agrees", [], GOOD, {}),
    ("the switch announces nothing", [], GOOD, {"frame": 0, "pfc": None, "apps": (), "percent": ()}),
    ("the switch has PFC, and this device neither PFC nor a class", [], {}, {"apps": ()}),
    ("the switch's PFC is of another priority", ["switch-pfc"], GOOD, {"pfc": 1 << 4}),
    ("the switch has no PFC", ["switch-pfc"], GOOD, {"pfc": 0}),
    ("the switch has PFC of the packets' priority, this device none", ["switch-pfc"], {"traffic_class": 104}, {}),
    ("the switch expects DSCP 26 in another priority", ["switch-priority"], GOOD, {"apps": ((5, 5, 26),)}),
    ("the switch expects port 4791 in priority 3, the packets have none", ["switch-priority"], {}, {"apps": ((3, 3, 4791),)}),
    ("the packets' class has no share", ["switch-ets"], GOOD, {"percent": (100, 0, 0, 0, 0, 0, 0, 0)}),
    ("the switch port takes 1518 bytes", ["switch-mtu"], GOOD, {"frame": 1518}),
    ("the switch port takes just the MTU", [], GOOD, {"frame": 4200}),
]


class Fake(roan_doctor_net.Device):
    def __init__(self, settings):
        self.name, self.netdev, self.interface, self.mtu, self.settings = "roan9", "eth9", {}, 4200, settings

    def setting(self, name):
        return self.settings.get(name)


def imitated():
    with tempfile.TemporaryDirectory() as folder:
        def program(name, text):
            with open(os.path.join(folder, name), "w") as f:
                f.write("#!/bin/sh\n" + text)
            os.chmod(f.name, 0o755)

        def check(name, expected, settings):
            try:
                got = [f.code for f in roan_doctor_net.switch(Fake(settings), {})]
            except roan_doctor_net.NotChecked:
                got = ["not checked"]
            result("%s: %s" % (name, ", ".join(expected) or "healthy"), "" if got == expected else "found %s" % got)
        path, os.environ["PATH"] = os.environ["PATH"], "%s:%s" % (folder, os.environ["PATH"])
        for name, expected, settings, announced in CASES:
            program("lldpctl", "cat << 'E'\n%s\nE\n" % lldpctl(tlvs(**announced)))
            check("lldpd: " + name, expected, settings)
        program("lldpctl", "exit 1\n")
        program("lldptool", "cat << 'E'\n%sE\n" % LLDPTOOL)
        check("lldpad: " + CASES[0][0], [], GOOD)
        text = LLDPTOOL.replace("PFC enabled: 3", "PFC enabled: 4").replace("dscp:  26", "dscp:  8, 27").replace("Prio 3", "Prio 5").replace("9216", "1518").replace("50% 50%", "100% 0%")
        program("lldptool", "cat << 'E'\n%sE\n" % text)
        check("lldpad: all is different", ["switch-mtu", "switch-pfc", "switch-priority", "switch-ets"], GOOD)
        program("lldptool", "exit 255\n")
        check("PFC, and no daemon answers", ["not checked"], GOOD)
        check("neither PFC nor a daemon", [], {})
        os.environ["PATH"] = path


def send(found):
    """From h2, to the multicast address of LLDP."""
    def tlv(kind, text):
        return struct.pack("!H", kind << 9 | len(text)) + text

    def work():
        enter("h2")
        frame = bytes.fromhex("0180c200000e020000000099" "88cc")
        frame += tlv(1, bytes.fromhex("04020000000099")) + tlv(2, b"\x05swp7") + tlv(3, struct.pack("!H", 120)) + tlv(5, b"leaf1")
        frame += b"".join(tlv(127, oui + bytes([kind]) + text) for oui, kind, text in found) + tlv(0, b"")
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("v2", 0))
        raw.send(frame.ljust(60, b"\0"))
        return 0
    forked(work)


def received(text):
    return text in subprocess.run(["lldpctl", "-f", "json0", "v1"], capture_output=True, text=True).stdout


def real():
    if fails("command -v lldpd"):
        return skip("an lldpd that receives frames: switch-pfc, switch-mtu", "lldpd is not installed")
    sh("grep -q ^_lldpd: /etc/passwd || useradd -r _lldpd; mkdir -p /run/lldpd; cd /tmp; ip netns exec h1 $REPO/tools/roan cc set roan1 traffic_class=104 pfc_prio_mask=8")
    with subprocess.Popen(["ip", "netns", "exec", "h1", "lldpd", "-d", "-r"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        wait_for(lambda: not fails("lldpctl -f json0"), 60)
        for name, expected, announced in (("the switch agrees", set(), {}),
                                          ("PFC of another priority, 1518 bytes", {"switch-pfc", "switch-mtu"}, {"pfc": 1 << 4, "frame": 1518})):
            found = tlvs(**announced)
            send(found)
            wait_for(lambda f=found: received('"08,%02X"' % f[2][2][1]), 60)
            case("an lldpd that receives frames: " + name, expected, "", "", ns="h1")
        daemon.terminate()
    sh("cd /tmp; ip netns exec h1 $REPO/tools/roan cc set roan1 traffic_class=0 pfc_prio_mask=0")


def cases():
    imitated()
    real()
