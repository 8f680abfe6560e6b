# SPDX-License-Identifier: BSD-3-Clause
"""Connections: rping and ucmatose against ours, then our own ends: private data, rejection, farewell, death."""
import time

from bench import OUR4, OUR6, test
from ends import DISCONNECTED, ERR, ESTABLISHED, FLUSHED, OK, REJECTED, SEND, STATUS, WRITE, EndError
from guest import ADDR4, ADDR6
from t_rc import TARGET

PORT = 7777


def families():
    yield OUR4, ADDR4
    yield OUR6, ADDR6


def wait_listening(t, pid_of):
    """Until that program in the guest listens."""
    end = time.monotonic() + 20
    while "LISTEN" not in t.guest.sh(f"rdma resource show cm_id | grep 'comm {pid_of}' || true"):
        t.check(time.monotonic() < end, pid_of, "in the guest does not listen")
        time.sleep(0.05)


class GuestProgram:
    """A program in the guest that runs beside the test."""

    def __init__(self, t, command):
        self.conn = t.guest.connect("timeout 60 " + command)
        self.t, self.command = t, command

    def output(self):
        self.conn.settimeout(60)
        data = b""
        while chunk := self.conn.recv(65536):
            data += chunk
        self.conn.close()
        self.t.check(data, self.command, "ended without a word")
        return data[-1], data[:-1].decode(errors="replace")

    def kill(self):
        self.t.guest.sh(f"kill -9 $(pidof {self.command.split()[0]}) || true")
        self.output()


def listening(t, child):
    line = child.stdout.readline()
    t.check("listening" in line, "no listener:", line)


def rxe_calls(t, ours, theirs):
    """rxe's program is the client of ours."""
    server = t.urnic(*ours)
    listening(t, server)
    status, text = t.guest.sh(theirs, check=False)
    t.equal(status, 0, theirs, text[-300:])
    status, said = t.output(server)
    t.equal(status, 0, "urnic", *ours, said[-300:])
    return text + said


def ours_calls(t, ours, theirs):
    server = GuestProgram(t, theirs)
    wait_listening(t, theirs.split()[0])
    status, text = t.output(t.urnic(*ours))
    t.equal(status, 0, "urnic", *ours, text[-300:])
    status, said = server.output()
    t.equal(status, 0, theirs, said[-300:])
    return text + said


def cm_seen(t, out):
    return [p.mad for p in t.cable.packets(lambda p: p.mad and p.out == out)]


@test("rping-from-rxe", "CM-01: rping of rdma-core is the client of urnic rping, IPv4 and IPv6", short=True)
def rping_from_rxe(t):
    for our, _ in families():
        said = rxe_calls(t, ("rping",), f"rping -c -a {our} -C 10 -S 3000 -V")
        t.check("served 10 rounds" in said, said)
    t.equal(sorted(set(cm_seen(t, False)) & {"REQ", "RTU", "DREQ"}), ["DREQ", "REQ", "RTU"], "rxe's CM messages")
    t.check("REP" in cm_seen(t, True), "no REP of ours")
    return "20 rounds, data verified by rping"


@test("rping-to-rxe", "CM-01: urnic rping is the client of rdma-core's, IPv4 and IPv6", short=True)
def rping_to_rxe(t):
    for _, their in families():
        ours_calls(t, ("rping", "--count", "10", "--size", "3000", their), f"rping -s -a {their} -C 10 -S 3000 -V")
    return "20 rounds, data verified by ours"


@test("rping-sizes", "rping with 64 octets and with 65535, both directions")
def rping_sizes(t):
    for size in (64, 65535):
        rxe_calls(t, ("rping",), f"rping -c -a {OUR4} -C 3 -S {size} -V")
        ours_calls(t, ("rping", "--count", "3", "--size", size, ADDR4), f"rping -s -C 3 -S {size} -V")
    return "12 rounds"


@test("ucmatose-from-rxe", "ucmatose of rdma-core is the client of urnic ucmatose, 4 connections, IPv4 and IPv6")
def ucmatose_from_rxe(t):
    for our, _ in families():
        said = rxe_calls(t, ("ucmatose", "--connections", "4", "--size", "3000"),
                         f"ucmatose -s {our} -c 4 -C 10 -S 3000")
        t.check("return status 0" in said and "4 connections" in said, said)
    return "8 connections, 160 messages"


