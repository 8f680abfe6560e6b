# SPDX-License-Identifier: BSD-3-Clause
"""`scripts/interop --bench`: perftest in the guest, from rxe to rxe and under `urnic run` over udp: ports. Each has a
veth pair of its own, both made alike. Samples are taken in turn, so that both see the same of the host's other work."""
import json
import re
import statistics
import time

from bench import Failure

MTU, SAMPLES, TRIES = 9000, 3, 5
# What is measured: perftest's program and options, the place of the figure in its row of figures, its factor, its
# unit, the goal for the ratio urnic to rxe, and whether less is better.
ROWS = {"rxe_bw": ("ib_write_bw", "-s 65536 -D 2 --report_gbits", 3, 1e9, "Gb/s", 1.5, False),
        "rxe_rate": ("ib_write_bw", "-s 8 -D 2 --report_gbits", 4, 1e6, "k/s", 1.5, False),
        "rxe_lat": ("ib_write_lat", "-s 8 -n 500", 4, 1e-6, "us", 2.0, True)}
SHOW = {"Gb/s": 1e-9, "k/s": 1e-3, "us": 1e6}


class Rig:
    def __init__(self, guest):
        self.guest, self.port = guest, 19000

    def up(self):
        sh = self.guest.sh
        sh("modprobe veth; mkdir -p /run/netns; for n in near far; do ip netns add $n; ip -n $n link set lo up; done")
        # rxe works in the first namespace only: its two ends are both there, and find each other over the veth pair
        # because their sockets are bound to its interfaces.
        sh(f"ip link add r0 mtu {MTU} type veth peer name r1 mtu {MTU}; "
           "for i in 0 1; do c=/proc/sys/net/ipv4/conf/r$i; echo 1 >$c/accept_local; echo 0 >$c/rp_filter; "
           "echo 1 >/proc/sys/net/ipv6/conf/r$i/disable_ipv6; ip addr add 10.66.0.$((i+1))/24 dev r$i; ip link set r$i up; "
           "rdma link add rxe1$i type rxe netdev r$i; done; echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter")
        sh(f"ip link add v0 mtu {MTU} netns near type veth peer name v1 mtu {MTU} netns far; "
           "for n in near far; do i=$([ $n = near ] && echo 0 || echo 1); "
           "ip netns exec $n sh -c \"echo 1 >/proc/sys/net/ipv6/conf/v$i/disable_ipv6\"; "
           "ip -n $n addr add 10.67.0.$((i+1))/24 dev v$i; ip -n $n link set v$i up; "
           "ip netns exec $n urnicd --foreground --socket /run/speed$i.sock --cpu $i --port udp:v$i "
           "</dev/null >/run/speed$i.log 2>&1 & done")
        for i in range(2):
            self.active(i)

    def active(self, i):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status, text = self.guest.sh(f"urnic --socket /run/speed{i}.sock info urn0 --json", check=False)
            if status == 0 and json.loads(text).get("state") == "active":
                return
            time.sleep(0.3)
        raise Failure("urnicd in the guest: " + self.guest.sh(f"cat /run/speed{i}.log")[-500:])

    def words(self, ours, i, command):
        """The command at end `i`, on urnic or on rxe, on the processor of that end."""
        if not ours:
            return f"timeout 60 taskset -c {i} {command} -d rxe1{i} -x {self.gid(i)}"
        # In front of busybox's programs: they would take their own `ip`.
        return (f"ip netns exec {('near', 'far')[i]} timeout 60 env URNIC_SOCKET=/run/speed{i}.sock taskset -c {i} "
                f"urnic run -- {command}")

    def gid(self, i):
        """Of the IPv4 address."""
        return self.guest.sh(f"grep -l 0a42:000{i + 1}$ /sys/class/infiniband/rxe1{i}/ports/1/gids/* 2>/dev/null "
                             "| head -n 1 | sed 's:.*/::'").strip()

    def measure(self, ours, program, options, place):
        """A figure of perftest's. It is 0 if perftest could not calibrate the processor's clock, on a busy host: once more."""
        for _ in range(TRIES):
            figure = self.run(ours, program, options, place)
            if figure > 0:
                return figure
        raise Failure(f"{program} {options}: 0 in {TRIES} runs")

    def run(self, ours, program, options, place):
        self.port += 1
        command = f"{program} -F -p {self.port} {options}"
        server = self.guest.connect(self.words(ours, 1, command))
        try:
            enter = "ip netns exec far " if ours else ""
            listens, _ = self.guest.sh(f"n=0; while ! {enter}grep -q :{self.port:04X}.*' 0A ' /proc/net/tcp; do sleep 0.1; "
                                       "n=$((n+1)); [ $n -lt 200 ] || exit 1; done", check=False)
            if listens != 0:
                server.settimeout(5)
                raise Failure(f"{command} does not listen: {server.recv(4000).decode(errors='replace')}")
            to = "10.67.0.2" if ours else "127.0.0.1"
            text = self.guest.sh(f"{self.words(ours, 0, command)} {to}", timeout=90)
        finally:
            server.close()
        rows = re.findall(r"^\s*(\d+(?:\s+[\d.]+)+)\s*$", text, re.M)
        if not rows:
            raise Failure(f"{program}: no figures in: {text[-500:]}")
        return float(rows[-1].split()[place])


def speed(guest, record):
    """Measure all rows; `record` takes name, whether the goal is met, text and the figures. Missing a goal is no failure."""
    rig = Rig(guest)
    rig.up()
    for name, (program, options, place, factor, unit, goal, less) in ROWS.items():
        got = {ours: [] for ours in (False, True)}
        for _ in range(SAMPLES):
            for ours, samples in got.items():
                samples.append(rig.measure(ours, program, options, place) * factor)
        rxe, urnic = statistics.median(got[False]), statistics.median(got[True])
        ratio, f = urnic / rxe, SHOW[unit]
        met = ratio <= goal if less else ratio >= goal
        record(name, met, f"{urnic * f:.3g} {unit} ({min(got[True]) * f:.3g} .. {max(got[True]) * f:.3g}), rxe {rxe * f:.3g} "
               f"({min(got[False]) * f:.3g} .. {max(got[False]) * f:.3g}), ratio {ratio:.2f}, goal {'<=' if less else '>='} "
               f"{goal}, {'met' if met else 'NOT met'}", {"urnic": got[True], "rxe": got[False], "ratio": ratio, "goal": goal})
