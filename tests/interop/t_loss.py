# SPDX-License-Identifier: BSD-3-Clause
"""Loss, repetition, reordering and damage on the cable: data equal, executed once, recovered as the rules say."""
import random

from bench import test
from ends import FADD, OK, READ, SEND, WRITE
from t_rc import INBOX, SINK, SOURCE, TARGET, transfer

SEED = 20


def ours_answers(pair):
    return pair.rsp.side == "urnic"


@test("loss-write", "A5 ACK-08 RTX-01: one packet of a WRITE lost: one sequence NAK, one go-back to it, data equal")
def loss_write(t):
    for v6 in (False, True):
        for pair in t.pairs(v6=v6, mtu=256):
            rule = t.cable.lose(lambda p: p.name == "WRITE_MIDDLE", skip=5)
            mark = len(t.cable.packets())
            transfer(t, pair, "WRITE", 8000, SEED)
            lost = rule.hits[0]
            seen = t.cable.packets()[mark:]
            naks = [p for p in seen if p.nak is not None]
            t.equal([(p.nak, p.psn) for p in naks], [(0, lost.psn)], pair, "(NAK code, PSN)")
            again = [p.psn for p in seen[seen.index(naks[0]):] if p.out == (pair.req.side == "urnic") and p.is_request]
            # What was already on its way when the NAK came may still pass before the go-back.
            t.check(again.count(lost.psn) == 1, pair, f"the lost packet was sent again {again.count(lost.psn)} times")
            t.cable.clear()
    return "4 WRITEs"


@test("loss-last", "TMR-01: the last packet of a WRITE, and of a SEND, lost: the ACK timer repairs it")
def loss_last(t):
    for op, name in (("WRITE", "WRITE_LAST"), ("SEND", "SEND_LAST")):
        for pair in t.pairs(timeout=14):
            t.cable.lose(lambda p: p.name == name)
            transfer(t, pair, op, 3000, SEED)
            t.cable.clear()
    return "4 messages"


@test("loss-ack", "A8 REQ-21: an ACK lost: the repeated SEND is acknowledged again and received once")
def loss_ack(t):
    for pair in t.pairs(timeout=14):
        t.cable.lose(lambda p: p.is_ack)
        transfer(t, pair, "SEND", 3000, SEED)
        pair.rsp.do("recv", id=99, off=INBOX, len=3000)
        t.equal(pair.rsp.poll(ms=300), [], pair, "received twice")
        t.cable.clear()
        transfer(t, pair, "READ", 3000, SEED + 1)
    return "2 SENDs, each received once"


@test("loss-read", "A12 A12b RD-09 REQ-24 REQ-30: a READ response lost, at each place: read again from there")
def loss_read(t):
    forms = set()
    for name, skip in (("READ_FIRST", 0), ("READ_MIDDLE", 0), ("READ_MIDDLE", 3), ("READ_LAST", 0)):
        for pair in t.pairs(mtu=1024, timeout=14):
            rule = t.cable.lose(lambda p: p.name == name, skip=skip)
            mark = len(t.cable.packets())
            transfer(t, pair, "READ", 7000, SEED)
            seen = t.cable.packets()[mark:]
            asked = [p for p in seen if p.name == "READ_REQUEST"]
            t.check(len(asked) >= 2, pair, name, "lost, but not asked for again")
            t.equal(asked[1].psn, rule.hits[0].psn, pair, name, "lost; PSN of the second request")
            after = seen[seen.index(asked[1]):]
            answer = next(p for p in after if p.is_read_data and p.psn == asked[1].psn)
            forms.add((pair.rsp.side, answer.name))
            if not ours_answers(pair) and answer.name in ("READ_MIDDLE", "READ_LAST") and asked[1].psn != asked[0].psn:
                t.deviates("RD-10", "answers a READ that is repeated from its middle with MIDDLE or LAST, not FIRST or "
                           "ONLY (A12b)")
            t.cable.clear()
    return "8 READs; answers to the repetition: " + ", ".join(sorted(f"{w} {n}" for w, n in forms))


@test("loss-read-implied", "A12 REQ-24: a whole READ response lost, a later ACK shows it: read again")
def loss_read_implied(t):
    for pair in t.pairs(timeout=16):
        req, rsp = pair.req, pair.rsp
        rsp.do("fill", off=TARGET, len=100, seed=3)
        rule = t.cable.lose(lambda p: p.name == "READ_ONLY")
        req.do("send", id=1, op=READ, off=SINK, len=100, raddr=rsp.addr + TARGET, rkey=rsp.rkey)
        req.do("send", id=2, op=WRITE, off=SOURCE, len=100, raddr=rsp.addr + INBOX, rkey=rsp.rkey)
        t.equal([(w.id, w.status) for w in req.poll(2)], [(1, OK), (2, OK)], pair)
        t.equal(len(rule.hits), 1, pair, "lost")
        t.equal(req.bad(SINK, 100, seed=3), -1, pair, "data differ at")
        t.cable.clear()
    return "2 READs"


