# SPDX-License-Identifier: GPL-2.0
"""What the discovery of each client of RDMA devices finds on a device, and a topology file for NCCL.

Each check of the table CLIENTS reads the files and makes the calls that the client's own code does, and applies the same
condition. `roan clients` prints the results; selftests/net/interfaces/clients.sh compares them with the table of
Documentation/discovery.md. The sources that the checks follow are named there.
"""
import ctypes
import errno
import os
import re
from xml.sax.saxutils import quoteattr

YES, LIMITS, NO = "accepts", "accepts with limits", "refuses"
BDF = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$")
MAX_BDF = 12


def below(*parts):
    """A path of /sys, /proc or /boot, below ROAN_ROOT if that is set (for tests)."""
    return os.path.join(os.environ.get("ROAN_ROOT", "/"), *parts)


CLASS = below("sys/class/infiniband")


def first_line(*parts):
    """Of a file; None if it cannot be read."""
    try:
        with open(os.path.join(*parts)) as f:
            return f.readline().strip()
    except OSError:
        return None


def listing(*parts):
    path = os.path.join(*parts)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


# ---- verbs: what clients get from libibverbs ----

class DeviceAttr(ctypes.Structure):
    """struct ibv_device_attr"""
    _fields_ = ([("fw_ver", ctypes.c_char * 64), ("node_guid", ctypes.c_uint64), ("sys_image_guid", ctypes.c_uint64),
                 ("max_mr_size", ctypes.c_uint64), ("page_size_cap", ctypes.c_uint64)] +
                [(n, ctypes.c_uint32) for n in (
                    "vendor_id vendor_part_id hw_ver max_qp max_qp_wr device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr "
                    "max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap "
                    "max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp max_mcast_grp max_mcast_qp_attach "
                    "max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr max_srq_sge").split()] +
                [("max_pkeys", ctypes.c_uint16), ("local_ca_ack_delay", ctypes.c_uint8), ("phys_port_cnt", ctypes.c_uint8)])


class Context(ctypes.Structure):
    """The beginning of struct ibv_context; struct ibv_context_ops has 32 pointers."""
    _fields_ = [("device", ctypes.c_void_p), ("ops", ctypes.c_void_p * 32), ("cmd_fd", ctypes.c_int), ("async_fd", ctypes.c_int),
                ("num_comp_vectors", ctypes.c_int)]


def query(lib, device):
    """Attributes of a device, and the errno of registering a dma-buf that does not exist. If it cannot be opened: open_errno."""
    lib.ibv_open_device.restype = ctypes.POINTER(Context)
    lib.ibv_open_device.argtypes = [ctypes.c_void_p]
    context = lib.ibv_open_device(device)
    if not context:
        return {"open_errno": ctypes.get_errno()}
    attr, found = DeviceAttr(), {}
    if lib.ibv_query_device(context, ctypes.byref(attr)) == 0:
        found = {name: getattr(attr, name) for name, _ in DeviceAttr._fields_}
        found["num_comp_vectors"] = context.contents.num_comp_vectors
        lib.ibv_alloc_pd.restype = ctypes.c_void_p
        pd = lib.ibv_alloc_pd(context)
        if pd and hasattr(lib, "ibv_reg_dmabuf_mr"):
            probe = lib.ibv_reg_dmabuf_mr
            probe.restype = ctypes.c_void_p
            probe.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
            found["dmabuf_errno"] = 0 if probe(pd, 0, 0, 0, -1, 0) else ctypes.get_errno()
        if pd:
            lib.ibv_dealloc_pd(ctypes.c_void_p(pd))
    lib.ibv_close_device(context)
    return found


def verbs():
    """Device name -> what query() returns, in the order of ibv_get_device_list()."""
    try:
        lib = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError:
        return {}
    count = ctypes.c_int()
    lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    lib.ibv_get_device_name.restype = ctypes.c_char_p
    devices = lib.ibv_get_device_list(ctypes.byref(count))
    found = {}
    for i in range(count.value):
        name = lib.ibv_get_device_name(ctypes.c_void_p(devices[i])).decode()
        found[name] = query(lib, devices[i])
    if devices:
        lib.ibv_free_device_list(devices)
    return found


