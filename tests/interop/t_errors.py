# SPDX-License-Identifier: BSD-3-Clause
"""Errors: what each side refuses, how it says so on the wire, and both sides' completions (appendix B)."""
import time

from bench import test
from ends import CAS, ERR, FADD, LOCAL_WRITE, OK, READ, REM_ACCESS, REM_INV_REQ, REMOTE_READ, SEND, STATUS, WRITE
from t_rc import INBOX, SOURCE, TARGET

REGION = 4 << 20
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = range(4)


def refused(t, pair, status, nak, **send):
    """The request completes with `status`, the responder sent exactly that NAK, both end in ERR."""
    mark = len(t.cable.packets())
    pair.req.do("send", id=1, **send)
    got = pair.req.poll()
    t.equal([STATUS.get(w.status) for w in got], [STATUS[status]], pair, "completion")
    t.equal(pair.req.state(), ERR, pair, "requester's state")
    naks = [p.nak for p in t.cable.packets()[mark:] if p.nak is not None]
    t.equal(naks, [nak], pair, "NAKs on the wire")
    end = time.monotonic() + 5
    while pair.rsp.state() != ERR:
        t.check(time.monotonic() < end, pair, "the responder's queue pair is not in ERR")


def rdma(pair, op, off=TARGET, key=None, length=64):
    return {"op": op, "off": SOURCE, "len": length, "raddr": pair.rsp.addr + off,
            "rkey": pair.rsp.rkey if key is None else key}


def untouched(t, pair, length=256):
    t.equal(pair.rsp.bad(TARGET, length, zero=1), -1, pair, "memory changed at")


@test("error-key", "A26 RSP-13: wrong R_Key in WRITE, READ, atomic: NAK remote access, memory untouched")
def wrong_key(t):
    for op in (WRITE, READ, FADD, CAS):
        for pair in t.pairs():
            length = 8 if op in (FADD, CAS) else 64
            refused(t, pair, REM_ACCESS, NAK_ACCESS, **rdma(pair, op, key=pair.rsp.rkey ^ 0x5500, length=length))
            untouched(t, pair)
    return "8 refusals"


@test("error-bounds", "A26 RSP-13: past the region's end, before its begin: NAK remote access")
def bounds(t):
    for op in (WRITE, READ):
        for off in (REGION - 8, -8):
            for pair in t.pairs():
                refused(t, pair, REM_ACCESS, NAK_ACCESS, **rdma(pair, op, off=off))
    return "8 refusals"


@test("error-region-rights", "A26 MR-05: a region without the right: NAK remote access")
def region_rights(t):
    for op, access in ((WRITE, LOCAL_WRITE | REMOTE_READ), (READ, LOCAL_WRITE), (FADD, LOCAL_WRITE | REMOTE_READ)):
        for pair in t.pairs(access=access):
            refused(t, pair, REM_ACCESS, NAK_ACCESS, **rdma(pair, op, length=8 if op == FADD else 64))
            untouched(t, pair)
    return "6 refusals"


@test("error-qp-rights", "A26 RSP-09: a queue pair without the right: NAK invalid request")
def qp_rights(t):
    for op in (WRITE, READ, FADD):
        for ours_asks in (True, False):
            near, far = t.two_ends()
            req, rsp = (near, far) if ours_asks else (far, near)
            t.join(req, rsp, access=0)
            pair = type("P", (), {"req": req, "rsp": rsp, "__str__": lambda s: f"{req}->{rsp}"})()
            refused(t, pair, REM_INV_REQ, NAK_INVALID, **rdma(pair, op, length=8 if op == FADD else 64))
            near.close()
            far.close()
    return "6 refusals"


@test("error-misaligned-atomic", "A27 ATM-03: an atomic at an address that is no multiple of 8: NAK invalid request",
      provokes=("ATM-03",))
def misaligned(t):
    for op in (FADD, CAS):
        for pair in t.pairs():
            if pair.req.side == "rxe":  # its library refuses to post one
                continue
            refused(t, pair, REM_INV_REQ, NAK_INVALID, **rdma(pair, op, off=TARGET + 4, length=8))
            untouched(t, pair)
    return "2 refusals by rxe; its library does not let it ask us"


@test("error-recv-too-small", "RSP-12 DEV-03: a SEND longer than the receive")
def too_small(t):
    seen = {}
    for pair in t.pairs():
        pair.rsp.do("recv", id=9, off=INBOX, len=50)
        pair.req.do("send", id=1, op=SEND, off=SOURCE, len=100)
        got, there = pair.req.poll(), pair.rsp.poll()
        nak = [p.nak for p in t.cable.packets(lambda p: p.nak is not None)][-1:]
        seen[pair.rsp.side] = (STATUS.get(got[0].status), STATUS.get(there[0].status), nak)
    t.equal(seen["urnic"], ("REM_INV_REQ_ERR", "LOC_LEN_ERR", [NAK_INVALID]), "ours as responder")
    if seen["rxe"] != seen["urnic"]:
        t.deviates("RSP-12", "a receive that is too small: rxe sends NAK %s and completes it with %s; the rule: NAK "
                   "invalid request, LOC_LEN_ERR (DEV-03)" % (
                       {3: "remote operation", 1: "invalid request"}.get(seen["rxe"][2][0]), seen["rxe"][1]))
        t.equal(seen["rxe"][0], "REM_OP_ERR", "our completion when rxe says remote operation")
    return f"ours: {seen['urnic'][1]}; rxe: {seen['rxe'][1]}"


