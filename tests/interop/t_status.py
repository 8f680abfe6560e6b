# SPDX-License-Identifier: BSD-3-Clause
"""What the programs at both ends are told of what went wrong: completions, flushes, asynchronous events."""
import collections
import time

from bench import test
from ends import (CAS, ERR, FADD, LOCAL_WRITE, OK, READ, REMOTE_READ, REMOTE_WRITE, SEND, SEND_IMM, STATUS, WRITE,
                  WRITE_IMM)
from t_datagram import GRH, QKEY, ud_ends
from t_rc import INBOX, SOURCE, TARGET

REGION = 4 << 20
WRONG = 0x5500  # makes a key wrong
EVENTS = {1: "QP_FATAL", 2: "QP_REQ_ERR", 3: "QP_ACCESS_ERR", 4: "COMM_EST"}
TAKES = (SEND, SEND_IMM, WRITE_IMM)

# One request that the responder refuses, with a receive posted. Ours: the requester's completion, the receive's,
# and what the responder's event says where the receive doesn't. `end`: the range ends that far past the region.
Case = collections.namedtuple("Case", "name op req rsp event len end key recv lkey region qp",
                              defaults=(100, None, 0, 0, 0, 15, 15))
CASES = [
    Case("WRITE, wrong key", WRITE, "REM_ACCESS_ERR", "", "QP_ACCESS_ERR", key=WRONG),
    Case("WRITE with immediate, wrong key", WRITE_IMM, "REM_ACCESS_ERR", "WR_FLUSH_ERR", "QP_ACCESS_ERR", key=WRONG),
    Case("READ, one octet too far", READ, "REM_ACCESS_ERR", "", "QP_ACCESS_ERR", end=1),
    Case("long WRITE, one octet too far", WRITE, "REM_ACCESS_ERR", "", "QP_ACCESS_ERR", len=3000, end=1),
    Case("FADD without right", FADD, "REM_ACCESS_ERR", "", "QP_ACCESS_ERR", len=8, region=LOCAL_WRITE | REMOTE_WRITE),
    Case("CAS, wrong key", CAS, "REM_ACCESS_ERR", "", "QP_ACCESS_ERR", len=8, key=WRONG),
    Case("READ, not enabled", READ, "REM_INV_REQ_ERR", "", "QP_REQ_ERR", qp=REMOTE_WRITE),
    Case("WRITE with immediate, not enabled", WRITE_IMM, "REM_INV_REQ_ERR", "WR_FLUSH_ERR", "QP_REQ_ERR",
         qp=REMOTE_READ),
    Case("SEND, one octet too long", SEND, "REM_INV_REQ_ERR", "LOC_LEN_ERR", "", recv=99),
    Case("long SEND, one octet too long", SEND_IMM, "REM_INV_REQ_ERR", "LOC_LEN_ERR", "", len=3000, recv=2999),
    Case("SEND, receive with a wrong key", SEND, "REM_OP_ERR", "LOC_PROT_ERR", "", lkey=WRONG),
]


def join(t, req, rsp, kind="rc", upto=None, access=15, **words):
    """As bench.join, but for what the responder alone has."""
    req.qp(0, kind)
    rsp.qp(0, kind)
    req.do("join", remote=rsp.ip, qpn=rsp.qpn[0], sq_psn=9, rq_psn=77, **words)
    if upto != 0:
        rsp.do("join", remote=req.ip, qpn=req.qpn[0], sq_psn=77, rq_psn=9, access=access, upto=upto, **words)


def events(end):
    return [EVENTS.get(kind, kind) for kind in end.do("async")["ev"]]


def refusal(t, req, rsp, case):
    """One case; what the requester, the receive and the event say."""
    join(t, req, rsp, access=case.qp)
    if case.op in TAKES:
        rsp.do("recv", id=7, off=INBOX, len=case.recv or case.len, lkey=rsp.rkey ^ case.lkey if case.lkey else None)
    off = TARGET if case.end is None else REGION - case.len + case.end
    req.do("send", id=1, op=case.op, off=SOURCE, len=case.len, raddr=rsp.addr + off, rkey=rsp.rkey ^ case.key)
    req.do("send", id=2, op=WRITE, off=SOURCE, len=8, raddr=rsp.addr + TARGET, rkey=rsp.rkey)
    done = req.poll(2)
    t.equal([w.id for w in done], [1, 2], case.name, req, "completes")
    t.equal(STATUS.get(done[1].status), "WR_FLUSH_ERR", case.name, req, "the request after it")
    took = rsp.poll() if case.op in TAKES else []
    until = time.monotonic() + 5
    while (req.state(), rsp.state()) != (ERR, ERR):
        t.check(time.monotonic() < until, case.name, req, "not both in ERR")
    told = events(rsp)
    t.equal(events(req), [], case.name, req, "events of the requester")
    t.equal(rsp.bad(TARGET, 3000, zero=1), -1, case.name, rsp, "memory changed at")
    return STATUS.get(done[0].status), "".join(STATUS.get(w.status, "") for w in took), "".join(told)