# ---- a device ----

class Device:
    def __init__(self, name, attr):
        self.name, self.attr = name, attr or {}
        self.path = os.path.realpath(os.path.join(CLASS, name))
        link = os.path.join(CLASS, name, "device")
        self.parent = os.path.realpath(link) if os.path.exists(link) else None	# realpath() of C fails if it does not exist
        self.port = os.path.join(CLASS, name, "ports/1")

    def subsystem(self):
        """Of the parent, as NCCL determines it; "" if it is on no bus."""
        link = os.path.join(self.parent or "/", "subsystem")
        return os.path.basename(os.path.realpath(link)) if os.path.exists(link) else ""

    def pci(self):
        """The folder of the nearest PCI device above the parent, or None."""
        path = self.parent or "/"
        while path != "/" and not BDF.match(os.path.basename(path)):
            path = os.path.dirname(path)
        return path if path != "/" else None

    def active(self):
        return (first_line(self.port, "state") or "").startswith("4:") and first_line(self.port, "link_layer") in ("Ethernet", "InfiniBand")

    def gid_types_readable(self):
        """Libraries read every index until the first that cannot be opened; EINVAL means an empty entry."""
        folder = os.path.join(self.port, "gid_attrs/types")
        for i in listing(folder):
            try:
                with open(os.path.join(folder, i)) as f:
                    f.read()
            except OSError as e:
                if e.errno != errno.EINVAL:
                    return False
        return bool(listing(folder))

    def netdevs(self):
        """By the GID table."""
        return sorted({n for n in (first_line(self.port, "gid_attrs/ndevs", i) for i in listing(self.port, "gid_attrs/ndevs")) if n})


def port_down(d):
    return (NO, "its port is not active", "bring the interface up, with a cable or a peer: ip link set %s up" % "".join(d.netdevs()[:1]))


# ---- clients: each function returns verdict, finding, and what to set ----

def nccl(d, others):
    if not d.active():
        return port_down(d)
    if not d.gid_types_readable():
        return NO, "gid_attrs/types cannot be read", "mount /sys in the container"
    setting = "NCCL_IB_HCA==%s" % d.name
    if not d.parent:
        return LIMITS, "no device link: a warning, sorted last, attached to the first CPU", setting
    if d.subsystem() == "pci":
        return YES, "its parent is a PCI device", setting
    where = "attached to the first CPU, too far for GPU memory"
    if d.pci():
        return LIMITS, "the parent is not a PCI device: " + where, setting + " NCCL_TOPO_FILE=FILE, after roan topo > FILE"
    return LIMITS, "no PCI device: " + where, setting + " NCCL_NET_GDR_LEVEL=SYS for GPU memory"


def mangled(path):
    """NCCL merges ports and virtual functions by overwriting the last digits of a PCI address, whatever the path is."""
    p = list(path)
    for i in (-1, -3, -4):
        p[i] = "0"
    return "".join(p)


def nccl_2_28(d, others):
    setting = "NCCL_IB_HCA==%s" % d.name
    if not d.active():
        return port_down(d)
    without = [o.name for o in others + [d] if not o.parent]
    if without and any(o.parent for o in others + [d]):
        return NO, "%s has no device link and another device has: it may crash" % without[0], setting
    if not d.parent:
        return LIMITS, "no device link: a warning; crashes if a device with one is listed later", setting
    same = [o.name for o in others if o.parent and mangled(o.parent) == mangled(d.parent)]
    if same:
        return LIMITS, "looks like another port of %s" % same[0], setting
    return LIMITS, "a path that is not PCI: attached to the first CPU", setting


