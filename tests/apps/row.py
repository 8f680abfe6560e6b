# SPDX-License-Identifier: BSD-3-Clause
"""One row of the table: a program, how it is called, and what must be true of the run."""
import dataclasses
import os
import re
import signal
import subprocess
import time

from rig import TOPOLOGIES, end

BOTH = TOPOLOGIES
LOCAL = ("one", "two")


@dataclasses.dataclass
class Row:
    """server and client are command lines as lists; words in braces stand for the rig's names, and {port} for a TCP
    port that no other row uses. A row without a server is one program alone."""
    name: str
    client: list
    server: list = None
    topologies: tuple = BOTH
    expect: str = ""          # a regular expression that the client's output must match
    server_expect: str = ""   # ... and the server's
    refuse: str = ""          # ... and one that neither may match
    octets: int = 0           # payload that queue pairs must have carried, at least
    quick: bool = False       # part of the quick subset, on the topologies of quick_on
    quick_on: tuple = ("one",)
    seconds: int = 30
    status: int = 0           # of the client; None: any
    server_ends: bool = True  # by itself, with status 0
    ready: float = 0.4        # seconds from the server's start to the client's
    listens: str = ""         # ... and the client waits until the server listens: "tcp" (at {port}), "cm" (by rdma_cm)
    env: dict = dataclasses.field(default_factory=dict)
    check: object = None      # a function of (rig, result) that returns what is wrong, or ""
    prepare: object = None    # a function of (rig) called first; what it returns joins the names
    lint: bool = True         # a capture of the run breaks no rule
    kill: str = ""            # "server", "client" or "daemon": killed after two seconds; the others end in `seconds`


@dataclasses.dataclass
class Result:
    row: Row
    topology: str
    wrong: list
    seconds: float
    output: str
    server_output: str = ""


PORT = [18000]


def sent(counters):
    """Octets that queue pairs have sent: the daemon's, and those of engines in programs."""
    return counters.get("tx_bytes", 0) + counters.get("channel_tx_bytes", 0)


def names(rig, row):
    PORT[0] += 1
    out = {"sdev": rig.server_dev, "cdev": rig.client_dev, "sip": rig.server_ip, "cip": rig.client_ip,
           "sip6": rig.server_ip6, "cip6": rig.client_ip6, "oob": rig.oob, "port": str(PORT[0]), "gid": "3",
           "gid6": "5", "folder": rig.folder}
    if row.prepare:
        out.update(row.prepare(rig) or {})
    return out


def fill(words, known):
    return [re.sub(r"\{(\w+)\}", lambda m: known[m[1]], word) for word in words]


def start_capture(rig):
    """Of the client's device; None where client and server are one device: nothing leaves it."""
    if rig.topology == "one":
        return None
    path = f"{rig.folder}/row.pcapng"
    capture = rig.client.start([rig.urnic, "capture", "--device", rig.client_dev, "--limit", "64M", path], preload=False)
    time.sleep(0.2)
    return capture, path


def judge_capture(rig, capture):
    """What lint finds in it."""
    process, path = capture
    end(process)
    r = rig.client.urnic("lint", "--violations", "--max", "3", path, timeout=120)
    return "" if r.returncode == 0 else "lint: " + r.stdout[-1200:]


def judge(rig, row, before, out, server_out):
    """What is wrong, but for the statuses."""
    wrong = []
    if row.expect and not re.search(row.expect, out, re.M):
        wrong.append(f"the client's output lacks {row.expect!r}")
    if row.server_expect and not re.search(row.server_expect, server_out, re.M):
        wrong.append(f"the server's output lacks {row.server_expect!r}")
    for text in (out, server_out):
        m = re.search(row.refuse, text, re.M) if row.refuse else None
        if m:
            wrong.append(f"an output has {m[0]!r}")
    carried = sent(rig.counters()) - sent(before)
    if carried < row.octets:
        wrong.append(f"queue pairs carried {carried} octets, not {row.octets}")
    return wrong


