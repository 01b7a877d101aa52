# SPDX-License-Identifier: GPL-2.0
"""What the switch at the other end of an interface's cable says of itself by LLDP, for `roan doctor`: maximum frame size (802.3), PFC,
application priorities and ETS (802.1Q, DCBX). From lldpd, which shows these TLVs undecoded, or from lldpad, which shows text.
"""
import json
import re

from roan_doctor_base import NotChecked, below, listing, output

TSA_ETS = 2
DSCP, UDP, UDP_OR_TCP = 5, 3, 4		# selectors of application priorities


class Switch:
    """One neighbour. What it does not announce is None or empty."""
    def __init__(self, netdev, name):
        self.netdev, self.name = netdev, name
        self.frame = None	# bytes; some count the MTU, others the whole frame
        self.pfc = None		# bits: priorities with PFC
        self.prio = {}		# (selector, protocol) -> priority
        self.share = {}		# priority -> percentage of the link, of ETS

    def ets(self, classes, percent, kinds):
        """@classes: of each priority; @percent, @kinds (TSA): of each class."""
        self.share = {p: percent[c] for p, c in enumerate(classes) if kinds[c] == TSA_ETS}

    def tlv(self, subtype, b):
        """An organizationally specific TLV of 802.1, as bytes."""
        if subtype == 9 and len(b) >= 21:
            classes = [n for byte in b[1:5] for n in (byte >> 4, byte & 15)]
            if max(classes) < 8:
                self.ets(classes, b[5:13], b[13:21])
        elif subtype == 11 and len(b) >= 2:
            self.pfc = b[1]
        elif subtype == 12:
            for i in range(1, len(b) - 2, 3):
                self.prio[b[i] & 7, b[i + 1] << 8 | b[i + 2]] = b[i] >> 5

    def said(self):
        return self.frame or self.prio or self.share or self.pfc is not None


def value(node, *keys):
    """Of lldpctl's json0, in which everything is in lists."""
    for key in keys:
        node = (node.get(key) or [{}])[0]
    return node.get("value", "")


def from_lldpd(netdev):
    answer = json.loads(output("lldpctl", "-f", "json0", netdev))
    for i in (answer.get("lldp") or [{}])[0].get("interface", []):
        s = Switch(netdev, " ".join(w for w in (value(i, "chassis", "name") or value(i, "chassis", "id"), value(i, "port", "id")) if w))
        frame = value(i, "port", "mfs")
        s.frame = int(frame) if frame.isdigit() else None
        for group in i.get("unknown-tlvs", []):
            for t in group.get("unknown-tlv", []):
                if t["oui"].upper() == "00,80,C2":
                    s.tlv(int(t["subtype"]), bytes.fromhex(t.get("value", "").replace(",", "")))
        yield s


def from_lldpad(netdev):
    """One neighbour; a heading, with its lines indented, is a TLV."""
    text = output("lldptool", "-t", "-n", "-i", netdev)
    tlvs = dict(re.findall(r"^(\w.*) TLV\n((?:[ \t].*\n)*)", text, re.M))
    if not tlvs:
        return

    def words(name):
        return " ".join(tlvs.get(name, "").split())
    s = Switch(netdev, " ".join(w for w in (words("System Name") or words("Chassis ID"), words("Port ID")) if w))
    s.frame = int(words("Maximum Frame Size") or 0) or None
    pfc = re.search(r"PFC enabled: ([\d ,]+|none)", tlvs.get("IEEE 8021QAZ PFC", ""))
    if pfc:
        s.pfc = sum(1 << int(n) for n in re.findall(r"\d", pfc[1]))
    for prio, dscps in re.findall(r"Prio:\s*(\d)\s+dscp:\s*([\d, ]+)", tlvs.get("IEEE 8021QAZ APP", "")):
        s.prio.update({(DSCP, int(n)): int(prio) for n in re.findall(r"\d+", dscps)})
    for prio, selector, protocol in re.findall(r"Prio (\d)\s+Sel (\d)\s.*: (\d+)", tlvs.get("IEEE 8021QAZ APP", "")):
        s.prio[int(selector), int(protocol)] = int(prio)
    ets = tlvs.get("IEEE 8021QAZ ETS Configuration", "")
    rows = {k: re.findall(pattern, (re.search(k + r": (.*)", ets) or ["", ""])[1])
            for k, pattern in (("PRIO_MAP", r"\d:(\d)"), ("TC Bandwidth", r"(\d+)%"), ("TSA_MAP", r"\d:(\w+)"))}
    if all(len(r) == 8 for r in rows.values()):
        s.ets([int(c) for c in rows["PRIO_MAP"]], [int(n) for n in rows["TC Bandwidth"]], [TSA_ETS if k == "ets" else 0 for k in rows["TSA_MAP"]])
    yield s


def below_it(netdev):
    """The interface, and those below a bond, bridge, VLAN or Hyper-V's netvsc: LLDP, queues and interrupts are theirs."""
    lower = [n[len("lower_"):] for n in listing(below("sys/class/net", netdev)) if n.startswith("lower_")]
    return [netdev] + [n for l in lower for n in below_it(l)]


def switches(netdev):
    """Neighbours of the interface that announce any of the above. Raises NotChecked if no daemon answers."""
    found, answered = [], False
    for n in below_it(netdev):
        for daemon in from_lldpd, from_lldpad:
            try:
                found += [s for s in daemon(n) if s.said()]
                answered = True
                break
            except (NotChecked, ValueError, KeyError, IndexError):
                pass
    if not answered:
        raise NotChecked("neither lldpd nor lldpad answers, so what the switch announces is unknown")
    return found