def nvshmem(d, others):
    if not d.parent:
        return NO, "no device link: the transport does not start, for no device", "NVSHMEM_HCA_LIST without %s" % d.name
    without = [o.name for o in others if not o.parent]
    if without:
        return NO, "%s has no device link: the transport does not start" % without[0], "NVSHMEM_HCA_LIST=%s:1" % d.name
    if not d.active():
        return port_down(d)
    if not d.attr.get("max_qp_rd_atom"):
        return NO, "no READs outstanding (max_qp_rd_atom)", ""
    return LIMITS, "IBRC; IBGDA and ibdevx need mlx5", "NVSHMEM_HCA_LIST=%s:1 NVSHMEM_IB_GID_INDEX as roan prints" % d.name


def uccl_util(d, others):
    if not os.path.islink(os.path.join(CLASS, d.name, "device")):
        return NO, "no device link: skipped", ""
    netdevs = listing(CLASS, d.name, "device/net")
    if not netdevs:
        return LIMITS, "device/net is empty: no interface found", "UCCL_SOCKET_IFNAME"
    return YES, "device/net has %s" % netdevs[0], "UCCL_IB_HCA=%s" % d.name


def uccl_collective(d, others):
    if not d.parent:
        return NO, "no path of the device: internal error", ""
    return YES, "the path of its parent", "UCCL_IB_HCA=%s UCCL_SOCKET_IFNAME=%s" % (d.name, "".join(d.netdevs()[:1]))


def uccl_ep(d, others):
    if not os.path.islink(os.path.join(CLASS, d.name, "device")):
        return NO, "no device link: the device is not found, the program aborts", ""
    node = first_line(CLASS, d.name, "device/numa_node")
    if node is None:
        return NO, "no numa_node: the program aborts", ""
    return YES, "numa_node is %s%s" % (node, ", taken as 0" if node == "-1" else ""), "UCCL_IB_HCA=%s" % d.name


def mori(d, others):
    if not any(map(BDF.match, d.path.split("/"))):
        return NO, "no PCI address in its path: the program looks for one without end", "MORI_RDMA_DEVICES=^%s" % d.name
    return LIMITS, "backend IBVerbs only", "MORI_RDMA_DEVICES=%s" % d.name


def pplx(d, others):
    link = os.path.join(CLASS, d.name, "device")
    if not os.path.islink(link):
        return NO, "no device link: the program panics", ""
    name = os.path.basename(os.readlink(link))
    if len(name) != MAX_BDF:
        return NO, "%s is not a PCI address: the program panics" % name, ""
    return YES, "its parent is %s" % name, ""


def mooncake(d, others):
    if not d.active():
        return port_down(d)
    if not d.attr.get("num_comp_vectors"):
        return NO, "no completion vectors", ""
    above = os.path.dirname(os.path.dirname(d.path))
    node = first_line(above, "numa_node")
    if node in (None, "-1"):
        return LIMITS, "no NUMA node: used, but preferred for no memory", "its own topology (JSON) if the host has several devices"
    return YES, "preferred for memory of NUMA node %s" % node, ""


def ucx(d, others):
    if not d.active():
        return port_down(d)
    if not listing(d.port, "gids") or not d.attr.get("max_srq"):
        return NO, "no GIDs or no SRQs", ""
    for up, form in ((2, "device"), (3, "sub-function")):
        path = d.path
        for _ in range(up):
            path = os.path.dirname(path)
        if os.path.exists(os.path.join(path, "device")):
            if BDF.match(os.path.basename(path)):
                return YES, "distance and bandwidth of %s, as a %s" % (os.path.basename(path), form), "UCX_NET_DEVICES=%s:1" % d.name
            break
    return LIMITS, "place in the machine unknown: no distance to memory and GPUs", "UCX_NET_DEVICES=%s:1" % d.name


def pci_adapter(d):
    """The address of the network adapter on PCI that has the device as its own; None: there is none."""
    for slot in listing(below("sys/bus/pci/devices")):
        folder = below("sys/bus/pci/devices", slot)
        if (first_line(folder, "class") or "").startswith("0x02") and d.name in listing(folder, "infiniband"):
            return slot
    return None


def gloo(d, others):
    if not d.active():
        return port_down(d)
    slot = pci_adapter(d)
    if slot:
        return YES, "found at %s" % slot, ""
    return YES, "no PCI address, which it does not need", ""