@test("ucmatose-to-rxe", "urnic ucmatose is the client of rdma-core's, 4 connections, IPv4 and IPv6")
def ucmatose_to_rxe(t):
    for _, their in families():
        said = ours_calls(t, ("ucmatose", "--connections", "4", "--size", "3000", their),
                          f"ucmatose -b {their} -c 4 -C 10 -S 3000")
        t.check("return status 0" in said and "4 connections" in said, said)
    return "8 connections, 160 messages"


# ---- our own programs at both ends: what rping does not show

def both_roles(t, v6=False):
    """(client, server): ours is the client, then the server."""
    near, far = t.two_ends(v6)
    yield near, far
    near.close()
    far.close()
    near, far = t.two_ends(v6)
    yield far, near
    near.close()
    far.close()


def event(t, end, wanted, what):
    got = end.do("event", ms=20000)
    t.equal(got["event"], wanted, f"{end}: event of {what} (status {got['status']})")
    return got


def bring_up(t, client, server, q=0, **words):
    """A connection by the CM, up to ESTABLISHED at both."""
    if q == 0:
        server.do("listen", port=PORT)
    client.do("dial", q=q, to=server.ip, port=PORT)
    client.do("connect", q=q, text="hello-from-client", **words)
    asked = server.do("answer", q=q)
    server.do("accept", q=q, text="hello-from-server", **words)
    there = event(t, client, ESTABLISHED, "connect")
    event(t, server, ESTABLISHED, "accept")
    return asked, there


def bytes_of(answer):
    return bytes.fromhex(answer["text"]).rstrip(b"\0").decode()


@test("cm-private-data", "A22 CM-10: private data and READ depths of REQ and REP arrive; connecting is quick")
def private_data(t):
    times = []
    for v6 in (False, True):
        for client, server in both_roles(t, v6):
            asked, there = bring_up(t, client, server, rd=4)
            t.equal((bytes_of(asked), bytes_of(there)), ("hello-from-client", "hello-from-server"), client)
            t.equal((asked["rd"], asked["depth"]), (4, 4), "READ depths in the request")
            mads = t.cable.packets(lambda p: p.mad in ("REQ", "RTU"))
            times.append((mads[-1].time - mads[-2].time) / 1e6)
            for a, b in ((client, server), (server, client)):
                b.do("recv", id=1, off=0, len=100)
                a.do("send", id=2, op=SEND, off=0, len=100)
                t.equal([w.status for w in a.poll() + b.poll()], [OK, OK], "a SEND on the connection")
    return f"4 connections, REQ to RTU took {min(times):.1f} to {max(times):.1f} ms"


@test("cm-reject", "CM-20: a rejection arrives with its reason 28 and private data")
def reject(t):
    for v6 in (False, True):
        for client, server in both_roles(t, v6):
            server.do("listen", port=PORT)
            client.do("dial", to=server.ip, port=PORT)
            client.do("connect")
            server.do("answer")
            server.do("reject", text="not-today")
            got = event(t, client, REJECTED, "reject")
            t.equal((got["status"], bytes_of(got)), (28, "not-today"), client)
    return "4 rejections"


@test("cm-no-listener", "CM-20: nobody listens: rejected with reason 8, invalid service id")
def no_listener(t):
    for client, server in both_roles(t):
        client.do("dial", to=server.ip, port=PORT + 1)
        client.do("connect")
        got = client.do("event")
        t.equal((got["event"], got["status"]), (REJECTED, 8), client, "(event, reason)")
    return "both refuse"


@test("cm-disconnect", "CM-22: each side hangs up in turn; the other is told, its receives are flushed")
def disconnect(t):
    n = 0
    for client, server in both_roles(t):
        bring_up(t, client, server)
        bring_up(t, client, server, q=1)
        for q, (a, b) in enumerate(((client, server), (server, client))):
            for e in (a, b):
                e.do("recv", q=q, id=40 + q, off=0, len=64)
            a.do("hangup", q=q)
            event(t, b, DISCONNECTED, "hangup")
            b.do("hangup", q=q)  # rdma_cm: the passive side answers with the DREP
            event(t, a, DISCONNECTED, "own hangup")
            for e in (a, b):
                got = e.poll()
                t.equal([(w.id, w.status) for w in got], [(40 + q, FLUSHED)], e, "receive after hanging up")
                t.equal(e.state(q), ERR, e, "state")
            n += 1
    drep = len(t.cable.packets(lambda p: p.mad == "DREP"))
    t.check(drep >= n, f"{drep} DREPs for {n} disconnections")
    return f"{n} disconnections"


