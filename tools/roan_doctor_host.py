# SPDX-License-Identifier: GPL-2.0
"""Checks of `roan doctor` that concern the host and the user who runs it: module, provider, files, limits, CPUs."""
import contextlib
import ctypes
import errno
import glob
import os
import re
import resource

import roan_clients
from roan_doctor_base import Finding, NotChecked, below, first_line, listing, output

MEMLOCK = 2 << 20	# bytes: the rings of some queue pairs and a region of 1 MiB
SIGNED = b"~Module signature appended~\n"


def unchecked(path):
    """A file with names that any user may have chosen, of mount points for example: they need not be UTF-8."""
    return open(path, encoding="utf-8", errors="replace")


def release():
    return os.environ.get("ROAN_RELEASE") or os.uname().release	# the variable is for tests


def installed():
    """Release -> path of roan.ko, of all kernels that have it, from the lists that depmod writes."""
    found = {}
    for path in glob.glob(below("lib/modules/*/modules.dep")):
        with open(path) as f:
            hit = re.search(r"^(\S*/roan\.ko(\.\w+)?):", f.read(), re.M)
        if hit:
            found[path.split("/")[-2]] = os.path.join(os.path.dirname(path), hit[1])
    return found


def other_core():
    """The ib_core.ko that modprobe loads with roan.ko, if it is not the kernel's own."""
    with open(below("lib/modules", release(), "modules.dep")) as f:
        needs = re.search(r"^\S*/roan\.ko(?:\.\w+)?:(.*)", f.read(), re.M)[1].split()
    return next((m for m in needs if "/ib_core.ko" in m and not m.startswith("kernel/")), None)


def signed_only():
    if (first_line(below("sys/module/module/parameters/sig_enforce")) or "N") == "Y":
        return "module.sig_enforce"
    lockdown = re.search(r"\[(integrity|confidentiality)\]", first_line(below("sys/kernel/security/lockdown")) or "")
    return lockdown and "lockdown " + lockdown[1]


def signer_known(path):
    """False if the kernel has no key of the signer's name; True also where that cannot be seen, as by a user who is not root."""
    try:
        name = output("modinfo", "-F", "signer", path).strip()
        with unchecked(below("proc/keys")) as f:
            keys = [line for line in f if " asymmetri " in line]
    except (NotChecked, OSError):
        return True
    return not name or not keys or any(name in line for line in keys)


def signing_key():
    """The certificate of the key by which DKMS signs: on Ubuntu the one that its package shim-signed makes."""
    paths = ["var/lib/dkms/mok.pub", "var/lib/shim-signed/mok/MOK.der"]
    with contextlib.suppress(OSError), unchecked(below("etc/os-release")) as f:
        if "ID=ubuntu\n" in f:
            paths.reverse()
    return "/" + next((p for p in paths if os.path.exists(below(p))), paths[0])


def build(path):
    """The release that a roan.ko is built for ("": cannot be seen), and whether it is signed (True where that cannot be seen)."""
    if path.endswith(".ko"):
        with open(path, "rb") as f:
            data = f.read()
        magic = re.search(rb"vermagic=(\S+)", data)
        return magic and magic[1].decode(), data.endswith(SIGNED)
    try:		# a compressed one
        return output("modinfo", "-F", "vermagic", path).partition(" ")[0], bool(output("modinfo", "-F", "sig_id", path).strip())
    except NotChecked:
        return "", True


def removal(path):
    """The command that removes a roan.ko: its package's; if DKMS has built it, that of the sources."""
    for file in [path] if os.path.basename(os.path.dirname(path)) == "updates" else [path, *glob.glob(below("usr/src/roan-*/dkms.conf"))]:
        with contextlib.suppress(NotChecked):
            return "apt purge " + output("dpkg", "-S", file).partition(":")[0]
        with contextlib.suppress(NotChecked):
            return "dnf remove " + output("rpm", "-qf", "--qf", "%{NAME}", file)
    return "make uninstall"


def twice(devices):
    """Two files in the folders for modules from outside the kernel's tree: make install's, and those of DKMS on Debian, Fedora and SUSE."""
    folder = below("lib/modules", release())
    files = sorted(p for d in ("updates", "extra", "weak-updates") for between in ("", "*/") for p in glob.glob("%s/%s/%sroan.ko*" % (folder, d, between)))
    if len(files) > 1:
        yield Finding("module-twice", "module", "%s; modprobe loads %s" % (", ".join(files), installed().get(release())),
                      commands=", or ".join(dict.fromkeys(map(removal, files))))


def version(kernel):
    return [int(n) for n in re.findall(r"\d+", kernel)]


