# SPDX-License-Identifier: BSD-3-Clause
"""A throw-away QEMU guest whose Linux kernel has rdma_rxe: the peer that others wrote.

Two archives make its root file system. One comes from Debian packages (kernel, its modules, busybox,
rdmacm-utils, perftest) and is cached until a package or this file changes; the other holds what the build made
(agent, peer, urnicd, their libraries) and the guest's init and is packed anew each time. The kernel unpacks both.

The guest has a NIC for control, reachable from inside the namespace only, the NIC of rxe, and two more
for urnicd's PCI path: a virtio-net behind an emulated IOMMU, and an e1000. Behind those, on a hub of their own,
are the NICs of t_nic.py, one of them the kernel's.
"""
import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "urnic" / "interop"
# Debian 12's own kernel, or one of its backports by the number of its series.
SERIES = os.environ.get("URNIC_INTEROP_KERNEL", "")
if SERIES:
    CACHE = CACHE.with_name("interop-" + SERIES)
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = ["busybox-static", "rdmacm-utils", "perftest"]
PROGRAMS = ["rping", "ucmatose", "udaddy", "mckey", "rdma_client", "rdma_server", "rstream", "ib_write_bw", "ib_read_bw",
            "ib_send_lat", "ib_write_lat"]
MODULES = ["virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "rdma_ucm", "rdma_cm", "ib_uverbs"]
MODULES_LATER = ["vfio_pci", "vfio_iommu_type1", "uio_pci_generic", "e1000", "tun", "8021q", "bonding", "veth",
                 "xfrm_user", "esp4", "esp6", "gcm", "ctr", "ghash_generic", "seqiv", "drbg", "jitterentropy_rng", "sha512_generic"]
# Programs of this machine that the guest runs as they are, and where. Not busybox's shell: it takes its
# own applets (ip ...) before those in PATH.
HOST_PROGRAMS = {"/bin/dash": "/bin/sh", "/usr/bin/rdma": "/usr/bin/rdma", "/usr/sbin/ip": "/usr/bin/ip",
                 "/usr/bin/setpriv": "/usr/bin/setpriv"}
PORT = 2222
# A guest boots in ten seconds, or more where the machine is busy. One hung in the kernel; the next one came up.
BOOT_SECONDS = [60, 180]
PLUGIN_DIR = "/usr/lib/urnic"
VERBS = "/usr/lib/verbs/libibverbs.so.1"  # where `urnic run` finds it, from /usr/bin
LIBDIR = Path("/usr/lib/x86_64-linux-gnu")

ADDR4, ADDR6, MAC = "10.77.0.2", "fd77::2", "02:77:00:00:00:02"
VIRTIO_MAC, E1000_MAC = "02:77:00:00:00:03", "02:77:00:00:00:04"
VIRTIO_PCI, E1000_PCI = "0000:00:05.0", "0000:00:06.0"

# On the hub, in QEMU's words. "port:" is at a PCI Express port of its own, from which it can be unplugged.
BEHIND = "disable-legacy=on,iommu_platform=on"
HUB = {"past": "virtio-net-pci,disable-legacy=on,addr=7", "near": "virtio-net-pci,addr=8",
       "vfio": f"virtio-net-pci,{BEHIND},addr=9",
       "vmxnet3": "vmxnet3,addr=a",
       "group0": "e1000,addr=c.0,multifunction=on", "group1": "e1000,addr=c.1",
       "unplug0": f"port:virtio-net-pci,{BEHIND}", "unplug1": "port:e1000e"}
HUB_PCI = {"past": "0000:00:07.0", "near": "0000:00:08.0", "vfio": "0000:00:09.0", "vmxnet3": "0000:00:0a.0", "group0": "0000:00:0c.0",
           "group1": "0000:00:0c.1", "unplug0": "0000:01:00.0", "unplug1": "0000:02:00.0"}


def hub_words():
    """QEMU's arguments for the NICs on the hub."""
    words, ports = [], 0
    for i, (name, device) in enumerate(HUB.items()):
        words += ["-netdev", f"hubport,id=n_{name},hubid=1"]
        if device.startswith("port:"):
            words += ["-device", f"pcie-root-port,id=p_{name},chassis={ports + 1},slot={ports + 1},addr={0x10 + ports:x}"]
            ports += 1
        words += ["-device", hub_device(name, i)]
    return words


def hub_device(name, number=None):
    number = list(HUB).index(name) if number is None else number
    device, bus = HUB[name], ""
    if device.startswith("port:"):
        device, bus = device[5:], f",bus=p_{name}"
    return f"{device},netdev=n_{name},id=d_{name},mac=02:77:00:00:01:{number:02x},romfile={bus}"


class GuestError(Exception):
    pass


def run(*command, **options):
    """Run a command; its output, or GuestError with what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise GuestError(f"{' '.join(map(str, command))[:100]}: {said[-500:]}")
    return done.stdout


def libraries(program):
    """The shared objects that a program, or a plugin, needs: absolute paths."""
    found = run("ldd", str(program))
    return [Path(p) for p in re.findall(r"(/\S+) \(0x", found)]


def put(root, source, target=None):
    """Copy a file into the root folder. A link that keeps its path stays a link: as a copy it would
    be a second file, and a plugin would be loaded twice."""
    to, real = root / str(target or source).lstrip("/"), Path(source).resolve()
    if to.is_symlink() or to.exists():
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    if target not in (None, source) or to.parent.resolve() / to.name == root.resolve() / str(real).lstrip("/"):
        shutil.copy2(source, to)
    else:
        put(root, real)
        to.symlink_to(real)


def put_program(root, source, target):
    put(root, source, target)
    for lib in libraries(source):
        put(root, lib)


def skeleton(root):
    """The folders of a root file system; both archives must agree on what is a link."""
    for name in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "dev", "proc", "sys", "tmp", "run", "etc", "var/run"]:
        (root / name).mkdir(parents=True)
    for name in ["bin", "sbin", "lib", "lib64"]:
        (root / name).symlink_to("usr/" + name)


def pack(busybox, root, archive):
    part = archive.with_suffix(".part")
    with open(part, "wb") as out:
        find = subprocess.Popen(["find", "."], cwd=root, stdout=subprocess.PIPE)
        subprocess.run([busybox, "cpio", "-o", "-H", "newc", "-R", "0:0"], cwd=root, stdin=find.stdout,
                       stdout=out, stderr=subprocess.DEVNULL, check=True)
        find.wait()
    part.rename(archive)


def backports():
    """Options with which apt sees Debian 12's backports, and nothing of this machine changes."""
    apt = CACHE / "apt"
    (apt / "lists/partial").mkdir(parents=True, exist_ok=True)
    sources = apt / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {MIRROR} bookworm-backports main\n")
    options = [f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=-", f"Dir::State={apt}",
               f"Dir::Cache={apt}", "Dir::State::status=/dev/null", "APT::Sandbox::User=root"]
    return [word for option in options for word in ("-o", option)]


def backported_kernel(debs):
    """The newest kernel package of the series; its file is in `debs` then."""
    run("apt-get", "-qq", *backports(), "update")
    names = re.findall(rf"^(linux-image-{re.escape(SERIES)}\.\d+\+deb12-amd64) ",
                       run("apt-cache", *backports(), "search", "--names-only", f"^linux-image-{SERIES}"), re.M)
    if not names:
        raise GuestError(f"bookworm-backports has no Linux {SERIES}")
    newest = max(names, key=lambda name: [int(x) for x in re.findall(r"\d+", name)])
    if not list(debs.glob(newest + "_*.deb")):
        run("apt-get", "-qq", *backports(), "download", newest, cwd=debs)
    return newest


def download(packages, folder):
    """Each package's file in `folder`, from the cache or the Debian mirror."""
    missing = [p for p in packages if not list(folder.glob(p + "_*.deb"))]
    command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *missing]
    if missing:
        try:
            run(*command, cwd=folder)
        except GuestError:  # no list of packages, or one too old
            run("apt-get", "-qq", "update")
            run(*command, cwd=folder)
    return [max(folder.glob(p + "_*.deb"), key=os.path.getmtime) for p in packages]


