# SPDX-License-Identifier: BSD-3-Clause
"""Reliable connections: every operation, at sizes around the path MTU, in both directions."""
from bench import Skip, test
from ends import (ALL_ACCESS, ATOMIC_WRITE, CAS, FADD, FENCE, FLUSH, FLUSH_GLOBAL, INLINE, OK, READ, SEND, SEND_IMM, SIGNALED, STATUS, WITH_IMM, WRITE,
                  WRITE_IMM)

SOURCE, SINK, TARGET, INBOX = 0, 1 << 20, 2 << 20, 3 << 20  # places in each end's region
GUARD = 64
OPS = {"SEND": SEND, "SEND_IMM": SEND_IMM, "WRITE": WRITE, "WRITE_IMM": WRITE_IMM, "READ": READ}
WC_OPCODE = {SEND: 0, SEND_IMM: 0, WRITE: 1, WRITE_IMM: 1, READ: 2}


def transfer(t, pair, op, size, seed, flags=SIGNALED, q=0):
    """One message; data, its surroundings, and both completions are checked."""
    req, rsp = pair.req, pair.rsp
    name = f"{pair} {op} of {size}"
    code = OPS[op]
    source, sink = (rsp, req) if code == READ else (req, rsp)
    inbox = code in (SEND, SEND_IMM)
    at = INBOX if inbox else SINK if code == READ else TARGET
    came = TARGET if code == READ else SOURCE
    source.do("fill", off=came, len=size, seed=seed)
    sink.do("fill", off=at, len=size + 2 * GUARD, zero=1)
    takes = code in (SEND, SEND_IMM, WRITE_IMM)
    if takes:
        rsp.do("recv", q=q, id=seed, off=at + GUARD, len=size if inbox else 0)
    local = at + GUARD if code == READ else SOURCE
    remote = came if code == READ else at + GUARD
    req.do("send", q=q, id=seed, op=code, off=local, len=size, flags=flags, raddr=rsp.addr + remote, rkey=rsp.rkey,
           imm=seed)
    got = req.poll()
    t.check(got, name, "does not complete")
    t.equal((got[0].id, STATUS.get(got[0].status), got[0].opcode), (seed, "success", WC_OPCODE[code]), name)
    if takes:
        got = rsp.poll()
        t.check(got, name, "is not received")
        t.equal((got[0].id, got[0].status, got[0].len, got[0].opcode),
                (seed, OK, size, 129 if code == WRITE_IMM else 128), name, "receive")
        if code in (SEND_IMM, WRITE_IMM):
            t.equal((got[0].flags & WITH_IMM, got[0].imm), (WITH_IMM, seed), name, "immediate")
    t.equal(sink.bad(at + GUARD, size, seed=seed), -1, name, "data differ at")
    t.equal((sink.bad(at, GUARD, zero=1), sink.bad(at + GUARD + size, GUARD, zero=1)), (-1, -1), name,
            "wrote outside its target")


def around(mtu):
    return [0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5]


def every_size(t, op, mtu, v6=False, psn=0x100):
    n = 0
    for pair in t.pairs(v6=v6, mtu=mtu, psn=psn):
        for seed, size in enumerate(around(mtu), 1):
            transfer(t, pair, op, size, seed)
            n += 1
    return n


def add(op):
    @test("rc-" + op.lower().replace("_", "-"), f"RC {op}, 0 to 3 MTU, MTU 1024, both directions, IPv4 and IPv6")
    def _(t):
        n = every_size(t, op, 1024) + every_size(t, op, 1024, v6=True)
        return f"{n} messages equal"


for _op in OPS:
    add(_op)


@test("rc-mtu", "RC WRITE and READ at path MTUs 256, 512, 2048, 4096")
def mtus(t):
    n = 0
    for mtu in (256, 512, 2048, 4096):
        for op in ("WRITE", "READ"):
            n += every_size(t, op, mtu)
    return f"{n} messages equal"


@test("rc-psn-wrap", "PSN-01: PSNs wrap past 0xffffff inside SEND, WRITE and READ")
def psn_wrap(t):
    n = sum(every_size(t, op, 256, psn=0xFFFFFB) for op in ("SEND", "WRITE", "READ"))
    return f"{n} messages equal"