def way_for(kernel):
    """The command by which a kernel gets roan.ko in the way that was chosen here."""
    folder, debian = "/lib/modules/%s/build" % kernel, os.path.exists(below("etc/debian_version"))
    versions = [v for v in listing(below("var/lib/dkms/roan")) if not v.startswith("kernel-")]
    if versions and not os.path.exists(below(folder[1:])):
        apt = "apt install linux-headers-{0}; for later ones the package that follows them: linux-headers-amd64, linux-headers-cloud-amd64, linux-headers-6.12-amd64 ..."
        return (apt if debian else "its headers (Fedora: dnf install kernel-devel-{0}), then dkms autoinstall -k {0}").format(kernel)
    if versions:
        return "dkms install roan/{0} -k {1}; if it fails: /var/lib/dkms/roan/{0}/build/make.log".format(versions[-1], kernel)
    if any(n.startswith("roan-modules-") for n in listing(below("var/lib/dpkg/info"))):
        return "tools/package module {0} && apt install ./build/deb/roan-modules-{0}_*.deb".format(kernel)
    return "make install KDIR=" + folder


def next_kernel(devices):
    """Installed kernels that may be booted next."""
    if release() not in installed() and not os.path.isdir(below("var/lib/dkms/roan")):
        return
    for path in glob.glob(below("boot/vmlinuz-*")):
        kernel = path.partition("vmlinuz-")[2]
        if version(kernel) > version(release()) and kernel not in installed():
            yield Finding("module-next-kernel", "module", kernel, command=way_for(kernel))


def module():
    if os.path.isdir(below("sys/module/roan")):
        return
    paths = installed()
    path = paths.get(release())
    if not path:
        if paths:
            yield Finding("module-other-kernel", "module", "installed for %s, running %s" % (", ".join(sorted(paths)), release()))
        else:
            yield Finding("module-missing", "module", "no roan.ko below /lib/modules")
        return
    built, signed = build(path)
    if built and built != release():
        yield Finding("module-other-kernel", "module", "%s is built for %s, running %s" % (path, built, release()))
    elif signed_only() and not signed:
        yield Finding("module-unsigned", "module", "%s, %s" % (signed_only(), path), key=signing_key())
    elif signed_only() and not signer_known(path):
        yield Finding("module-key", "module", "%s, %s" % (signed_only(), path), key=signing_key())
    elif other_core():
        yield Finding("module-other-core", "module", other_core())
    else:
        yield Finding("module-not-loaded", "module", path)


def namespace(devices):
    """RDMA devices in exclusive mode are in one network namespace each."""
    if "netns exclusive" in output("rdma", "system", "show") and not listing(roan_clients.CLASS):
        yield Finding("netns-exclusive", "namespace")


def port_holder(process_known):
    """The holder of UDP port 4791 in this namespace: None, "kernel", or a program. Kernel sockets have no process."""
    lines = output("ss", "-Hulnp", "sport = :4791").strip()
    if not lines:
        return None
    program = re.search(r'users:\(\("([^"]*)",pid=(\d+)', lines)
    if program:
        return "%s, process %s" % (program[1], program[2])
    return "kernel" if process_known else None


def port(devices):
    """With a roan device in this namespace the port is roan's."""
    if devices:
        return
    holder = port_holder(os.geteuid() == 0)
    if holder == "kernel":
        if os.path.isdir(below("sys/module/rdma_rxe")):
            yield Finding("port-taken", "port 4791", "by rdma_rxe", holder="rdma link del RXE_DEVICE; rmmod rdma_rxe")
    elif holder:
        yield Finding("port-taken", "port 4791", "by " + holder, holder="kill " + holder.split()[-1])


# ---- what programs need ----

def private_abi():
    """Number of libibverbs' private ABI, which is also in the name of a provider's file; None: no libibverbs."""
    try:
        ctypes.CDLL("libibverbs.so.1")
        with unchecked("/proc/self/maps") as maps:
            path = re.search(r"(/\S*libibverbs\.so\.1\S*)", maps.read())[1]
    except (OSError, TypeError):
        return None
    with open(path, "rb") as f:
        return max((int(n) for n in re.findall(rb"IBVERBS_PRIVATE_(\d+)", f.read())), default=None)


def provider_files(name, abi):
    """The files of a provider for a private ABI ("*": any), where libibverbs looks for the name of a driver file's line."""
    file = "%s-rdmav%s.so" % (name if "/" in name else "lib" + name, abi)
    folders = [""] if "/" in name else glob.glob("/usr/lib*/libibverbs") + glob.glob("/usr/lib*/*/libibverbs") + ["/usr/local/lib/libibverbs"]
    return [p for d in folders for p in glob.glob(os.path.join(d, file))]


def drivers():
    """Names in /etc/libibverbs.d."""
    found = []
    for path in sorted(glob.glob("/etc/libibverbs.d/*.driver")):
        words = (first_line(path) or "").split()
        if words[:1] == ["driver"] and len(words) > 1:
            found.append(words[1])
    return found


