# SPDX-License-Identifier: GPL-2.0
"""A live view of roan devices and their queue pairs: which are busy, and what holds each back.

    roan top [DEV] [-i SECONDS] [-s COLUMN] [--once [--json]]

    r t x c a p o d   sort by rate, RTT, retransmissions, CNPs, alpha, paused time, owner, what it waits for
    up, down          choose a queue pair
    Enter             its history as a plot; left, right: another figure
    w                 why it is slow
    Esc               back to the list         space: stop, go on         q: quit

Rates are in Gb/s, resent and CNPs are packets a second. waits: what holds back the next packet of a queue pair most of the time.

Needs root (CAP_NET_ADMIN) and, except with --once, python3-urwid. Works in any terminal of 80x24, without colours.
"""
import argparse
import json
import sys
import time

from roan_figures import LOST, NAMES, REASONS, Refused, Watch, in_flight, number, owner, window

GLANCES = 5		# per interval: what holds a queue pair back changes faster than its rate
KEYS = {"r": "rate", "t": "rtt", "x": "resent", "c": "cnps", "a": "alpha", "p": "paused", "o": "owner", "d": "waits"}
PLOTS = [("tx_gbps", "sent and acknowledged, Gb/s"), ("rx_gbps", "received, Gb/s"), ("rtt_us", "round trip, us"), ("in_flight", "packets in flight"),
         ("resent", "packets sent again per second"), ("cnps", "CNPs received per second"), ("alpha", "alpha of DCQCN"),
         ("paused", "time paused by PFC, %")]
ROW = "%8s %-6.6s %-12.12s %6s %6s %6s %6s %4s %5s %4s %-6s"
HEAD = ROW % ("QP", "device", "owner", "sent", "rcvd", "RTT us", "resent", "CNPs", "alpha", "paus", "waits")


def short(value, width):
    """At most so many characters: fewer digits behind the point, else thousands or millions."""
    if not value:
        return "0"
    for text in ("%.3f" % value, "%.1f" % value, "%.0f" % value, "%.0fk" % (value / 1e3), "%.0fM" % (value / 1e6)):
        if len(text) <= width:
            return text
    return "+" * width