@test("cm-repeated", "CM-23: every CM message arrives twice; one connection comes of it")
def repeated(t):
    for client, server in both_roles(t):
        t.cable.rule("twice", lambda p: p.mad, times=None)
        bring_up(t, client, server)
        server.do("recv", id=1, off=0, len=64)
        client.do("send", id=2, op=SEND, off=0, len=64)
        t.equal([w.status for w in client.poll() + server.poll()], [OK, OK], client)
        try:
            extra = server.do("event", ms=300)
            t.check(False, "a second event at the server:", extra)
        except EndError as e:
            t.check("timed out" in e.text, e)
        client.do("hangup")
        event(t, server, DISCONNECTED, "hangup")
        t.cable.clear()
    return "2 connections"


@test("cm-lost-messages", "CM-23: REQ, REP, RTU and DREQ lost once each: the CM's retries carry them")
def lost_messages(t):
    took = []
    for lost in ("REQ", "REP", "RTU", "DREQ"):
        for client, server in both_roles(t):
            rule = t.cable.lose(lambda p: p.mad == lost)
            began = time.monotonic()
            server.do("listen", port=PORT)
            client.do("dial", to=server.ip, port=PORT)
            client.do("connect")
            server.do("answer", ms=30000)
            server.do("accept")
            t.equal(client.do("event", ms=30000)["event"], ESTABLISHED, client, lost, "lost")
            if lost == "RTU":  # the first message does the work of the RTU (CM-23)
                server.do("recv", id=1, off=0, len=64)
                client.do("send", id=2, op=SEND, off=0, len=64)
            t.equal(server.do("event", ms=30000)["event"], ESTABLISHED, server, lost, "lost")
            client.do("hangup")
            t.equal(server.do("event", ms=30000)["event"], DISCONNECTED, server, lost, "lost")
            t.equal(len(rule.hits), 1, "lost", lost)
            took.append(time.monotonic() - began)
            t.cable.clear()
    return f"8 connections, {min(took):.1f} to {max(took):.1f} s each"


@test("peer-dies", "a program is killed: its kernel, or our daemon, disconnects for it")
def peer_dies(t):
    for client, server in both_roles(t):
        bring_up(t, client, server)
        server.do("recv", id=7, off=0, len=64)
        if client.side == "urnic":
            client.child.kill()
        else:
            t.guest.sh(f"kill -9 {client.pid}")
        event(t, server, DISCONNECTED, "death of the client")
        if server.side == "rxe":
            server.do("hangup")  # librdmacm leaves the queue pair alone until then
        t.equal([w.status for w in server.poll()], [FLUSHED], server, "receive")
    return "noticed by both"


@test("daemon-dies", "A14: urnicd is killed: rxe's requests run out of retries, its CM gives up; a new urnicd serves")
def daemon_dies(t):
    near, far = t.two_ends()
    t.join(far, near, timeout=12, retry=3)
    transfer_ok(t, far, near)
    t.daemon.kill()
    far.do("send", id=5, op=WRITE, off=0, len=64, raddr=near.addr + TARGET, rkey=near.rkey)
    got = far.poll(ms=30000)
    t.equal([STATUS.get(w.status) for w in got], ["RETRY_EXC_ERR"], "rxe")
    t.equal(near.poll(ms=100), [], "the dead daemon's client")
    near.close()
    far.close()
    t.daemon.start()
    near, far = t.two_ends()
    t.join(far, near)
    transfer_ok(t, far, near)
    return "RETRY_EXC_ERR, then new connections work"


def transfer_ok(t, a, b):
    a.do("send", id=1, op=WRITE, off=0, len=64, raddr=b.addr + TARGET, rkey=b.rkey)
    t.equal([w.status for w in a.poll()], [OK], a, "WRITE")


@test("cable-cut", "TMR-05: nothing arrives any more: both ends give up after their retries")
def cable_cut(t):
    for pair in t.pairs(timeout=12, retry=3):
        transfer_ok(t, pair.req, pair.rsp)
        t.cable.lose(lambda p: True, times=None)
        before = len(t.cable.packets())
        pair.req.do("send", id=5, op=WRITE, off=0, len=64, raddr=pair.rsp.addr + TARGET, rkey=pair.rsp.rkey)
        t.equal([STATUS.get(w.status) for w in pair.req.poll(ms=30000)], ["RETRY_EXC_ERR"], pair)
        t.equal(pair.req.state(), ERR, pair, "state")
        tries = len(t.cable.packets()) - before
        t.equal(tries, 4, pair, "transmissions with retry_cnt 3")
        t.cable.clear()
    return "4 transmissions, then RETRY_EXC_ERR"