def provider(devices):
    abi = private_abi()
    if abi is None:
        yield Finding("provider-missing", "libibverbs", "libibverbs.so.1 is not installed: apt install libibverbs1")
        return
    named = [n for n in drivers() if os.path.basename(n) in ("roan", "libroan")]
    for variable in ("RDMAV_DRIVERS", "IBV_DRIVERS"):
        for name in re.split("[:;]", os.environ.get(variable, "")):
            if not name:
                continue
            if provider_files(name, abi):
                named += [name]
            else:
                yield Finding("provider-env", "libibverbs", "%s=%s" % (variable, name), variable=variable)
    if not named:
        yield Finding("provider-missing", "libibverbs", "no file of /etc/libibverbs.d names roan")
        return
    files = [p for n in named for p in provider_files(n, abi)]
    others = [p for n in named for p in provider_files(n, "*")]
    if not files:
        if others:
            yield Finding("provider-abi", "libibverbs", "%s, but this libibverbs loads rdmav%d" % (", ".join(others), abi))
        else:
            yield Finding("provider-missing", "libibverbs", "%s-rdmav%d.so does not exist" % (named[0], abi))
        return
    visible = [d for d in devices if d.uverbs and os.access("/dev/infiniband/" + d.uverbs, os.R_OK | os.W_OK)]
    seen = roan_clients.verbs() if visible else {}
    for d in visible:
        if d.name not in seen:
            yield Finding("provider-abi", d.name, "%s does not take the device" % files[0])
        elif seen[d.name].get("open_errno") == errno.EPROTONOSUPPORT:
            yield Finding("provider-abi", d.name, "%s is built for another release of rdma-core" % files[0])


def device_files(devices):
    for d in devices:
        path = "/dev/infiniband/%s" % d.uverbs
        if not d.uverbs or not os.path.exists(path):
            yield Finding("uverbs-missing", d.name, d.uverbs or "ib_uverbs is not loaded")
        elif not os.access(path, os.R_OK | os.W_OK):
            yield Finding("uverbs-permission", d.name, "%s has mode %o" % (path, os.stat(path).st_mode & 0o777), path=path)
    if devices and not os.path.exists("/dev/infiniband/rdma_cm"):
        yield Finding("rdma-cm-missing", "rdma_cm")


def capable(bit):
    with open("/proc/self/status") as f:
        return bool(int(re.search(r"^CapEff:\s*(\w+)", f.read(), re.M)[1], 16) >> bit & 1)


def memlock(devices):
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if limit != resource.RLIM_INFINITY and limit < MEMLOCK and not capable(14):	# CAP_IPC_LOCK
        yield Finding("memlock", "limits", "%d KiB" % (limit >> 10))


def cgroup_folders():
    """Of this process in the rdma controller's hierarchy, from its own group up to the root."""
    with unchecked("/proc/self/cgroup") as f:
        groups = [line.strip().split(":", 2) for line in f]
    with unchecked("/proc/self/mounts") as f:
        mounts = [line.split()[1:4] for line in f]
    for _, controllers, path in groups:
        for point, kind, options in mounts:
            if (kind == "cgroup2" and not controllers) or (kind == "cgroup" and "rdma" in controllers.split(",") and "rdma" in options.split(",")):
                while True:
                    yield point + path
                    if path in ("/", ""):
                        break
                    path = os.path.dirname(path)
                break


def limits(path):
    """Device -> {resource: number; None: no limit}"""
    try:
        with open(path) as f:
            rows = [line.split() for line in f]
    except OSError:
        return {}
    return {r[0]: {k: None if v == "max" else int(v) for k, v in (w.split("=") for w in r[1:])} for r in rows if r}


def rdma_cgroup(devices):
    for folder in cgroup_folders():
        allowed, used = limits(folder + "/rdma.max"), limits(folder + "/rdma.current")
        for d in devices:
            for what, limit in allowed.get(d.name, {}).items():
                now = used.get(d.name, {}).get(what) or 0
                if limit is not None and now >= limit:
                    yield Finding("rdma-cgroup", d.name, "%s: %s %d of %d" % (folder, what, now, limit), dev=d.name, path=folder + "/rdma.max")


# ---- speed ----

def governor(devices):
    slow = {first_line(p) for p in glob.glob(below("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))} - {"performance", None}
    if slow:
        yield Finding("cpu-governor", "CPUs", ", ".join(sorted(slow)))


def cpu_list(text):
    """The set of a list such as 0-3,8."""
    found = set()
    for part in (text or "").split(","):
        low, _, high = part.partition("-")
        if low.strip().isdigit():
            found |= set(range(int(low), int(high or low) + 1))
    return found


# Functions of the host and its devices. Each yields findings, or raises NotChecked.
CHECKS = [twice, next_kernel, namespace, port, provider, device_files, memlock, rdma_cgroup, governor]