def kill_row(rig, row):
    """One of them is killed; the others must end by themselves, and a new program must run afterwards."""
    known, began, wrong = names(rig, row), time.monotonic(), []
    server = rig.server.start(fill(row.server, known))
    time.sleep(row.ready)
    client = rig.client.start(fill(row.client, known))
    time.sleep(2)
    for side, process in (("server", server), ("client", client)):
        if process.poll() is not None:
            wrong.append(f"the {side} has ended before anything was killed, with status {process.returncode}")
    killed = {"server": server, "client": client}.get(row.kill)
    if killed:
        os.killpg(killed.pid, signal.SIGKILL)
    else:
        rig.client.kill()
    texts = {}
    for side, process in (("server", server), ("client", client)):
        try:
            texts[side] = process.communicate(timeout=row.seconds)[0]
            if process is not killed and process.returncode == 0 and row.kill == "daemon":
                wrong.append(f"the {side} ended with status 0 though its daemon was killed")
        except subprocess.TimeoutExpired:
            wrong.append(f"the {side} has not ended {row.seconds} s after the {row.kill} was killed")
            texts[side] = end(process)[0]
    if not killed:
        rig.client.revive()
    again = rig.client.start(["ibv_devinfo", "-d", rig.client_dev])
    said = again.communicate(timeout=20)[0]
    if again.returncode != 0 or "PORT_ACTIVE" not in said:
        wrong.append(f"no new program runs: {said}")
    return Result(row, rig.topology, wrong, time.monotonic() - began, texts["client"], texts["server"])


def wait_listening(process, port):
    """Until the process, or one beside it in its network namespace, listens at this TCP port: ten seconds at most."""
    for _ in range(200):
        for table in ("tcp", "tcp6"):
            try:
                with open(f"/proc/{process.pid}/net/{table}", encoding="ascii") as f:
                    if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in f):
                        return
            except OSError:
                return
        time.sleep(0.05)


def wait_listening_cm(host, fewest):
    """Until the host's daemon has one listener or connection more: ten seconds at most."""
    for _ in range(100):
        now = host.cm_ids()
        fewest = min(fewest, now)
        if now > fewest:
            return
        time.sleep(0.05)


def run_row(rig, row):
    if row.kill:
        return kill_row(rig, row)
    known = names(rig, row)
    env = dict(zip(row.env, fill(row.env.values(), known)))
    before, ids = rig.counters(), rig.server.cm_ids()
    capture = start_capture(rig) if row.lint else None
    began = time.monotonic()
    server = None
    wrong = []
    if row.server:
        server = rig.server.start(fill(row.server, known), env=env)
        if row.listens == "cm":
            wait_listening_cm(rig.server, ids)
        else:
            time.sleep(row.ready)
        if row.listens == "tcp":
            wait_listening(server, int(known["port"]))
    client = rig.client.start(fill(row.client, known), env=env)
    try:
        out = client.communicate(timeout=row.seconds)[0]
    except Exception:  # pylint: disable=broad-except
        wrong.append(f"the client has not ended after {row.seconds} s")
        out = end(client)[0]
    if row.status is not None and client.returncode != row.status and not wrong:
        wrong.append(f"the client's status is {client.returncode}, not {row.status}")
    server_out = ""
    if server:
        if row.server_ends:
            try:
                server_out = server.communicate(timeout=10)[0]
            except Exception:  # pylint: disable=broad-except
                wrong.append("the server has not ended")
        rest, status = end(server)
        server_out = server_out or rest
        if row.server_ends and status != 0 and not wrong:
            wrong.append(f"the server's status is {status}")
    seconds = time.monotonic() - began
    end(client)
    wrong += judge(rig, row, before, out, server_out)
    if capture:
        found = judge_capture(rig, capture)
        if found:
            wrong.append(found)
    result = Result(row, rig.topology, wrong, seconds, out, server_out)
    if row.check:
        more = row.check(rig, result)
        if more:
            wrong.append(more)
    for host in rig.hosts():
        if host.daemon.poll() is not None:
            wrong.append(f"urnicd has ended: {host.said()}")
    return result