def mscclpp(d, others):
    if not d.active():
        return port_down(d)
    if not d.attr.get("atomic_cap"):
        return NO, "no atomics", ""
    return YES, "port active, atomics", "MSCCLPP_IB_GID_INDEX as roan prints"


def libfabric(d, others):
    gpu = d.attr.get("dmabuf_errno") != errno.EOPNOTSUPP
    found = "dma-bufs for GPU memory" if gpu else "no dma-bufs"
    setting = "FI_PROVIDER=verbs FI_VERBS_DEVICE_NAME=%s" % d.name
    if not d.parent:
        return LIMITS, "no device link: a warning, no bus attributes; " + found, setting
    return YES, "the path of its parent; " + found, setting


def spdk(d, others):
    vendor = d.attr.get("vendor_id")
    if vendor in (None, 0, 0xffffff):
        return LIMITS, "vendor ID of rdma_rxe: without SEND with invalidate and last-WQE events", ""
    if not (first_line(CLASS, d.name, "parent") or listing(CLASS, d.name, "device/net")):
        return LIMITS, "its test scripts find no interface", ""
    return YES, "vendor ID 0x%x: as hardware" % vendor, ""


def torchcomms(d, others):
    if not d.active():
        return port_down(d)
    if "/devices/virtual/" in d.path:
        return YES, "a virtual device: NUMA node 0, the port's speed", ""
    if not d.parent:
        return NO, "no device link: skipped", ""
    return YES, "the path of its parent", ""


def shared_dev_plugin(d, others):
    slot = pci_adapter(d)
    if slot:
        return YES, "found at %s" % slot, ""
    return NO, "no network adapter on PCI has it as its own RDMA device", "a generic device plugin that gives pods /dev/infiniband"


def rdma_cni(d, others):
    name = os.path.basename(d.parent) if d.parent else ""
    for bus in ("pci", "auxiliary"):
        if name and d.name in listing(below("sys/bus", bus, "devices", name, "infiniband")):
            return YES, "found on the %s bus" % bus, "deviceID %s" % name
    return NO, "not found on the PCI or auxiliary bus", ""


def dranet(d, others):
    netdevs = d.netdevs()
    if not netdevs:
        return NO, "the GID table names no interface", "bring the interface up"
    if d.subsystem() != "pci":
        return LIMITS, "the device goes when dranet moves %s: make it in the pod" % netdevs[0], ""
    return YES, "by the GID table: the device of %s" % netdevs[0], ""


def rdma_unit_test(d, others):
    if not re.match("rxe|mlx4|mlx5|irdma", d.name):
        return NO, "an unknown prefix of the name: the program ends", "rdma dev set %s name rxe_%s: then with rdma_rxe's exceptions" % (d.name, d.name)
    return YES, "a known prefix of the name", ""


def nixl(d, others):
    verdict, found, setting = ucx(d, others)
    return verdict, "by UCX: " + found, setting


CLIENTS = [("NCCL 2.28.8 and newer", nccl), ("NCCL to 2.28.7, RCCL", nccl_2_28), ("NVSHMEM", nvshmem), ("UCCL", uccl_util),
           ("UCCL collective", uccl_collective), ("UCCL EP", uccl_ep), ("pplx-garden", pplx), ("MoRI", mori), ("Mooncake", mooncake),
           ("UCX", ucx), ("NIXL", nixl), ("Gloo", gloo), ("MSCCL++", mscclpp), ("libfabric", libfabric), ("SPDK", spdk),
           ("torchcomms", torchcomms), ("k8s-rdma-shared-dev-plugin", shared_dev_plugin), ("rdma-cni", rdma_cni),
           ("dranet, rdmamap", dranet), ("rdma-unit-test", rdma_unit_test)]


def check(name):
    """[(client, verdict, finding, what to set)] of one device, with the other devices of the host beside it."""
    known = verbs()
    names = list(known) or listing(CLASS)
    devices = {n: Device(n, known.get(n)) for n in names}
    if name not in devices:
        raise LookupError(name)
    others = [d for n, d in devices.items() if n != name]
    return [(client,) + look(devices[name], others) for client, look in CLIENTS]


