# SPDX-License-Identifier: GPL-2.0
"""What doctor_faults.py and doctor_peer.py share: KTAP, shell commands, and `roan doctor` in another namespace, as another
user, with another environment. The doctor runs in a fork of this process, as starting Python takes seconds on an emulated CPU."""
import contextlib
import ctypes
import importlib.machinery
import importlib.util
import io
import json
import os
import resource
import subprocess
import sys
import time
import traceback

REPO = os.environ["REPO"]
sys.path.insert(0, os.path.join(REPO, "tools"))
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("roan", os.path.join(REPO, "tools/roan"))
roan = importlib.util.module_from_spec(importlib.util.spec_from_loader("roan", loader))
loader.exec_module(roan)
import roan_doctor
import roan_doctor_base
import roan_doctor_net

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_SLAVE = 0x20000, 0x40000000, 0x4000, 1 << 19
results = {"n": 0, "bad": 0}
always = set()		# advices that are right in each case in h1: of the emulated adapter


def result(name, problem=""):
    """One line of KTAP; with a problem, a failure."""
    results["n"] += 1
    results["bad"] += bool(problem)
    for line in str(problem).strip().split("\n") if problem else ():
        print("# " + line)
    print("%s %d %s" % ("not ok" if problem else "ok", results["n"], name), flush=True)


def skip(name, why):
    results["n"] += 1
    print("ok %d %s # SKIP %s" % (results["n"], name, why), flush=True)


def end():
    print("1..%d" % results["n"])
    sys.exit(bool(results["bad"]))


def sh(command):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("%s: status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done.stdout


def fails(command):
    return subprocess.run(["bash", "-c", command], capture_output=True).returncode != 0


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError("waited %d s for %s" % (seconds, condition))
        time.sleep(0.1)


def enter(namespace):
    """As ip netns exec: the network namespace, and a /sys of it."""
    with open("/run/netns/" + namespace) as f:
        if libc.setns(f.fileno(), CLONE_NEWNET) or libc.unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "setns")
    libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None)
    if libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount sysfs")


def forked(work):
    """Runs a function in a fork. Returns its exit status and what it printed."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reading)
        out = io.StringIO()
        status = 126
        try:
            with contextlib.redirect_stdout(out):
                status = work()
        except BaseException:
            out.write(traceback.format_exc())
        with open(writing, "w") as f:
            f.write(out.getvalue())
        os._exit(status)
    os.close(writing)
    with open(reading) as f:
        text = f.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def doctor(*words, ns=None, user=None, env=None, memlock=None, cgroup=None):
    """roan doctor --json: exit status, answer."""
    def work():
        if cgroup:
            with open(cgroup + "/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))
        if ns:
            enter(ns)
        os.environ.update(env or {})
        if memlock:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (memlock, memlock))
        if user:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        return roan_doctor.main(["--json", *words], roan.gpu_memory)
    status, text = forked(work)
    try:
        return status, json.loads(text)
    except ValueError:
        raise RuntimeError("status %d: %s" % (status, text))


def compare(status, answer, expected, where=()):
    """"" if the findings are the expected codes, each at the place that @where has for it, and the status counts their faults."""
    got = {f["code"] for f in answer["findings"]}
    faults = sum(f["severity"] == "fault" for f in answer["findings"])
    places = all(f["where"] == dict(where).get(f["code"], f["where"]) for f in answer["findings"])
    if got == set(expected) and places and status == answer["faults"] == faults:
        return ""
    return "expected %s %s, status %d for %d faults\n%s" % (
        sorted(expected), where or "", status, faults, json.dumps({k: answer[k] for k in ("findings", "not_checked", "peer")}, indent=1))


# An emulated adapter loses its carrier for some seconds when its MTU or its features change.
CARRIER = "for n in 1 2; do for i in $(seq 300); do ip -n h$n link show v$n | grep -q LOWER_UP && break; sleep 0.1; done; done"


def case(name, expected, seed="", undo="", *words, where=(), **how):
    """Seeds a fault, examines, removes the fault."""
    try:
        began = time.monotonic()
        if seed:
            sh(seed)
        if how.get("ns") == "h1" and seed and "link-down" not in expected:
            sh(CARRIER)
        problem = compare(*doctor(*words, **how), set(expected) | (always if how.get("ns") == "h1" and "--only" not in words else set()), where)
        took = time.monotonic() - began
    except (RuntimeError, OSError) as e:
        problem, took = str(e), 0
    try:
        if undo:
            sh(undo)
    except RuntimeError as e:
        problem += "\n" + str(e)
    print("# %.1f s" % took)
    result("%s: %s" % (name, ", ".join(sorted(expected)) or "healthy"), problem)
