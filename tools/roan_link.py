# SPDX-License-Identifier: GPL-2.0
"""Links that come back after a reboot: one file for each interface, which `roan add` writes and `roan up` applies.

    /etc/roan/eth0.conf    the device of interface eth0, one NAME=VALUE a line; # begins a comment
        device=roan0           name of the device
        algo=dcqcn             a parameter of congestion control, as `roan cc set` takes it; any number of them
        rpg_ai_rate=50

udev starts roan-link@IF.service, which is `roan up --missing IF`, for each interface that has a file, when the interface appears or
gets this name, and at its later events (tools/systemd/90-roan.rules). So it does not matter which program configures the network, nor when.
"""
import contextlib
import fcntl
import json
import os
import re
import subprocess
import time

from roan_figures import SYSFS, Refused, iproute

FOLDER = os.environ.get("ROAN_CONFIG", "/etc/roan")
LEAVING = 5		# seconds to wait for a device of another namespace to go, after its interface has come from there
NAME = re.compile(r"[^/\s]{1,15}")
DEVICE = re.compile(r"[A-Za-z][\w.:-]{0,62}", re.ASCII)


# ---- files ----

def path(interface):
    if not NAME.fullmatch(interface) or interface in (".", ".."):
        raise Refused("'%s' is not the name of an interface" % interface)
    return os.path.join(FOLDER, interface + ".conf")


def configured():
    """Names of the interfaces that have a file."""
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    return sorted(n[:-len(".conf")] for n in names if n.endswith(".conf") and not n.startswith("."))


def load(interface):
    """The device's name, and the settings as words NAME=VALUE."""
    device, words = None, []
    try:
        with open(path(interface), encoding="utf-8", errors="replace") as f:
            lines = [line.split("#")[0].strip() for line in f]
    except FileNotFoundError:
        raise Refused("there is no %s; 'roan add %s' makes it" % (path(interface), interface))
    for line in filter(None, lines):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not value:
            raise Refused("%s: '%s' is not NAME=VALUE" % (path(interface), line))
        if name == "device":
            device = value
        else:
            words.append("%s=%s" % (name, value))
    if not device:
        raise Refused("%s has no line device=NAME" % path(interface))
    return device, words


def device_of(interface):
    """The device's name; None if the file has none, which is an error of that interface only."""
    try:
        return load(interface)[0]
    except Refused:
        return None


def store(interface, device, words):
    """Written whole or not at all."""
    new = os.path.join(FOLDER, ".%s.new" % interface)
    with open(new, "w") as f:
        f.write("# The RDMA device of %s, made by 'roan add'. Format: roan(8). After a change: 'roan up %s'\n" % (interface, interface))
        f.write("\n".join(["device=" + device] + words) + "\n")
        os.fchmod(f.fileno(), 0o644)
        f.flush()
        os.fsync(f.fileno())
    os.rename(new, path(interface))


@contextlib.contextmanager
def locked():
    """One `roan add`, `del`, `up` or `down` at a time: udev starts some, also while a user does."""
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    fd = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


# ---- devices ----

def rdma(*words):
    done = iproute("rdma", *words)
    if done.returncode:
        raise Refused("rdma %s: %s; the kernel's log may say why: dmesg | tail -n 1" % (" ".join(words), done.stderr.strip()))
    return done.stdout


def devices():
    """Interface -> roan device, of this network namespace."""
    links = json.loads(rdma("-j", "link", "show") or "[]")
    return {link["netdev"]: link["ifname"] for link in links
            if "netdev" in link and os.path.isdir(os.path.join(SYSFS, link["ifname"], "ports/1/cc_param"))}


def present(interface):
    return os.path.exists(os.path.join("/sys/class/net", interface))


def load_module():
    if os.path.exists("/sys/module/roan"):
        return
    done = subprocess.run(["modprobe", "roan"], capture_output=True, text=True)
    if done.returncode:
        raise Refused("the module roan is not loaded: %s; it comes with package roan-dkms, or by 'make install'" % done.stderr.strip())


