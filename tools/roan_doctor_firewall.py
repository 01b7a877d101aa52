# SPDX-License-Identifier: GPL-2.0
"""What the nftables rules of this namespace do to RoCE packets of an interface. Rules of iptables-nft are among them.

Each rule is evaluated for a UDP packet of port 4791. A match is True, False, or None where it depends on what is not
known: the peer's address, marks, rates, connection tracking. A packet that arrives passes the hooks ingress, prerouting
and input; one that leaves, output, postrouting and egress.
"""
import ipaddress

from roan_doctor_base import Finding, parsed

PORT = 4791
HOOKS = {"ingress": "in", "prerouting": "in", "input": "in", "output": "out", "postrouting": "out", "egress": "out"}
WHERE = {"in": "arrive", "out": "leave"}
NUMBERS = {"udp": 17, "ipv4": 2, "ip": 0x800, "ipv6": 10, "ip6": 0x86dd, "root": 0, "icmp": 1, "igmp": 2, "tcp": 6, "dccp": 33, "gre": 47,
           "esp": 50, "ah": 51, "icmpv6": 58, "ipv6-icmp": 58, "ospf": 89, "pim": 103, "comp": 108, "vrrp": 112, "sctp": 132, "udplite": 136}


class Packet:
    """Facts of a RoCE packet. A key that is missing is not known."""
    def __init__(self, netdev, direction, addresses, v6, state):
        self.state = state	# of connection tracking; None: not known
        self.direction, self.netdev, self.v6 = direction, netdev, v6
        mine = "daddr" if direction == "in" else "saddr"
        self.facts = {"l4proto": 17, "nfproto": 10 if v6 else 2, "protocol": 0x86dd if v6 else 0x800, "dport": PORT, "sport": (0xc000, 0xffff),
                      mine: addresses, "skuid": False, "skgid": False, "iifname": netdev if direction == "in" else "",
                      "oifname": netdev if direction == "out" else ""}
        self.facts.update(iif=self.facts["iifname"], oif=self.facts["oifname"])

    def value(self, left):
        if "&" in left:			# a part of a field: not known, but a protocol that does not apply ends the rule
            return False if isinstance(left["&"][0], dict) and self.value(left["&"][0]) is False else None
        if "payload" in left:
            protocol, field = left["payload"].get("protocol"), left["payload"].get("field")
            if protocol in ("tcp", "icmp", "icmpv6", "sctp", "dccp", "udplite") or protocol == ("ip" if self.v6 else "ip6"):
                return False
            if protocol == "ether":	# its addresses are not those of IP
                return None
            if protocol in ("ip", "ip6") and field in ("protocol", "nexthdr"):
                return 17
            return self.facts.get(field)
        if left.get("ct", {}).get("key") == "state":
            return self.state	# each direction of a QP is a flow of its own
        if left.get("ct", {}).get("key") == "status":
            return "confirmed"	# not of a translated flow: that is code nat
        if left.get("fib", {}).get("result") == "oif" and "saddr" in left["fib"]["flags"]:
            return True		# the peer has a route back; which one is not known
        if "meta" in left:
            return self.facts.get(left["meta"].get("key"))
        return None


def equal(have, want, sets):
    """Whether a value is what a rule names; None: not known."""
    if isinstance(want, str) and want.startswith("@"):
        return equal(have, {"set": sets.get(want[1:], [])}, sets)
    if isinstance(want, list):
        want = {"set": want}
    if isinstance(want, dict):
        if "set" in want:
            members = want["set"] if isinstance(want["set"], list) else [want["set"]]
            results = [equal(have, m.get("elem", {}).get("val", m) if isinstance(m, dict) else m, sets) for m in members]
            return True if True in results else None if None in results else False
        if "range" in want:
            low, high = want["range"]
            if isinstance(have, (int, tuple)) and isinstance(low, int):
                a, b = have if isinstance(have, tuple) else (have, have)
                return True if low <= a and b <= high else False if b < low or a > high else None
            return None
        if "prefix" in want and isinstance(have, list):
            net = ipaddress.ip_network("%s/%d" % (want["prefix"]["addr"], want["prefix"]["len"]), strict=False)
            inside = [ipaddress.ip_address(a) in net for a in have]
            return all(inside) if all(inside) or not any(inside) else None
        return None
    if isinstance(have, list):
        return want in have if len(have) == 1 or want not in have else None
    if isinstance(have, tuple):
        return None if isinstance(want, int) and have[0] <= want <= have[1] else False
    if isinstance(have, str) and isinstance(want, str) and want.endswith("*"):
        return have.startswith(want[:-1])
    if isinstance(have, int) and isinstance(want, str):
        want = NUMBERS.get(want, int(want) if want.isdigit() else want)
        return have == want if isinstance(want, int) else None
    return have == want


