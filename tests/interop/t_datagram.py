# SPDX-License-Identifier: BSD-3-Clause
"""Unreliable connections and datagrams."""
import signal

from bench import test
from ends import OK, SEND, SEND_IMM, STATUS, WITH_IMM, EndError
from t_rc import INBOX, SOURCE, around, transfer

GRH = 40
WC_GRH = 1
QKEY = 0x11111111


@test("uc", "UC-01: UC SEND and WRITE, with and without immediate, 0 to 3 MTU, both directions, IPv4 and IPv6")
def uc(t):
    n = 0
    for v6 in (False, True):
        for pair in t.pairs(v6=v6, type="uc"):
            for op in ("SEND", "SEND_IMM", "WRITE_IMM"):
                for seed, size in enumerate(around(1024), 1):
                    transfer(t, pair, op, size, seed)
                    n += 1
    t.equal(t.cable.packets(lambda p: p.opcode == 0x11), [], "ACKs on UC")
    return f"{n} messages equal, no ACK on the wire"


@test("uc-receive-first", "UC-05: a receive posted before a message was sent is there for it, however late the daemon "
      "comes to look", short=True)
def receive_first(t):
    near, far = t.two_ends()
    t.join(far, near, type="uc")
    for i in range(5):
        t.daemon.process.send_signal(signal.SIGSTOP)
        near.do("recv", id=i, off=INBOX, len=100)
        far.do("send", id=i, op=SEND, off=SOURCE, len=100)
        t.check(len(t.cable.wait(lambda p: p.qpn == near.qpn[0], i + 1)) == i + 1, "nothing on the wire")
        t.daemon.process.send_signal(signal.SIGCONT)
        t.equal([(w.id, w.status) for w in near.poll()], [(i, OK)], "message", i)
    return "5 messages to a daemon that was stopped meanwhile"


@test("uc-loss", "UC-03 UC-06: a packet of a message lost: that message is gone, the next one arrives")
def uc_loss(t):
    for which in ("SEND_FIRST", "SEND_MIDDLE", "SEND_LAST"):
        for pair in t.pairs(type="uc"):
            t.cable.lose(lambda p: p.name == which)
            pair.rsp.do("recv", id=0, off=INBOX, len=3000, n=4)
            for i in range(4):
                pair.req.do("fill", off=SOURCE + i * 4096, len=3000, seed=i)
                pair.req.do("send", id=i, op=SEND, off=SOURCE + i * 4096, len=3000)
            t.equal([w.status for w in pair.req.poll(4)], [OK] * 4, pair, which)
            got = pair.rsp.poll(4, ms=500)
            # Which message each receive holds: the receives are used in order.
            held = [i for w in got for i in range(4) if pair.rsp.bad(INBOX + w.id * 3000, 3000, seed=i) == -1]
            t.equal([(w.id, w.status, w.len) for w in got], [(i, OK, 3000) for i in range(len(got))], pair, which)
            if pair.rsp.side == "rxe" and held != [1, 2, 3]:
                t.deviates("UC-03", f"UC SEND of 3 packets, {which} lost: of the 3 messages after it only "
                           f"{len(held)} arrive: a FIRST in place of the expected LAST is dropped")
            else:
                t.equal(held, [1, 2, 3], pair, which, "lost; messages received")
            t.cable.clear()
    return "6 losses"


def ud_ends(t, v6=False):
    """Both directions: (sender, receiver), joined as datagram ends."""
    for ours_sends in (True, False):
        near, far = t.two_ends(v6)
        a, b = (near, far) if ours_sends else (far, near)
        for e in (a, b):
            e.qp(type="ud")
            e.do("join", remote=b.ip if e is a else a.ip, sq_psn=7, rq_psn=0)
        yield a, b
        near.close()
        far.close()


def ud_send(a, b, size, op=SEND, seed=1, **words):
    a.do("fill", off=SOURCE, len=size, seed=seed)
    a.do("send", id=seed, op=op, off=SOURCE, len=size, to=b.ip, to_qpn=b.qpn[0], **words)