def make(interface, device):
    """Makes the device unless it exists. Returns whether it was made. An interface that comes from another namespace, as of a
    container that has ended, still has the device that it had there, which is being removed."""
    load_module()
    until = time.monotonic() + LEAVING
    while True:
        there = devices().get(interface)
        if there == device:
            return False
        try:
            if there:
                raise Refused("%s has device %s, not %s; 'rdma link del %s' removes it" % (interface, there, device, there))
            rdma("link", "add", device, "type", "roan", "netdev", interface)
            return True
        except Refused as e:
            if not there and "File exists" not in str(e) or time.monotonic() > until:
                raise
        time.sleep(0.2)


def allowed():
    """udev reports interfaces of the first network namespace only: a link of another one would not come back."""
    if os.geteuid():
        raise Refused("needs root")
    try:
        same = os.stat("/proc/self/ns/net").st_ino == os.stat("/proc/1/ns/net").st_ino
    except PermissionError:		# root of a container that may not look at its first process
        return
    if not same:
        raise Refused("devices come back in the first network namespace only; in this one: rdma link add DEV type roan netdev IF")


def free_name(taken):
    return next(n for n in ("roan%d" % i for i in range(len(taken) + 1)) if n not in taken)


# ---- commands. check(DEV or None, WORDS) returns pairs of name and value; write(DEV, PAIRS) sets them ----

def add(args, check, write):
    interface, file = args.interface, path(args.interface)
    allowed()
    new = [w for word in args.settings for w in word.split()]
    check(None, new)
    if args.name and not DEVICE.fullmatch(args.name):
        raise Refused("'%s' is not the name of a device: letters, digits, . _ : -" % args.name)
    with locked():
        load_module()
        configured_device, old = load(interface) if os.path.exists(file) else (None, [])
        words = list({w.partition("=")[0]: w for w in old + new}.values())
        words.sort(key=lambda w: not w.startswith("algo="))	# other parameters belong to the algorithm
        others = {device_of(i): i for i in configured() if i != interface}
        there = devices().get(interface)
        device = args.name or there or configured_device or \
            free_name(set(others) | set(os.listdir(SYSFS) if os.path.isdir(SYSFS) else []))
        if device in others:
            raise Refused("%s is the device of %s; 'roan del %s' removes it" % (device, others[device], others[device]))
        made = False
        try:
            if present(interface):
                made = make(interface, device)
                write(device, check(device, words))
            store(interface, device, words)
        except BaseException:
            if made:
                rdma("link", "del", device)
            raise
    print("%s on %s%s; kept in %s" % (device, interface, "" if present(interface) else ", when it appears", file))


def delete(args):
    allowed()
    with locked():
        owners = [args.what] if args.what in configured() else [i for i in configured() if device_of(i) == args.what]
        if not owners:
            raise Refused("no file in %s is for %s; 'rdma link del DEV' removes a device that has none" % (FOLDER, args.what))
        unmake(owners[0])
        os.unlink(path(owners[0]))


def unmake(interface):
    """Also if the interface was renamed: it kept its device."""
    there = devices()
    device = there.get(interface) or device_of(interface)
    if device in there.values():
        rdma("link", "del", device)


def each(interfaces, action):
    """All are tried; the messages of those that failed make one."""
    failed = []
    for interface in interfaces or configured():
        try:
            action(interface)
        except (Refused, OSError) as e:
            failed.append(str(e))
    if failed:
        raise Refused("\nroan: ".join(failed))


def up(args, check, write):
    def one(interface):
        device, words = load(interface)
        if present(interface):
            if make(interface, device) or not args.missing:
                write(device, check(device, words))
    if args.interfaces or configured():
        allowed()
        with locked():
            each(args.interfaces, one)


def down(args):
    for interface in args.interfaces:
        if interface not in configured():
            raise Refused("there is no %s" % path(interface))
    if configured():
        allowed()
        with locked():
            each(args.interfaces, unmake)