def matches(match, packet, sets):
    have = packet.value(match["left"]) if isinstance(match["left"], dict) else None
    if have is False:		# the expression does not apply to the packet, which ends the rule
        return False
    if have is None:
        return None
    result = equal(have, match["right"], sets)
    if match["op"] in ("==", "in"):
        return result
    if match["op"] == "!=":
        return None if result is None else not result
    if match["op"] in ("<", "<=", ">", ">=") and isinstance(have, int) and isinstance(match["right"], int):
        return {"<": have < match["right"], "<=": have <= match["right"], ">": have > match["right"], ">=": have >= match["right"]}[match["op"]]
    return None


def chosen(vmap, packet, sets):
    """The verdicts of a verdict map that the packet may get, the default one last. With each: True, or None if not known."""
    have = packet.value(vmap["key"])
    verdicts = vmap["data"]["set"] if isinstance(vmap["data"], dict) else sets.get(vmap["data"][1:], [])
    for key, verdict in sorted(verdicts, key=lambda v: v[0] == "*") if have is not False else []:
        key = key.get("elem", {}).get("val", key) if isinstance(key, dict) else key
        result = True if key == "*" else None if have is None else equal(have, key, sets)
        if result is not False:
            yield verdict, result
        if result:
            return


class Ruleset:
    def __init__(self, objects):
        self.chains, self.rules, self.sets = [], {}, {}
        for o in objects:
            if "chain" in o:
                self.chains.append(o["chain"])
            elif "rule" in o:
                r = o["rule"]
                self.rules.setdefault((r["family"], r["table"], r["chain"]), []).append(r)
            elif "set" in o or "map" in o:
                s = o.get("set") or o["map"]
                self.sets.setdefault((s["family"], s["table"]), {})[s["name"]] = s.get("elem", [])

    def walk(self, key, packet, sure, effects, depth=0):
        """How packets may leave a chain: [(drop, accept or None, the rule)]. None: they go on behind the chain. `effects` collects what
        else may happen to them. @sure: they get here."""
        sets, ends = self.sets.get(key[:2], {}), []
        for rule in self.rules.get(key, []):
            certain = True	# for packets that get to this rule
            statements = [(s, True) for s in rule.get("expr", [])]
            while statements:
                statement, result = statements.pop(0)
                kind = next(iter(statement))
                value = statement[kind]
                certain = certain and result is True
                every = certain and sure and all(what == "drop" for what, _ in ends)	# that is not dropped
                if kind == "match":
                    result = matches(value, packet, sets)
                    if result is False:
                        break
                    certain = certain and result is True
                elif kind == "vmap":
                    statements[:0] = chosen(value, packet, sets)
                elif kind in ("limit", "xt", "lookup", "quota", "ct count", "meter") or (kind == "set" and value.get("stmt")):
                    certain = False
                elif kind == "notrack":
                    packet.state = "untracked" if every else None
                elif kind in ("drop", "reject", "accept", "return"):
                    ends.append(({"reject": "drop", "return": None}.get(kind, kind), rule if kind != "return" else None))
                    if certain:
                        return ends
                elif kind in ("jump", "goto") and depth < 16:
                    inner = self.walk(key[:2] + (value["target"],), packet, every, effects, depth + 1)
                    ends += [e for e in inner if e[0] or kind == "goto"]
                    if certain and (kind == "goto" or all(what for what, _ in inner)):
                        return ends
                elif kind in ("queue", "tproxy"):
                    ends.append(("drop", rule))
                elif kind == "mangle":
                    effects.append((value, rule))
                elif kind in ("masquerade", "snat", "dnat", "redirect") and every:
                    effects.append(("nat", rule))
        return ends + [(None, None)]

    def chain(self, chain, packet):
        """(what, rule or None) of a base chain: what is drop, maybe, nat or ecn."""
        effects = []
        ends = self.walk((chain["family"], chain["table"], chain["name"]), packet, True, effects)
        drops = [rule for what, rule in ends if (what or chain.get("policy")) == "drop"]
        if drops:
            yield ("drop", drops[-1]) if len(drops) == len(ends) else ("maybe", drops[0])
        for effect, rule in effects:
            if effect == "nat" and chain.get("type") == "nat":
                yield "nat", rule
            if isinstance(effect, dict) and effect.get("key", {}).get("payload", {}).get("field") == "ecn":
                yield "ecn", rule