def kernel_package():
    known = sorted((CACHE / "debs").glob("linux-image-*.deb"), key=os.path.getmtime)
    if known:
        return known[-1].name.split("_")[0]
    if SERIES:
        return backported_kernel(CACHE / "debs")
    def ask():
        return re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", "linux-image-amd64"))
    try:
        found = ask()
    except GuestError:
        found = None
    if not found:
        run("apt-get", "-qq", "update")
        found = ask()
    return found[1]


def put_module(root, source, target):
    """A module, unpacked: busybox loads no other."""
    if source.suffix != ".xz":
        put(root, source, target)
        return
    to = root / target.lstrip("/").removesuffix(".xz")
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(lzma.decompress(source.read_bytes()))


def add_modules(busybox, tree, root, version):
    """Copy the modules named above, but those that are in the kernel itself, and all that they need, and index
    them. Returns those to load at boot."""
    folder = tree / "lib/modules" / version
    if not (folder / "modules.dep").exists():
        run(busybox, "depmod", "-b", tree, version)
    needs, place = {}, {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        name = Path(path).name.split(".")[0].replace("-", "_")
        place[name], needs[name] = path, rest.split()
    builtin = {Path(x).stem.replace("-", "_") for x in (folder / "modules.builtin").read_text().split()}
    wanted = [name for name in MODULES + MODULES_LATER if name not in builtin]
    for name in wanted:
        if name not in place:
            raise GuestError(f"the kernel package has no module {name}")
        for path in [place[name], *needs[name]]:
            put_module(root, folder / path, f"/lib/modules/{version}/{path}")
    for name in ["modules.builtin", "modules.order"]:
        put(root, folder / name, f"/lib/modules/{version}/{name}")
    run(busybox, "depmod", "-b", root, version)
    return [name for name in MODULES if name in wanted]


def build_base():
    """Kernel and base archive, from the cache when they are there. Returns their paths."""
    CACHE.mkdir(parents=True, exist_ok=True)
    vmlinuz, archive, stamp = CACHE / "vmlinuz", CACHE / "base.cpio", CACHE / "stamp"
    wanted = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return vmlinuz, archive, CACHE / "busybox"
        stamp.unlink(missing_ok=True)
        debs = CACHE / "debs"
        debs.mkdir(exist_ok=True)
        kernel = kernel_package()
        version = kernel.removeprefix("linux-image-")
        kernel_deb, *others = download([kernel, *PACKAGES], debs)

        root, tree = CACHE / "root", CACHE / "kernel"
        for folder in (root, tree):
            shutil.rmtree(folder, ignore_errors=True)
        skeleton(root)
        unpacked = CACHE / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        run("dpkg-deb", "-x", kernel_deb, tree)
        for deb in others:
            run("dpkg-deb", "-x", deb, unpacked)
        shutil.copy(tree / f"boot/vmlinuz-{version}", vmlinuz)
        shutil.copy(unpacked / "bin/busybox", CACHE / "busybox")
        busybox = CACHE / "busybox"

        put(root, busybox, "/bin/busybox")
        for program, place in HOST_PROGRAMS.items():
            put_program(root, program, place)
        for program in PROGRAMS:
            put_program(root, unpacked / "usr/bin" / program, "/usr/bin/" + program)
        for name in run(busybox, "--list").split():
            link = root / "usr/bin" / name
            if not link.exists():
                link.symlink_to("busybox")
        put(root, LIBDIR / "libgcc_s.so.1")  # pthread_exit loads it
        # libibverbs loads the provider by its name.
        put(root, "/etc/libibverbs.d/rxe.driver")
        for provider in LIBDIR.glob("libibverbs/librxe-*.so"):
            put_program(root, provider, provider)
        loaded = add_modules(busybox, tree, root, version)
        (root / "etc/modules").write_text("\n".join(loaded) + "\n")
        (root / "etc/passwd").write_text("root::0:0:root:/:/bin/sh\nurnic::1000:1000:urnic:/:/bin/sh\n")
        (root / "etc/group").write_text("root:x:0:\n")
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        pack(busybox, root, archive)
        for folder in (root, tree, unpacked):
            shutil.rmtree(folder)
        stamp.write_text(wanted)
        return vmlinuz, archive, busybox


def pack_project(busybox, build, archive):
    """What the build made, with the DPDK drivers that the PCI path needs and no others."""
    root = archive.with_suffix("")
    skeleton(root)
    put(root, HERE / "guest-init", "/init")
    put_program(root, build / "tests/interop/agent", "/usr/bin/agent")
    put_program(root, build / "tests/interop/peer_rdma", "/usr/bin/peer")
    put_program(root, build / "tests/interop/peer_urnic", "/usr/bin/peer_urnic")
    put_program(root, build / "tests/interop/drill_target_rdma", "/usr/bin/drill_target")
    put_program(root, build / "app/urnicd/urnicd", "/usr/bin/urnicd")
    put_program(root, build / "app/urnic/urnic", "/usr/bin/urnic")
    if (build / "lib/verbs/libibverbs.so.1").exists():
        put_program(root, build / "lib/verbs/libibverbs.so.1", VERBS)
        put_program(root, build / "lib/nic/program/liburnic-engine.so", str(Path(VERBS).with_name("liburnic-engine.so")))
    plugin = build / "drivers/dpdk/liburnic-dpdk.so"
    if plugin.exists():
        put_program(root, plugin, PLUGIN_DIR + "/liburnic-dpdk.so")
        pmds = sorted(LIBDIR.glob("dpdk/pmds-*"))[-1]
        for name in ["bus_pci", "bus_vdev", "mempool_ring", "net_virtio", "net_e1000", "net_vmxnet3",
                     "net_af_packet"]:
            for lib in pmds.glob(f"librte_{name}.so*"):
                put_program(root, lib, lib)
    pack(busybox, root, archive)
    shutil.rmtree(root)


def send_file(path, out):
    with open(path, "rb") as f:
        shutil.copyfileobj(f, out, 1 << 20)
    out.write(bytes(-out.tell() % 512))


class Guest:
    """A booted guest. `nics` are the sockets at which QEMU delivers frames: rxe's, virtio's, e1000's."""

    def __init__(self, build, work, nics, mtu=9000, cpus=2, iommu=True, port=PORT, more=()):
        self.work, self.process, self.port, self.release = Path(work), None, port, ""
        vmlinuz, base, busybox = build_base()
        project = self.work / "project.cpio"
        pack_project(busybox, Path(build), project)
        initrd = self.work / "initrd"
        with open(initrd, "wb") as out:
            send_file(base, out)
            send_file(project, out)
        project.unlink()
        self.console = self.work / "console.log"

        append = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "audit=0", "nowatchdog",
                  "tsc=reliable", "no_timer_check", "random.trust_cpu=on", "net.ifnames=0",
                  *(["intel_iommu=on", "iommu=pt"] if iommu else []), "hugepages=96", f"roce_mtu={mtu}"]
        self.command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                        "-machine", "q35", "-cpu", "max,la57=off", "-smp", str(cpus), "-m", "1024",
                        "-accel", "tcg,thread=multi",
                        "-kernel", str(vmlinuz), "-initrd", str(initrd), "-append", " ".join(append),
                        "-serial", f"file:{self.console}", *(["-device", "intel-iommu"] if iommu else []),
                        "-qmp", f"unix:{self.work}/qmp,server=on,wait=off",
                        "-netdev", f"user,id=ctl,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:{port}-:{PORT}",
                        "-device", "virtio-net-pci,netdev=ctl,addr=3,romfile="]
        devices = [f"virtio-net-pci,addr=4,mac={MAC},host_mtu={mtu}",
                   f"virtio-net-pci,addr=5,mac={VIRTIO_MAC},host_mtu={mtu},disable-legacy=on,iommu_platform=on",
                   f"e1000,addr=6,mac={E1000_MAC}"]
        for i, (device, path) in enumerate(zip(devices, nics)):
            self.command += ["-netdev", f"stream,id=n{i},server=off,addr.type=unix,addr.path={path}",
                             "-device", f"{device},netdev=n{i},romfile="]
        self.command += [*hub_words(), *more] if iommu else more
        self.initrd = initrd
        self.start()

    def start(self):
        self.console.unlink(missing_ok=True)
        with open(self.work / "qemu.log", "w") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=log)

    def ready(self, seconds):
        """Has the guest booted, after so many seconds at most?"""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            if self.console.exists() and "GUEST-READY" in self.console.read_text(errors="replace"):
                return True
            time.sleep(0.1)
        return False

    def wait(self):
        """Until the guest answers. Raises GuestError with the end of its console."""
        for seconds in BOOT_SECONDS:
            if self.ready(seconds):
                self.initrd.unlink(missing_ok=True)
                self.release = self.sh("uname -r").strip()
                return
            if self.process.poll() is not None or seconds == BOOT_SECONDS[-1]:
                break
            print(f"the guest has not come up in {seconds} s: starting it again", flush=True)
            self.stop()
            self.start()
        said = (self.work / "qemu.log").read_text()
        if self.console.exists():
            said += self.console.read_text(errors="replace")[-2000:]
        raise GuestError("the guest did not come up:\n" + said)

    def connect(self, command):
        """A socket with the command's input and output."""
        conn = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        conn.sendall(command.encode() + b"\0")
        return conn

    def sh(self, command, timeout=60, check=True):
        """Run a shell command; its output, and its exit status as well if not check."""
        with self.connect(command) as conn:
            conn.settimeout(timeout)
            conn.shutdown(socket.SHUT_WR)
            data = b""
            while chunk := conn.recv(65536):
                data += chunk
        status, text = (data[-1], data[:-1].decode(errors="replace")) if data else (255, "")
        if check and status:
            raise GuestError(f"in the guest, {command}: exit {status}: {text.strip()[-500:]}")
        return text if check else (status, text)

    def qmp(self, command, **arguments):
        """A command to QEMU itself."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(f"{self.work}/qmp")
            f = s.makefile("rw")
            f.readline()
            for ask in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                f.write(json.dumps(ask) + "\n")
                f.flush()
                while True:
                    answer = json.loads(f.readline())
                    if "error" in answer:
                        raise GuestError(f"QEMU, {command}: {answer['error'].get('desc')}")
                    if "return" in answer:
                        break

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


if __name__ == "__main__":  # fetch and build what is cached
    try:
        build_base()
    except GuestError as error:
        sys.exit(f"interop: {error}")
