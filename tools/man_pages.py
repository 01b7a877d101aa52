#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the manual pages roan(8), of the tool, and roan(4), of the module, from the texts that they have themselves.

    man_pages.py FOLDER        man8/roan.8: the tool's help and the format of /etc/roan; man4/roan.4: parameters of the module, of congestion
                               control and of PFC, with the meanings that the sources give. libroan's is roan(7).
"""
import importlib.machinery
import importlib.util
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
KERNEL = os.path.join(HERE, "../kernel")


def tool():
    loader = importlib.machinery.SourceFileLoader("roan", os.path.join(HERE, "roan"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("roan", loader))
    loader.exec_module(module)
    return module


def roff(text):
    return re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))


def page(name, section, about, parts):
    out = ['.\\" SPDX-License-Identifier: GPL-2.0. Made by tools/man_pages.py.', '.TH %s %d "" roan "RDMA over Ethernet"' % (name.upper(), section),
           ".SH NAME", "%s \\- %s" % (name, roff(about))]
    for title, text in parts:
        out += [".SH " + title, text]
    return "\n".join(out) + "\n"


def items(pairs):
    return "\n".join(".TP\n.B %s\n%s" % (roff(name), roff(text)) for name, text in pairs)


def literal(text):
    return ".nf\n%s\n.fi" % roff(text.rstrip())


def commands(text):
    """The help has a command, and its meaning beside it in the column that the first line shows, or below."""
    found = []
    column = re.match(r"    roan \S+ +", text).end()
    for line in text.split("\n"):
        if line.startswith("    roan "):
            beside = line[column - 1:column] == " "
            found.append([line[:column].strip() if beside else line.strip(), line[column:] if beside else ""])
        else:
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
    return [(name, text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")) for name, text in found]


def roan_8(roan):
    summary, usage, rest = roan.__doc__.strip().split("\n\n")[:3]
    link = roan.roan_link.__doc__
    return page("roan", 8, summary[:1].lower() + summary[1:].rstrip("."), [
        ("SYNOPSIS", ".B roan\n[\\fICOMMAND\\fR [\\fIARGUMENT\\fR...]]"),
        ("COMMANDS", items(commands(usage))),
        ("DESCRIPTION", roff(rest)),
        ("FILES", items([("/etc/roan/IF.conf", link.split("\n\n")[0])]) + "\n" + literal(link.split("\n\n")[1]) + "\n.PP\n" +
         roff(link.split("\n\n")[2].replace("tools/systemd/", "/lib/udev/rules.d/")) + "\n.PP\n" +
         items([("/usr/share/roan/answer-rxe.conf", "A file for /etc/modprobe.d: roan in place of rdma_rxe.")])),
        ("EXIT STATUS", "0; 1 after a message that begins with \\(lqroan:\\(rq; 2: the arguments are wrong; 130: ended by Ctrl-C (0 for what shows figures). "
         "'roan doctor': the number of faults, at most 100, or 125. 'roan vm': that of its command, 125, or 130."),
        ("SEE ALSO", ".BR roan (4),\n.BR roan (7),\n.BR rdma\\-link (8)")])


def module_parameters():
    found = []
    for folder, _, names in os.walk(KERNEL):
        for name in sorted(n for n in names if n.endswith(".c")):
            with open(os.path.join(folder, name)) as f:
                found += re.findall(r'^MODULE_PARM_DESC\((\w+), "(.*)"\);', f.read(), re.M)
    return found


def cc_parameter(p):
    return p.meaning + ("" if p.high == 2**32 - 1 else " (%d to %d%s)" % (p.low, p.high, p.unit and "; " + p.unit))


def roan_4(roan):
    parameters = sorted(roan.parameters().items())
    return page("roan", 4, "kernel module: RDMA (RoCE v2) over any network interface", [
        ("SYNOPSIS", ".B modprobe roan\n[answer_rxe=1]\n.br\n.B rdma link add\n.I DEV\n.B type roan netdev\n.I IF"),
        ("DESCRIPTION", "Each device is an RDMA device on a network interface that carries IP. Its packets are UDP packets to port 4791.\n"
         ".BR roan (8)\nkeeps devices over a reboot and shows them."),
        ("PARAMETERS OF THE MODULE", items(module_parameters())),
        ("PARAMETERS OF A DEVICE", "In /sys/class/infiniband/DEV/ports/1/cc_param; shown and set by 'roan cc'.\n" +
         items((name, cc_parameter(p)) for name, p in parameters)),
        ("SEE ALSO", ".BR roan (7),\n.BR roan (8),\n.BR rdma\\-link (8),\n.BR rdma\\-statistic (8)")])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    roan = tool()
    for name, text in ("man8/roan.8", roan_8(roan)), ("man4/roan.4", roan_4(roan)):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as f:
            f.write(text)
            os.fchmod(f.fileno(), 0o644)	# whatever umask root has


if __name__ == "__main__":
    main()