class Model:
    """What is shown: independent of the terminal. lines() returns the screen as text."""

    def __init__(self, watch, sort="rate", interval=1.0):
        self.watch, self.sort, self.interval = watch, sort, interval
        self.view, self.chosen, self.plot, self.stopped, self.note = "list", None, 0, False, ""

    def order(self):
        def key(k):
            f = self.watch.figures(k) or {}
            value = {"rate": -f.get("tx_gbps", 0) - f.get("rx_gbps", 0), "rtt": -f.get("rtt_us", 0), "resent": -f.get("resent", 0),
                     "cnps": -f.get("cnps", 0), "alpha": -f.get("alpha", 0), "paused": -f.get("paused", 0),
                     "owner": owner(self.watch.qps[k]), "waits": self.watch.verdict(k)}[self.sort]
            return value, k
        return sorted(self.watch.qps, key=key)

    def lines(self, width, height):
        order = self.order()
        if self.chosen not in self.watch.qps:
            self.chosen, self.view = (order[0] if order else None), "list"
        body = {"list": self.list, "plot": self.history, "why": self.why}[self.view](order, width, height - 3)
        title = "roan top: %d device%s, %d queue pairs, every %g s, by %s%s" % (
            len(self.watch.devices), "" if len(self.watch.devices) == 1 else "s", len(order), self.interval, self.sort, ", stopped" if self.stopped else "")
        keys = {"list": "sort by: r t x c a p o d   up down   Enter plot   w why   space stop   q quit",
                "plot": "left right: another figure   w why   Esc list   q quit",
                "why": "Enter plot   Esc list   q quit"}[self.view]
        body = body[:max(0, height - 3)]
        return [s[:width] for s in [title, ""] + body + [""] * (height - 3 - len(body)) + [self.note or keys]][:height]

    # ---- the list ----

    def list(self, order, width, height):
        rows = ["  %-8s %-8s %-10s %9s %9s %9s %8s %8s" % ("device", "state", "algorithm", "sent Gb/s", "rcvd Gb/s", "resent/s", "dropped", "paused")]
        for name, dev in sorted(self.watch.devices.items()):
            r = self.watch.device_rates.get(name)
            rows.append("  %-8.8s %-8.8s %-10.10s " % (name, dev["state"], dev["algo"]) + (
                "%9s %9s %9s %8s %7.0f%%" % (short(r["tx_gbps"], 9), short(r["rx_gbps"], 9), short(r["resent"], 9),
                                             short(r["dropped"], 8), r["paused"]) if r else ""))
        most = max(3, height // 3)
        if len(rows) > most and len(rows) + 2 + max(1, len(order)) > height:
            rows[most - 1:] = ["  ... and %d more" % (len(rows) - most + 1)]
        rows += ["", " " + HEAD]
        room = max(1, height - len(rows))
        at = order.index(self.chosen) if self.chosen else 0
        first = max(0, min(at - room // 2, len(order) - room))
        for key in order[first:first + room]:
            rows.append((">" if key == self.chosen else " ") + self.row(key))
        if not order:
            rows.append("  no connected queue pair")
        return rows

    def row(self, key):
        f, qp = self.watch.figures(key), self.watch.qps[key]
        cells = [short(f[n], w) for n, w in (("tx_gbps", 6), ("rx_gbps", 6), ("rtt_us", 6), ("resent", 6), ("cnps", 4))] + \
                ["%.3f" % f["alpha"], "%.0f%%" % f["paused"]] if f else [""] * 7
        name = owner(qp)
        if len(name) > 12:		# the PID is what tells two programs apart
            comm, _, pid = name.rpartition("/")
            name = comm[:11 - len(pid)] + "/" + pid
        return ROW % ((key[1], key[0], name) + tuple(cells) + (self.watch.verdict(key),))

    # ---- one queue pair ----

    def about(self):
        dev, qpn = self.chosen
        qp = self.watch.qps[self.chosen]
        return "QP %d of %s, %s, %s%s" % (qpn, dev, qp["type"], owner(qp), ", to QP %d of its peer" % qp["rqpn"] if "rqpn" in qp else "")

    def history(self, order, width, height):
        name, what = PLOTS[self.plot]
        samples = list(self.watch.history[self.chosen])[-(width - 9):]
        return [self.about(), "%s, last %d s" % (what, round(samples[-1][0] - samples[0][0]) if samples else 0)] + \
            plot([f[name] for _, f in samples], width - 9, height - 4)

    def why(self, order, width, height):
        shares, verdict, f = self.watch.shares(self.chosen), self.watch.verdict(self.chosen), self.watch.figures(self.chosen)
        known = {name: (meaning, remedy) for name, _, meaning, remedy in REASONS}
        known[LOST[0]] = LOST[1:]
        lines = [self.about(), "", "%s: %s" % (verdict, known[verdict][0]), "    " + known[verdict][1], "", "share of the last %d looks" % len(self.watch.looks[self.chosen])]
        for name in NAMES:
            lines.append("  %4.0f %%  %-7s %s" % (100 * shares[name], name, known[name][0]))
        return lines + [""] + self.evidence(self.watch.qps[self.chosen], f)

    @staticmethod
    def evidence(qp, f):
        def gbps(name):
            return "%.3f Gb/s" % (number(qp, name) / 1e6) if number(qp, name) else "none"
        lines = ["requests: %d posted, %d taken, of these %d not yet sent; READs %d of %d" % tuple(
                     number(qp, n) for n in ("sq_posted", "sq_works", "sq_unsent", "rd_outstanding", "max_rd_atomic")),
                 "packets in flight: %d of %d" % (in_flight(qp), window(qp)),
                 "%s: rate limit %s, cap %s; %d CNPs, %d cuts" % (qp.get("cc", "none"), gbps("rate_kbps"), gbps("cap_kbps"), number(qp, "cnps"),
                                                                  number(qp, "cuts"))]
        if f:
            lines.append("per second: %s sent again, %s RNR NAKs, %s timeouts; paused %.0f %%" % (
                short(f["resent"], 7), short(f["rnr"], 7), short(f["timeouts"], 7), f["paused"]))
        return lines

    # ---- keys ----

    def key(self, key):
        """False: quit."""
        self.note = ""
        order = self.order()
        at = order.index(self.chosen) if self.chosen in order else 0
        if key in ("q", "Q"):
            return False
        if key in KEYS and self.view == "list":
            self.sort = KEYS[key]
        elif key == " ":
            self.stopped = not self.stopped
        elif key in ("up", "down", "page up", "page down", "home", "end") and order:
            step = {"up": -1, "down": 1, "page up": -10, "page down": 10, "home": -len(order), "end": len(order)}[key]
            self.chosen = order[max(0, min(len(order) - 1, at + step))]
        elif key == "enter" and self.chosen:
            self.view = "plot"
        elif key == "w" and self.chosen:
            self.view = "why"
        elif key in ("left", "right") and self.view == "plot":
            self.plot = (self.plot + (1 if key == "right" else -1)) % len(PLOTS)
        elif key in ("esc", "backspace"):
            self.view = "list"
        return True


def plot(values, width, height):
    """A plot in plain characters: a column for each value, the newest on the right."""
    top = max(values, default=0) or 1
    rows = []
    for y in range(height, 0, -1):
        label = short(top * y / height, 7) if y in (height, height // 2) else ""
        rows.append("%7s |" % label + "".join("#" if v * height >= (y - 0.5) * top else " " for v in values).rjust(width))
    return rows + ["%7s +" % "0" + "-" * width]


# ---- terminal ----

def run(model):
    """The terminal part, with urwid: raw keys, resizing, redrawing of what changed."""
    try:
        import urwid
    except ImportError:
        raise Refused("python3-urwid is not installed; on Debian: apt install python3-urwid. --once needs no such library")

    class Terminal(urwid.raw_display.Screen):
        def get_cols_rows(self):
            cols, rows = super().get_cols_rows()
            self.maxrow = rows or 24	# a serial line knows no size
            return cols or 80, self.maxrow

    class View(urwid.Widget):
        _sizing = frozenset(["box"])
        _selectable = True

        def render(self, size, focus=False):
            text = model.lines(*size)
            marks = [[("head" if i == 0 or i == size[1] - 1 else "chosen" if line.startswith(">") else None, size[0])] for i, line in enumerate(text)]
            return urwid.TextCanvas([line.encode("ascii", "replace").ljust(size[0]) for line in text], marks, maxcol=size[0])

        def keypress(self, size, key):
            if not model.key(key):
                raise urwid.ExitMainLoop()
            self._invalidate()

    def tick(loop, left):
        if not model.stopped:
            try:
                if not left:
                    model.watch.look()
                    model.note = ""
                    view._invalidate()
                elif model.watch.seconds < model.interval / 4 / GLANCES:
                    model.watch.glance()
            except Refused as e:
                model.note = str(e)
                view._invalidate()
        loop.set_alarm_in(model.interval / GLANCES, tick, (left or GLANCES) - 1)

    view = View()
    loop = urwid.MainLoop(view, palette=[("head", "standout", ""), ("chosen", "standout", "")], screen=Terminal(), handle_mouse=False)
    loop.set_alarm_in(model.interval / GLANCES, tick, GLANCES - 1)
    loop.run()


def as_json(model):
    watch = model.watch
    return {"devices": [dict(dev, rates=watch.device_rates.get(name)) for name, dev in sorted(watch.devices.items())],
            "queue_pairs": [dict(device=k[0], qpn=k[1], owner=owner(watch.qps[k]), waits=watch.verdict(k), shares=watch.shares(k),
                                 figures=watch.figures(k), attributes={n: v for n, v in watch.qps[k].items() if not n.endswith("psn")})
                            for k in model.order()]}


def main(words):
    parser = argparse.ArgumentParser(prog="roan top", usage="\n" + __doc__.split("\n\n", 1)[1])
    parser.add_argument("dev", nargs="?")
    parser.add_argument("-i", dest="interval", type=float, default=1.0)
    parser.add_argument("-s", dest="sort", choices=sorted(KEYS.values()), default="rate")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(words)
    if not 0.05 <= args.interval <= 3600:
        raise Refused("-i: seconds from 0.05 to 3600")
    model = Model(Watch(args.dev), args.sort, args.interval)
    if not args.once:
        if args.json:
            raise Refused("--json needs --once")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise Refused("not a terminal; for scripts: roan top --once --json")
        run(model)
        return
    for left in reversed(range(GLANCES)):
        time.sleep(args.interval / GLANCES)
        model.watch.glance() if left else model.watch.look()
    if args.json:
        print(json.dumps(as_json(model), indent=1))
    else:
        print("\n".join(line.rstrip() for line in model.lines(80, len(model.watch.qps) + len(model.watch.devices) + 9)[:-1]).rstrip())