# ---- topology file of NCCL: system, cpu, pci (bridges outside), nic, net. Attributes as NCCL's src/graph/xml.cc reads them ----

def element(depth, tag, attributes, children):
    """One element as text; it has no end tag of its own if there are no children."""
    start = "  " * depth + "<" + tag + "".join(" %s=%s" % (k, quoteattr(v)) for k, v in attributes)
    return [start + "/>"] if not children else [start + ">"] + children + ["  " * depth + "</%s>" % tag]


def cpu_attributes(node):
    """Of a NUMA node. On x86 NCCL requires vendor, familyid and modelid."""
    info = dict(re.findall(r"^(\S[^:\t]*)\s*: (.*)$", open(below("proc/cpuinfo")).read(), re.M))
    cpumap = first_line(below("sys/devices/system/node/node%d/cpumap" % max(node, 0))) or ""
    arch = {"x86_64": "x86_64", "aarch64": "arm64", "ppc64le": "ppc64"}.get(os.uname().machine, os.uname().machine)
    found = [("numaid", str(node)), ("affinity", cpumap), ("arch", arch), ("vendor", info.get("vendor_id", "")),
             ("familyid", info.get("cpu family", "")), ("modelid", info.get("model", ""))]
    return [(k, v) for k, v in found if v]


def pci_attributes(path):
    """As NCCL fills them in: the slower of the device's and its port's link; it requires class, link_speed, link_width."""
    found = [("busid", os.path.basename(path))]
    found += [(n, first_line(path, n) or "") for n in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")]
    speeds = [s for s in (first_line(p, "max_link_speed") for p in (path, os.path.dirname(path))) if s and s[0].isdigit()]
    widths = [int(w) for w in (first_line(p, "max_link_width") for p in (path, os.path.dirname(path))) if w and w.isdigit()]
    speed = min(speeds, key=lambda s: float(s.split()[0])) if speeds else ""
    return [(k, v) for k, v in found if v] + [("link_speed", speed), ("link_width", str(min(widths)) if widths else "0")]


def pci_chain(path):
    """The PCI device and the bridges above it that NCCL has in its tree, outermost first. A switch is two bridges; NCCL takes the
    upper one. It takes no bridge directly above a device that has only one."""
    chain = [path]
    while True:
        path = os.path.dirname(os.path.dirname(path))
        if not BDF.match(os.path.basename(path)):
            return chain
        chain.insert(0, path)


def nodes():
    """NUMA node of each PCI device. NCCL gives those without a node (-1) a CPU of that number."""
    return [int(first_line(below("sys/bus/pci/devices", s, "numa_node")) or -1) for s in listing(below("sys/bus/pci/devices"))]


def topology(names):
    """The lines of the file. Devices of one adapter share its element; virtual ones are below the first CPU with PCI devices."""
    tree = {}		# NUMA node -> {chain of PCI devices: [device]}
    first = min([n for n in nodes() if n >= 0], default=-1)
    for name in names:
        pci = Device(name, None).pci()
        chain = pci_chain(pci) if pci else []
        node = int(first_line(chain[0], "numa_node") or -1) if chain else first
        tree.setdefault(node, {}).setdefault(tuple(chain), []).append(name)

    def level(depth, chains):
        lines = []
        if () in chains:
            nets = [line for n in chains[()] for line in element(depth + 1, "net", [("name", n)], [])]
            lines += element(depth, "nic", [], nets)
        for head in sorted({c[0] for c in chains if c}):
            inner = {c[1:]: v for c, v in chains.items() if c and c[0] == head}
            lines += element(depth, "pci", pci_attributes(head), level(depth + 1, inner))
        return lines
    cpus = [line for node, chains in sorted(tree.items()) for line in element(1, "cpu", cpu_attributes(node), level(2, chains))]
    return element(0, "system", [("version", "1")], cpus)
