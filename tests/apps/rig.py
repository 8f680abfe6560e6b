# SPDX-License-Identifier: BSD-3-Clause
"""Where the programs run: one or two hosts, each with its daemon and its programs.

Topologies, by name:
  one     client and server on one device
  two     two devices of one daemon, joined by an emulated link
  memif   two hosts (network namespaces), joined by memif
  veth    two hosts, joined by a veth pair (DPDK's af_packet)

Programs find each other by TCP before they use RDMA. With `one` and `two` they do so on 127.0.0.1,
with `memif` and `veth` by an interface for this alone (10.78.9.0/24). memif and veth need root.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

TOPOLOGIES = ("one", "two", "memif", "veth")


class RigError(Exception):
    pass


class Host:
    """One daemon and its programs."""

    def __init__(self, rig, name, ports, netns=None):
        self.rig, self.name, self.netns = rig, name, netns
        self.socket = os.path.join(rig.folder, name + ".sock")
        self.log = open(os.path.join(rig.folder, name + ".log"), "w+", encoding="utf-8", errors="replace")
        self.ports = ports
        self.revive()

    def revive(self):
        """Start the daemon, the first time or again."""
        self.daemon = subprocess.Popen(
            self.inside([self.rig.urnicd, "--foreground", "--log-level", "warn", "--socket", self.socket, *self.ports]),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for _ in range(600):
            if self.daemon.poll() is not None:
                break
            if os.path.exists(self.socket) and self.urnic("info").returncode == 0:
                return
            time.sleep(0.05)
        raise RigError(f"{self.name}: urnicd does not serve: {self.said()}")

    def kill(self):
        """The daemon, without a chance to tidy up."""
        self.daemon.kill()
        self.daemon.wait()

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read().strip()

    def inside(self, command):
        return ["ip", "netns", "exec", self.netns, *command] if self.netns else list(command)

    def env(self, extra=None):
        env = dict(os.environ, URNIC_SOCKET=self.socket)
        env.update(extra or {})
        return env

    def urnic(self, *args, timeout=30):
        return subprocess.run(self.inside([self.rig.urnic, *args]), env=self.env(), capture_output=True, text=True,
                              timeout=timeout, check=False)

    def start(self, command, preload=True, env=None, stdin=subprocess.DEVNULL):
        """A program on this host's daemon, in a process group of its own; its output is text."""
        full = [self.rig.urnic, "run", "--", *command] if preload else list(command)
        return subprocess.Popen(self.inside(full), env=self.env(env), stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                cwd=self.rig.folder)

    def counters(self):
        """Of all devices together."""
        total = {}
        for line in self.urnic("stat", "--json").stdout.splitlines():
            for name, value in json.loads(line)["counters"].items():
                total[name] = total.get(name, 0) + value
        return total

    def cm_ids(self):
        """Listeners and connections of all programs."""
        devices = self.urnic("stat", "--processes", "--json").stdout.splitlines()
        return sum(p["cm_ids"] for device in devices for p in json.loads(device)["processes"])

    def close(self):
        if self.daemon.poll() is None:
            self.daemon.terminate()
            try:
                self.daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        self.log.close()


class Rig:
    """A topology that runs. server and client are hosts, which may be the same; *_dev and *_ip are their devices and
    RDMA addresses, *_ip6 those of IPv6; oob is the server's address for TCP."""

    def __init__(self, topology, urnicd, urnic):
        self.topology, self.urnicd, self.urnic = topology, urnicd, urnic
        self.folder = tempfile.mkdtemp(prefix="urnic-apps-")
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            getattr(self, "_" + topology)()
        except BaseException:
            self.close()
            raise

    def _host(self, name, ports, netns=None):
        host = Host(self, name, ports, netns)
        self.stack.callback(host.close)
        return host

    def _names(self, server_dev, client_dev, server, client):
        self.server_dev, self.client_dev = server_dev, client_dev
        self.server_ip, self.client_ip = f"10.78.0.{server}", f"10.78.0.{client}"
        self.server_ip6, self.client_ip6 = f"fd78::{server}", f"fd78::{client}"

    @staticmethod
    def _addr(n):
        return ["--addr", f"10.78.0.{n}/24", "--addr", f"fd78::{n}/64"]

    def _one(self):
        self.server = self.client = self._host("host", ["--port", "mem:apps", *self._addr(1)])
        self._names("urn0", "urn0", 1, 1)
        self.oob = "127.0.0.1"

    def _two(self):
        self.server = self.client = self._host(
            "host", ["--port", "mem:apps", *self._addr(1), "--port", "mem:apps", *self._addr(2)])
        self._names("urn0", "urn1", 1, 2)
        self.oob = "127.0.0.1"

    def _namespaces(self):
        """Two of them, joined for TCP."""
        names = [f"urnic-apps-{os.getpid()}-{n}" for n in (1, 2)]
        for name in names:
            self._ip("netns", "add", name)
            self.stack.callback(self._ip, "netns", "del", name, check=False)
        self._ip("link", "add", "oob", "netns", names[0], "type", "veth", "peer", "name", "oob", "netns", names[1])
        for n, name in enumerate(names, 1):
            self._ip("-n", name, "addr", "add", f"10.78.9.{n}/24", "dev", "oob")
            for dev in ("oob", "lo"):
                self._ip("-n", name, "link", "set", dev, "up")
        self.oob = "10.78.9.1"
        return names

    @staticmethod
    def _ip(*args, check=True):
        r = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
        if check and r.returncode != 0:
            raise RigError(f"ip {' '.join(args)}: {r.stderr.strip()}")

    def _memif(self):
        names = self._namespaces()
        path = os.path.join(self.folder, "memif.sock")
        self.server = self._host("server", ["--port", f"memif:{path},role=server", *self._addr(1)], names[0])
        self.client = self._host("client", ["--port", f"memif:{path},role=client", *self._addr(2)], names[1])
        self._names("urn0", "urn0", 1, 2)

    def _veth(self):
        names = self._namespaces()
        self._ip("link", "add", "v0", "mtu", "9000", "netns", names[0], "type", "veth", "peer", "name", "v0", "mtu",
                 "9000", "netns", names[1])
        for name in names:
            subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.v0.disable_ipv6=1"], check=True)
            subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", "v0", "tx", "off"], check=False,
                           capture_output=True)
            self._ip("-n", name, "link", "set", "v0", "up")
        port = "dpdk:net_af_packet0,iface=v0"
        self.server = self._host("server", ["--port", port, *self._addr(1)], names[0])
        self.client = self._host("client", ["--port", port, *self._addr(2)], names[1])
        self._names("urn0", "urn0", 1, 2)

    def hosts(self):
        return [self.server] if self.server is self.client else [self.server, self.client]

    def counters(self):
        """Of all hosts together."""
        total = {}
        for host in self.hosts():
            for name, value in host.counters().items():
                total[name] = total.get(name, 0) + value
        return total

    def close(self):
        self.stack.close()


def end(process, seconds=5):
    """End a program and all it started, politely first. Its output and status."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sig)
        try:
            out = process.communicate(timeout=seconds)[0]
            break
        except subprocess.TimeoutExpired:
            out = ""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return out, process.returncode