def families(netdev, bridged):
    return ["ip", "ip6", "inet", "netdev"] + (["bridge"] if bridged else [])


CODES = {"drop": "firewall-drop", "maybe": "firewall-maybe", "nat": "nat", "ecn": "ecn-mangled"}


def place(chain, rule):
    return "nft table %s %s, chain %s, %s" % (chain["family"], chain["table"], chain["name"], "handle %d" % rule["handle"] if rule else "policy drop")


def remedy(chain, rule):
    if rule:
        return "nft insert rule %s %s %s position %d udp dport 4791 accept; or remove it: nft delete rule %s %s %s handle %d" % (
            (rule["family"], rule["table"], rule["chain"], rule["handle"]) * 2)
    return "nft add rule %s %s %s udp dport 4791 accept" % (chain["family"], chain["table"], chain["name"])


def manager(ruleset, chain, netdev, direction):
    """The command of firewalld or ufw, if one of them made the chain's table: it removes rules of others, or refuses them."""
    if chain["table"] == "firewalld":
        return "firewall-cmd --add-port=4791/udp, with --zone=ZONE if firewall-cmd --get-zone-of-interface=%s prints one; " \
               "with --permanent also after a reload" % netdev
    if any((c["family"], c["table"]) == (chain["family"], chain["table"]) and c["name"].startswith(("ufw-", "ufw6-")) for c in ruleset.chains):
        return "ufw allow %s4791/udp" % ("out " if direction == "out" else "")
    return None


def judge(ruleset, netdev, addresses, bridged):
    """Findings for an interface with these addresses."""
    seen = set()
    for v6 in (False, True):
        mine = [a for a in addresses if (":" in a) == v6]
        if not mine:
            continue
        states = {"in": "new", "out": "new"}
        for chain in sorted((c for c in ruleset.chains if c.get("hook") in HOOKS), key=lambda c: (list(HOOKS).index(c["hook"]), c.get("prio", 0))):
            direction = HOOKS[chain["hook"]]
            if chain["family"] not in families(netdev, bridged) or chain["family"] == ("ip" if v6 else "ip6"):
                continue
            if chain["family"] == "netdev" and netdev not in (chain.get("dev"), *(chain.get("dev") if isinstance(chain.get("dev"), list) else [])):
                continue
            packet = Packet(netdev, direction, mine, v6, states[direction])
            if chain["family"] == "bridge":
                for key in ("iifname", "iif", "oifname", "oif"):
                    packet.facts.pop(key)
            found = list(ruleset.chain(chain, packet))
            states[direction] = packet.state
            for what, rule in found:
                where = place(chain, rule)
                if (what, where) not in seen:
                    seen.add((what, where))
                    allow = manager(ruleset, chain, netdev, direction) if what in ("drop", "maybe") else None
                    finding = Finding(CODES[what], netdev, "packets that %s; %s" % (WHERE[direction], where), remedy=remedy(chain, rule))
                    finding.remedy = allow or finding.remedy
                    yield finding


def rules():
    return Ruleset(parsed("nft", "-j", "list", "ruleset").get("nftables", []))