@test("ud", "UD-05: datagrams of 0 to 4096 octets, with and without immediate, GRH area, IPv4 and IPv6")
def ud(t):
    n = 0
    for v6 in (False, True):
        for a, b in ud_ends(t, v6):
            for seed, size in enumerate((0, 1, 1023, 1024, 4095, 4096), 1):
                for op in (SEND, SEND_IMM):
                    b.do("recv", id=seed, off=INBOX, len=size + GRH)
                    ud_send(a, b, size, op, seed, imm=0xABCD)
                    got = a.poll() + b.poll()
                    name = f"{a}->{b}, {size} octets"
                    t.equal([w.status for w in got], [OK, OK], name)
                    w = got[1]
                    t.equal((w.len, w.src_qpn, w.flags & WC_GRH), (size + GRH, a.qpn[0], WC_GRH), name, "(length, "
                            "source, GRH)")
                    if op == SEND_IMM:
                        t.equal((w.flags & WITH_IMM, w.imm), (WITH_IMM, 0xABCD), name, "immediate")
                    t.equal(b.bad(INBOX + GRH, size, seed=seed), -1, name, "data differ at")
                    n += 1
    return f"{n} datagrams equal"


@test("ud-wrong-qkey", "UD-09 KEY-06: a datagram with a wrong Q_Key vanishes; the next one arrives")
def wrong_qkey(t):
    for a, b in ud_ends(t):
        b.do("recv", id=1, off=INBOX, len=500)
        ud_send(a, b, 100, qkey=QKEY + 1)
        t.equal([w.status for w in a.poll()], [OK], a)
        t.check(t.cable.wait(lambda p: p.qpn == b.qpn[0]), "not on the wire")
        t.equal(b.poll(ms=300), [], b, "received with a wrong Q_Key")
        ud_send(a, b, 100, seed=2)
        t.equal([w.status for w in a.poll() + b.poll()], [OK, OK], a)
        t.equal(b.bad(INBOX + GRH, 100, seed=2), -1, b, "data differ at")
    return "dropped by both"


@test("ud-no-receive", "UD-06: a datagram without a receive vanishes, nothing is answered")
def no_receive(t):
    for a, b in ud_ends(t):
        # One after it, to a queue pair that has a receive, shows that it was processed.
        b.qp(1, "ud")
        b.do("join", q=1, remote=a.ip, sq_psn=7, rq_psn=0)
        b.do("recv", q=1, id=9, off=INBOX, len=500)
        ud_send(a, b, 100)
        a.do("send", id=2, op=SEND, off=SOURCE, len=100, to=b.ip, to_qpn=b.qpn[1])
        t.equal([w.status for w in a.poll(2)], [OK, OK], a)
        t.equal([w.id for w in b.poll()], [9], b, "the one with a receive")
        b.do("recv", id=1, off=INBOX, len=500)
        t.equal(b.poll(ms=300), [], b, "received without a receive")
        ud_send(a, b, 200, seed=2)
        got = b.poll()
        t.equal([(w.status, w.len) for w in got], [(OK, 200 + GRH)], b)
        t.equal(t.cable.packets(lambda p: p.qpn == a.qpn[0]), [], "answers")
    return "dropped by both"


@test("ud-too-long", "UD-02 A21: a datagram longer than the port's MTU is not sent; no hang")
def ud_too_long(t):
    seen = []
    for a, b in ud_ends(t):
        b.do("recv", id=1, off=INBOX, len=8192)
        try:
            ud_send(a, b, 5000)
            got = a.poll(ms=2000)
            what = STATUS.get(got[0].status) if got else "no completion"
        except EndError as e:  # refused when posted
            what = e.text.split(": ")[-1]
        seen.append(f"{a}: {what}")
        t.equal(b.poll(ms=200), [], b, "received")
        t.equal(t.cable.packets(lambda p: p.qpn == b.qpn[0]), [], "on the wire")
        if a.side == "rxe" and what == "success":
            t.deviates("UD-02", "a datagram longer than the MTU completes with success and is not sent (A21; "
                       "C10-93.1.1 allows it)")
        if a.side == "urnic":
            t.equal(what, "Invalid argument", "ours")
    return "; ".join(seen)