def atomics(t, pair):
    req, rsp = pair.req, pair.rsp
    value = 0x1122334455667788
    rsp.do("poke", off=TARGET, value=value)

    def one(op, **words):
        req.do("poke", off=SINK, value=0)
        req.do("send", id=op, op=op, off=SINK, len=8, raddr=rsp.addr + TARGET, rkey=rsp.rkey, **words)
        got = req.poll()
        t.check(got and got[0].status == OK, pair, "atomic:", got)
        return req.do("peek", off=SINK)["value"], rsp.do("peek", off=TARGET)["value"]

    mask = (1 << 64) - 1
    for i in range(4):
        add_, old = 0xFFFFFFFF00000001 * (i + 1) & mask, value
        value = (value + add_) & mask
        t.equal(one(FADD, add=add_), (old, value), pair, "fetch-and-add (returned, memory)")
    t.equal(one(CAS, add=value, swap=77), (value, 77), pair, "compare-and-swap that matches")
    t.equal(one(CAS, add=value, swap=88), (77, 77), pair, "compare-and-swap that does not match")


@test("rc-atomic", "ATM-01: fetch-and-add and compare-and-swap, old value returned, memory as computed")
def atomic(t):
    for v6 in (False, True):
        for pair in t.pairs(v6=v6):
            atomics(t, pair)
    return "24 atomics, both directions, IPv4 and IPv6"


def since(t, release):
    """The test needs a kernel as new as that."""
    if t.kernel() < tuple(map(int, release.split("."))):
        raise Skip(f"rxe has this since Linux {release}: scripts/interop --kernel 6.12")


@test("rc-atomic-write", "ATM-12: ATOMIC WRITE: 8 octets there, none beside them; both directions")
def atomic_write(t):
    since(t, "6.2")
    for pair in t.pairs():
        pair.rsp.do("fill", off=TARGET, len=24, zero=1)
        for i in range(20):
            value = 0x0123456789ABCDEF + i
            pair.req.do("poke", off=SOURCE, value=value)
            pair.req.do("send", id=i, op=ATOMIC_WRITE, off=SOURCE, len=8, flags=SIGNALED,
                        raddr=pair.rsp.addr + TARGET + 8, rkey=pair.rsp.rkey)
            got = pair.req.poll()
            t.check(got, pair, "does not complete")
            t.equal((got[0].id, STATUS.get(got[0].status), got[0].opcode), (i, "success", 9), pair)
            t.equal([pair.rsp.do("peek", off=TARGET + at)["value"] for at in (0, 8, 16)], [0, value, 0], pair, "memory")
    return "40 done"


@test("rc-flush", "ATM-13: FLUSH of a range and of a region, after WRITEs", provokes=("ATM-13",))
def flush(t):
    since(t, "6.2")
    near, far = t.two_ends(far_access=ALL_ACCESS | FLUSH_GLOBAL)
    t.join(near, far, access=ALL_ACCESS | FLUSH_GLOBAL)
    for i, (feth, length) in enumerate(((0x1, 3000), (0x1, 0), (0x11, 0), (0x11, 3000))):
        near.do("fill", off=SOURCE, len=3000, seed=i + 1)
        near.do("send", id=2 * i, op=WRITE, off=SOURCE, len=3000, flags=0, raddr=far.addr + TARGET, rkey=far.rkey)
        near.do("send", id=2 * i + 1, op=FLUSH, len=length, flags=SIGNALED, imm=feth, raddr=far.addr + TARGET,
                rkey=far.rkey)
        got = near.poll()
        if not got or STATUS.get(got[0].status) == "RETRY_EXC_ERR":
            t.deviates("ATM-13", "drops every FLUSH")
            return "rxe drops it"
        t.equal((got[0].id, STATUS.get(got[0].status), got[0].opcode), (2 * i + 1, "success", 8), f"FLUSH {feth:#x}")
        t.equal(far.bad(TARGET, 3000, seed=i + 1), -1, "data differ at")
    return "4 answered"