@test("status-refused", "EVT-02 RSP-12 RSP-13 RSP-14: what both programs hear of a request that is refused")
def refused(t):
    for case in CASES:
        wanted = (case.req, case.rsp, case.event)
        for ours_asks in (True, False):
            access = (15, case.region) if ours_asks else (case.region, 15)
            near, far = t.two_ends(False, *access)
            req, rsp = (near, far) if ours_asks else (far, near)
            got = refusal(t, req, rsp, case)
            if rsp is near:
                t.equal(got, wanted, case.name, "(requester, receive, event)")
            for rule, mine, right in (("RSP-12" if case.recv else "RSP-13", got[1], wanted[1]),
                                      ("EVT-02", got[2], wanted[2])):
                if rsp is far and mine != right:
                    t.deviates(rule, f"{case.name}: the responder's program is told {mine or 'nothing'}, the rule: "
                               f"{right or 'nothing'}")
            near.close()
            far.close()
    return f"{len(CASES)} refusals each way"


@test("status-nobody-there", "VAL-04 QP-04 TMR-05: the other queue pair in RESET, INIT, ERR, or destroyed: no answer")
def nobody_there(t):
    n = 0
    for ours_asks in (True, False):
        near, far = t.two_ends()
        req, rsp = (near, far) if ours_asks else (far, near)
        for what in ("RESET", "INIT", "ERR", "destroyed"):
            for op in (WRITE, READ, FADD, SEND):
                mark = len(t.cable.packets())
                join(t, req, rsp, upto={"RESET": 0, "INIT": 1}.get(what), timeout=10, retry=2)
                if what == "ERR":
                    rsp.do("modify", state=ERR)
                elif what == "destroyed":
                    rsp.do("destroy")
                req.do("send", id=1, op=op, off=SOURCE, len=8, raddr=rsp.addr + TARGET, rkey=rsp.rkey)
                t.equal([STATUS.get(w.status) for w in req.poll()], ["RETRY_EXC_ERR"], req, what, op)
                seen = t.cable.packets()[mark:]
                t.equal([p for p in seen if p.out != ours_asks], [], rsp, what, op, "answers")
                req.do("destroy")
                if what != "destroyed":
                    rsp.do("destroy")
                n += 1
        near.close()
        far.close()
    return f"{n} requests, no answers"


@test("status-local-key", "REQ-08: a send whose own buffer has a wrong key: LOC_PROT_ERR, nothing on the wire")
def local_key(t):
    for ours_asks in (True, False):
        near, far = t.two_ends()
        req, rsp = (near, far) if ours_asks else (far, near)
        join(t, req, rsp)
        req.do("send", id=1, op=WRITE, off=SOURCE, len=100, raddr=rsp.addr + TARGET, rkey=rsp.rkey,
               lkey=req.rkey ^ WRONG)
        got = [STATUS.get(w.status) for w in req.poll()]
        t.equal(t.cable.packets(lambda p: p.qpn == rsp.qpn[0]), [], req, "on the wire")
        if ours_asks:
            t.equal(got, ["LOC_PROT_ERR"], "ours")
        elif got != ["LOC_PROT_ERR"]:
            t.deviates("REQ-08", f"a send with a wrong L_Key completes with {got[0]}, the rule: LOC_PROT_ERR")
        near.close()
        far.close()
    return "both refuse"


@test("ud-controlled-qkey", "KEY-08: a Q_Key with bit 31 set stands for the sending queue pair's own")
def controlled_qkey(t):
    for a, b in ud_ends(t):
        b.do("recv", id=1, off=INBOX, len=GRH + 100)
        a.do("send", id=1, op=SEND, off=SOURCE, len=100, to=b.ip, to_qpn=b.qpn[0], qkey=QKEY ^ 0x80000000)
        t.equal([w.status for w in a.poll()], [OK], a)
        got = [w.status for w in b.poll(ms=2000)]
        if a.side == "urnic":
            t.equal(got, [OK], "received from ours")
        elif not got:
            t.deviates("KEY-08", "a Q_Key with bit 31 set goes onto the wire as it is")
    return "ours sends its own"