@test("error-no-qp", "VAL-06 TMR-05: no such queue pair: no answer, retries, then RETRY_EXC_ERR")
def no_qp(t):
    for near_asks in (True, False):
        near, far = t.two_ends()
        a, b = (near, far) if near_asks else (far, near)
        a.qp()
        b.qp()
        a.do("join", remote=b.ip, qpn=0xABCDEF, sq_psn=1, rq_psn=1, timeout=12, retry=2)
        a.do("send", id=1, op=WRITE, off=0, len=64, raddr=b.addr, rkey=b.rkey)
        t.equal([STATUS.get(w.status) for w in a.poll(ms=30000)], ["RETRY_EXC_ERR"], a)
        sent = t.cable.packets(lambda p: p.qpn == 0xABCDEF and p.out == near_asks)
        t.equal(len(sent), 3, a, "transmissions with retry_cnt 2")
        t.equal(t.cable.packets(lambda p: p.qpn == a.qpn[0]), [], "answers")
        near.close()
        far.close()
    return "3 transmissions each, no answers"


@test("error-retry-7", "TMR-05 DEV-01: retry_cnt 7 and a dead link: ours stops after 8 transmissions")
def retry_seven(t):
    rxe_tries = None
    for pair in t.pairs(timeout=8, retry=7):
        t.cable.lose(lambda p: True, times=None)
        mark = len(t.cable.packets())
        pair.req.do("send", id=1, **rdma(pair, WRITE))
        if pair.req.side == "urnic":
            t.equal([STATUS.get(w.status) for w in pair.req.poll(ms=30000)], ["RETRY_EXC_ERR"], pair)
            t.equal(len(t.cable.packets()) - mark, 8, "transmissions with retry_cnt 7")
        else:
            got = t.cable.wait(lambda p: p.name == "WRITE_ONLY" and not p.out, 24, 10)
            rxe_tries = len(got)
            gave_up = pair.req.poll(ms=10)
            if rxe_tries > 8 and not gave_up:
                t.deviates("TMR-05", f"retry_cnt 7 is endless: {rxe_tries} transmissions and no error yet (DEV-01)")
        t.cable.clear()
    return f"ours 8 transmissions, rxe {rxe_tries} and going on"


@test("rnr", "RNR-01 A6: a SEND before its receive: RNR NAK, waited for, then it arrives")
def rnr(t):
    for v6 in (False, True):
        for pair in t.pairs(v6=v6, rnr_timer=14, rnr_retry=7):
            pair.req.do("fill", off=SOURCE, len=3000, seed=5)
            pair.req.do("send", id=1, op=SEND, off=SOURCE, len=3000)
            t.check(t.cable.wait(lambda p: p.is_rnr), pair, "no RNR NAK")
            pair.rsp.do("recv", id=2, off=INBOX, len=3000)
            t.equal([w.status for w in pair.req.poll() + pair.rsp.poll()], [OK, OK], pair)
            t.equal(pair.rsp.bad(INBOX, 3000, seed=5), -1, pair, "data differ at")
    return "4 messages"


@test("rnr-exceeded", "RNR-06: the receive never comes: rnr_retry 2 means 3 transmissions, then RNR_RETRY_EXC_ERR")
def rnr_exceeded(t):
    for pair in t.pairs(rnr_timer=10, rnr_retry=2):
        mark = len(t.cable.packets())
        pair.req.do("send", id=1, op=SEND, off=SOURCE, len=100)
        t.equal([STATUS.get(w.status) for w in pair.req.poll()], ["RNR_RETRY_EXC_ERR"], pair)
        seen = t.cable.packets()[mark:]
        t.equal(sum(p.is_rnr for p in seen), 3, pair, "RNR NAKs")
        t.equal(sum(p.name == "SEND_ONLY" for p in seen), 3, pair, "transmissions")
        t.equal(pair.req.state(), ERR, pair, "state")
    return "3 transmissions each"


@test("rnr-burst", "A6 RNR-02 DEV-02: ten SENDs without receives: one RNR wait, no transport retry charged")
def rnr_burst(t):
    count = 10
    for pair in t.pairs(rnr_timer=16, retry=1, rnr_retry=7):
        for i in range(count):
            pair.req.do("send", id=i, op=SEND, off=SOURCE, len=200)
        t.check(t.cable.wait(lambda p: p.is_rnr and p.out == (pair.rsp.side == "urnic")), pair, "no RNR NAK")
        pair.rsp.do("recv", id=0, off=INBOX, len=200, n=count)
        got = pair.req.poll(count) + pair.rsp.poll(count)
        t.equal([w.status for w in got], [OK] * 2 * count, pair)
        naks = t.cable.packets(lambda p: p.nak == NAK_SEQUENCE and p.out == (pair.rsp.side == "urnic"))
        if pair.rsp.side == "urnic":
            t.equal(len(naks), 0, "sequence NAKs of ours after the RNR NAK")
        elif naks:
            t.deviates("RNR-02", "sends a sequence NAK for packets that follow an RNR NAK (DEV-02)")
    return "20 messages, none lost, none twice"