@test("rc-flush-refused", "ATM-13 RSP-08 RSP-14: a FLUSH without the right is refused", provokes=("ATM-13",))
def flush_refused(t):
    since(t, "6.2")
    flags = ALL_ACCESS | FLUSH_GLOBAL
    for name, qp, region, imm, status in (("queue pair", ALL_ACCESS, flags, 1, "REM_INV_REQ_ERR"),
                                          ("region", flags, ALL_ACCESS, 1, "REM_ACCESS_ERR"),
                                          ("persistence", flags | 0x200, flags, 2, "REM_ACCESS_ERR")):
        near, far = t.two_ends(far_access=region)
        t.join(near, far, access=qp)
        near.do("send", id=1, op=FLUSH, len=64, flags=SIGNALED, imm=imm, raddr=far.addr + TARGET, rkey=far.rkey)
        got = near.poll()
        if not got or STATUS.get(got[0].status) == "RETRY_EXC_ERR":
            t.deviates("ATM-13", "drops a FLUSH that it should refuse")
            return "rxe drops it"
        t.equal(STATUS.get(got[0].status), status, name)
        near.close()
        far.close()
    return "by queue pair, by region, for persistence"


@test("rc-short", "one WRITE, READ, SEND and atomic each way", short=True)
def short(t):
    for v6 in (False, True):
        for pair in t.pairs(v6=v6):
            for seed, op in enumerate(("WRITE", "READ", "SEND"), 1):
                transfer(t, pair, op, 3000, seed)
            atomics(t, pair)
    return "data equal, both directions, IPv4 and IPv6"


@test("rc-inline", "inline data")
def inline(t):
    for pair in t.pairs():
        for seed, size in enumerate((0, 1, 64), 1):
            transfer(t, pair, "SEND", size, seed, flags=SIGNALED | INLINE)
            transfer(t, pair, "WRITE", size, seed, flags=SIGNALED | INLINE)
    return "12 messages equal"


@test("rc-large", "A1 A2 ACK-04: 1 MiB SEND, WRITE and READ at MTU 1024")
def large(t):
    size = (1 << 20) - 2 * GUARD - 7
    for pair in t.pairs(mtu=1024):
        for seed, op in enumerate(("SEND", "WRITE", "READ"), 1):
            transfer(t, pair, op, size, seed)
        asks = t.cable.packets(lambda p: p.out == (pair.req.side == "urnic") and p.is_request and p.ackreq)
        acks = t.cable.packets(lambda p: p.out == (pair.rsp.side == "urnic") and p.opcode == 0x11)
        t.check(len(acks) <= len(asks) + 200, pair, f"{len(acks)} ACKs for {len(asks)} requests that asked")
    return "6 messages equal; no storm of ACKs"


@test("rc-pipeline", "A34: 64 WRITEs, then READs of them after a fence, all in flight: order kept, data equal")
def pipeline(t):
    n, size = 32, 1500
    for pair in t.pairs():
        req, rsp = pair.req, pair.rsp
        req.do("fill", off=SOURCE, len=n * size, seed=9)
        for i in range(n):
            req.do("send", id=i, op=WRITE, off=SOURCE + i * size, len=size, raddr=rsp.addr + TARGET + i * size,
                   rkey=rsp.rkey)
        for i in range(n):
            req.do("send", id=n + i, op=READ, off=SINK + i * size, len=size, raddr=rsp.addr + TARGET + i * size,
                   rkey=rsp.rkey, flags=SIGNALED | (FENCE if i == 0 else 0))
        got = req.poll(2 * n)
        t.equal([w.id for w in got], list(range(2 * n)), pair, "order of completions")
        t.equal({w.status for w in got}, {OK}, pair, "statuses")
        t.equal(req.bad(SINK, n * size, seed=9), -1, pair, "data differ at")
    return "128 messages, completed in order"


@test("rc-zero-length-no-key", "A25 REQ-03: WRITE and READ of 0 octets with R_Key 0 succeed")
def zero_no_key(t):
    for pair in t.pairs():
        for op in (WRITE, READ):
            pair.req.do("send", id=1, op=op, off=0, len=0, raddr=0, rkey=0)
            got = pair.req.poll()
            t.equal([w.status for w in got], [OK], pair, "zero-length without key")
    return "accepted by both"