@test("loss-atomic", "A10 ATM-07: an atomic's answer lost: repeated, answered from memory, executed once")
def loss_atomic(t):
    for pair in t.pairs(timeout=14):
        req, rsp = pair.req, pair.rsp
        for i in range(4):
            rule = t.cable.lose(lambda p: p.name == "ATOMIC_ACK")
            rsp.do("poke", off=TARGET, value=100 + i)
            req.do("send", id=i, op=FADD, off=SINK, len=8, raddr=rsp.addr + TARGET, rkey=rsp.rkey, add=1000)
            t.equal([w.status for w in req.poll()], [OK], pair)
            t.equal((req.do("peek", off=SINK)["value"], rsp.do("peek", off=TARGET)["value"]), (100 + i, 1100 + i), pair,
                    "(returned, memory)")
            t.equal(len(rule.hits), 1, pair, "lost")
            t.cable.clear()
    return "8 atomics, each executed once"


# ---- everything at once

def mixed(t, pair, rounds, seed):
    """WRITEs, SENDs, READs and atomics in flight together; the data of all of them."""
    req, rsp, dice, size = pair.req, pair.rsp, random.Random(seed), 1500
    rsp.do("poke", off=TARGET - 8, value=0)
    added = sends = 0
    rsp.do("fill", off=SOURCE, len=size, seed=77)
    for i in range(rounds):
        kind = dice.choice((WRITE, SEND, READ, FADD))
        slot = i * size
        req.do("fill", off=SOURCE + slot, len=size, seed=i)
        if kind == WRITE:
            req.do("send", id=i, op=WRITE, off=SOURCE + slot, len=size, raddr=rsp.addr + TARGET + slot, rkey=rsp.rkey)
        elif kind == SEND:
            rsp.do("recv", id=i, off=INBOX + slot, len=size)
            req.do("send", id=i, op=SEND, off=SOURCE + slot, len=size)
            sends += 1
        elif kind == READ:
            req.do("send", id=i, op=READ, off=SINK + slot, len=size, raddr=rsp.addr + SOURCE, rkey=rsp.rkey)
        else:
            req.do("send", id=i, op=FADD, off=SINK + slot, len=8, raddr=rsp.addr + TARGET - 8, rkey=rsp.rkey, add=i + 1)
            added += i + 1
    got = req.poll(rounds, ms=60000)
    t.equal([(w.id, w.status) for w in got], [(i, OK) for i in range(rounds)], pair, "completions")
    received = rsp.poll(sends, ms=5000)
    t.equal([w.status for w in received], [OK] * sends, pair, "receives")
    dice = random.Random(seed)
    for i in range(rounds):
        kind, slot = dice.choice((WRITE, SEND, READ, FADD)), i * size
        if kind == READ:
            t.equal(req.bad(SINK + slot, size, seed=77), -1, pair, f"READ {i} differs at")
        elif kind in (WRITE, SEND):
            at = TARGET if kind == WRITE else INBOX
            t.equal(rsp.bad(at + slot, size, seed=i), -1, pair, f"message {i} differs at")
    t.equal(rsp.do("peek", off=TARGET - 8)["value"], added, pair, "sum of the atomics")


def faulty(t, rounds=60, **faults):
    before = t.counters()
    count = 0
    for v6 in (False, True):
        for pair in t.pairs(v6=v6, mtu=512, timeout=13, retry=7, rnr_timer=10):
            for action, part in faults.items():
                dice = random.Random(len(action) + v6)
                t.cable.rule(action, lambda p, part=part, dice=dice: dice.random() < part, times=None)
            mixed(t, pair, rounds, seed=v6)
            count += sum(len(r.hits) for r in t.cable.rules)
            t.cable.clear()
    after = t.counters()
    told = {k: after[k] - before.get(k, 0) for k in ("packet_seq_err", "out_of_sequence", "duplicate_request",
                                                     "local_ack_timeout_err", "rx_icrc_err", "implied_nak_seq_err")
            if k in after and after[k] != before.get(k, 0)}
    return f"{4 * rounds} requests, {count} packets hit; ours counted " + (
        ", ".join(f"{k} {v}" for k, v in told.items()) or "nothing")


@test("faults-loss", "RTX-01: 3 % of all packets lost, both ways, all operations in flight")
def faults_loss(t):
    return faulty(t, lose=0.03)


@test("faults-twice", "RSP-03: 20 % of all packets arrive twice")
def faults_twice(t):
    return faulty(t, twice=0.2)


@test("faults-reorder", "PSN-05: 5 % of all packets overtaken by the next")
def faults_reorder(t):
    return faulty(t, hold=0.05)


@test("faults-damage", "A17 ICRC-07: 3 % of all packets damaged: dropped by their iCRC and sent again")
def faults_damage(t):
    return faulty(t, damage=0.03)


@test("faults-all", "2 % lost, 5 % twice, 3 % late, 1 % damaged")
def faults_all(t):
    return faulty(t, lose=0.02, twice=0.05, hold=0.03, damage=0.01)
