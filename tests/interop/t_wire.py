# SPDX-License-Identifier: BSD-3-Clause
"""The catalogue's appendix A: how rxe is known to behave, checked on the wire, and that ours copes."""
import random
import struct

import guest
from bench import OUR4, test
from ends import OK, READ, SEND, SEND_INV, STATUS, WRITE
from packet import CNP, RC, icrc
from t_connect import both_roles, bring_up, rxe_calls
from t_rc import INBOX, SINK, SOURCE, TARGET, transfer


def sent_by(pair_end, packets):
    return [p for p in packets if p.out == (pair_end.side == "urnic")]


def distance(a, b):
    """From PSN b to PSN a."""
    return (a - b + (1 << 23)) % (1 << 24) - (1 << 23)


@test("wire-ackreq", "A1 A2 A3 REQ-10: requests for ACKs, the answers, and how far a sender runs ahead")
def ackreq(t):
    size, told = 600000, []
    for pair in t.pairs(mtu=1024):
        mark = len(t.cable.packets())
        transfer(t, pair, "WRITE", size, 1)
        seen = t.cable.packets()[mark:]
        requests, answers = sent_by(pair.req, seen), sent_by(pair.rsp, seen)
        t.check(requests[-1].ackreq, pair, "the last packet does not ask for an ACK")
        run = longest = ahead = 0
        acked = requests[0].psn - 1
        for p in seen:
            if p in requests:
                run = 0 if p.ackreq else run + 1
                longest, ahead = max(longest, run), max(ahead, distance(p.psn, acked))
            elif p.is_ack:
                acked = p.psn
        asked = {p.psn for p in requests if p.ackreq}
        unasked = [p for p in answers if p.is_ack and p.psn not in asked]
        if pair.rsp.side == "rxe":
            t.equal(unasked, [], pair, "ACKs that nobody asked for")
        t.check(len(answers) <= len(asked) + size // 1024 // 16, pair, "a storm of ACKs")
        told.append(f"{pair.req}: asks every {longest + 1} packets at most, up to {ahead} ahead; {pair.rsp}: "
                    f"{len(answers)} ACKs for {len(asked)} requests")
        if pair.req.side == "rxe":
            t.check(ahead <= 128 + 64, "rxe ran", ahead, "PSNs ahead")
    return "; ".join(told)


def udp_checksum_ok(p):
    """Is there a UDP checksum, and is it right?"""
    at, udp = (12 if p.version == 4 else 8), p.bth - 8
    data = p.ip[at:udp] + struct.pack(">HH", 17, len(p.ip) - udp) + p.ip[udp:]
    data += bytes(len(data) % 2)
    s = sum(struct.unpack(f">{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return s == 0xFFFF and p.ip[udp + 6:udp + 8] != b"\0\0"


@test("wire-headers", "A4 A15 A16 A18 A19 HDR-04: credits, source ports, IP headers, P_Key, MigReq of both sides")
def headers(t):
    for v6 in (False, True):
        for pair in t.pairs(v6=v6):
            for seed, op in enumerate(("SEND", "WRITE", "READ"), 1):
                transfer(t, pair, op, 3000, seed)
            qpns = {pair.req.qpn[0], pair.rsp.qpn[0]}
            seen = t.cable.packets(lambda p: p.qpn in qpns)
            a, b = qpns
            v = a * b
            v ^= v >> 20
            v ^= v >> 40
            label = v & 0xFFFFF
            port = 0xC000 | ((label & 0x3FFF) ^ (label >> 14))
            sockets = t.daemon.port == "udp"  # the kernel's UDP then chooses port and checksum of what we send
            t.equal(len({p.sport for p in seen if p.out}), 1, "source ports of ours")
            for p in seen:
                mine, udp = sockets and p.out, p.bth - 8
                if not mine:
                    t.equal(p.sport, port, p, "source port (WIRE-20)")
                t.equal(p.pkey, 0xFFFF, p, "P_Key")
                t.equal(p.transport, RC, p, "transport")
                if p.is_ack:
                    t.equal(p.syndrome, 0x1F, p, "syndrome of an ACK")
                if not v6:
                    t.equal((p.ip[6] & 0x40, p.ip[8]), (0x40, 64), p, "(DF, TTL)")
                else:
                    t.equal(p.ip[7], 64, p, "hop limit")
                if mine:
                    t.check(udp_checksum_ok(p), p, "UDP checksum is wrong")
                else:
                    t.equal(p.ip[udp + 6:udp + 8], b"\0\0", p, "UDP checksum (WIRE-24)")
            t.equal({p.migreq for p in seen if p.out}, {1}, "MigReq of ours")
            if {p.migreq for p in seen if not p.out} == {0}:
                t.deviates("HDR-04", "MigReq is always 0 (DEV-05, A19)")
    return "as expected"


def middle_sizes(t):
    return {p.payload for p in t.cable.packets(lambda p: p.name in ("READ_MIDDLE", "WRITE_MIDDLE"))}


@test("wire-mtu", "A20 CM-12: rxe's interface at 1500 and 9000 octets: it asks for path MTU 1024 and 4096, and gets it")
def path_mtu(t):
    call = f"rping -c -a {OUR4} -C 3 -S 20000 -V"
    t.guest.sh("ip link set roce mtu 1500")
    try:
        rxe_calls(t, ("rping",), call)
        t.equal(middle_sizes(t), {1024}, "octets in a MIDDLE")
    finally:
        t.guest.sh("ip link set roce mtu 9000")
    rxe_calls(t, ("rping",), call)
    t.equal(middle_sizes(t), {1024, 4096}, "octets in a MIDDLE")
    return "as asked"


@test("wire-cm-defaults", "A22 A24 CM-05 CM-18: what rxe's CM puts into REQ and REP")
def cm_defaults(t):
    for client, server in both_roles(t):
        bring_up(t, client, server)
    mads = {p.mad: p.ip[p.bth + 12 + 8 + 24:] for p in t.cable.packets(lambda p: p.mad and not p.out)}
    req, rep = mads["REQ"], mads["REP"]
    t.equal(req[43] >> 3, 20, "REQ: Remote CM Response Timeout")
    t.equal(req[51] >> 4, 15, "REQ: Max CM Retries")
    t.equal(req[52:56], b"\xff\xff\xff\xff", "REQ: LIDs")
    t.equal(rep[26] >> 3, 15, "REP: Target ACK Delay")
    return "timeout 20, 15 retries, LIDs 0xffff, ACK delay 15"


@test("wire-rnr-655", "A23: rdma_cm's receiver has min_rnr_timer 0, 655 ms: ours waits that long and gets through")
def rnr_default(t):
    near, far = t.two_ends()
    bring_up(t, near, far)
    near.do("send", id=1, op=SEND, off=0, len=100)
    rnr = t.cable.wait(lambda p: p.is_rnr)
    t.check(rnr, "no RNR NAK")
    far.do("recv", id=2, off=0, len=100)
    t.equal([w.status for w in near.poll() + far.poll()], [OK, OK], "SEND")
    again = t.cable.packets(lambda p: p.out and p.opcode == RC | 0x04)
    waited = (again[1].time - rnr[0].time) / 1e6
    t.equal(rnr[0].syndrome & 31, 0, "RNR timer code")
    t.check(waited >= 655, f"sent again after {waited:.0f} ms")
    return f"sent again after {waited:.0f} ms"


@test("wire-read-depth-5", "A11 RD-03: a READ depth of 5: rxe may round it up to 8; ours takes that")
def read_depth(t):
    told = []
    for pair in t.pairs(rd=5, mtu=1024):
        t.cable.rule(lambda f: f, lambda p: False)
        pair.rsp.do("fill", off=TARGET, len=20000, seed=4)
        for i in range(20):
            pair.req.do("send", id=i, op=READ, off=SINK + i * 20000, len=20000, raddr=pair.rsp.addr + TARGET,
                        rkey=pair.rsp.rkey)
        t.equal([w.status for w in pair.req.poll(20)], [OK] * 20, pair)
        t.equal(pair.req.bad(SINK + 19 * 20000, 20000, seed=4), -1, pair, "data differ at")
        out = most = 0
        for p in t.cable.packets(lambda p: p.qpn in (pair.req.qpn[0], pair.rsp.qpn[0])):
            out += p.name == "READ_REQUEST"
            out -= p.name in ("READ_LAST", "READ_ONLY")
            most = max(most, out)
        told.append(f"{pair.req} had up to {most} out")
        if pair.req.side == "urnic":
            t.check(most <= 5, "ours had", most, "READs out with a depth of 5")
        elif most > 5:
            t.deviates("RD-03", f"with a READ depth of 5 it has {most} READs out (A11)")
    return "; ".join(told)


def crafted(to, psn, opcode, body=b""):
    """A frame from urnicd's address to rxe's queue pair `to`."""
    bth = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, to, psn) + body
    total = 20 + 8 + len(bth) + 4
    ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 17, 0))
    ip += bytes([10, 77, 0, 1, 10, 77, 0, 2])
    s = sum(struct.unpack(">10H", ip))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    ip[10:12] = struct.pack(">H", ~s & 0xFFFF)
    packet = bytes(ip) + struct.pack(">HHHH", 0xC123, 4791, total - 20, 0) + bth + b"\0\0\0\0"
    packet = packet[:-4] + icrc(packet, 28)
    return bytes.fromhex(guest.MAC.replace(":", "") + "027700000001" + "0800") + packet


@test("wire-cnp", "A29 DEV-07: a CNP, and the unused opcode 0x15, at an rxe queue pair that waits for an ACK")
def cnp(t):
    seen = []
    for opcode, body in ((CNP, bytes(16)), (0x15, bytes(4))):
        near, far = t.two_ends()
        t.join(far, near, timeout=17, psn=0)
        hold = t.cable.lose(lambda p: p.is_ack, times=1)
        far.do("send", id=1, op=WRITE, off=SOURCE, len=64, raddr=near.addr + TARGET, rkey=near.rkey)
        t.check(t.cable.wait(lambda p: p.is_ack and p.lost), "no ACK was lost")
        t.cable.inject(crafted(far.qpn[0], 0, opcode, body))
        early = far.poll(ms=200)  # the ACK is lost, its timer runs for half a second
        got = early or far.poll()
        what = STATUS.get(got[0].status) if got else "no completion"
        name = "CNP" if opcode == CNP else "opcode 0x15"
        seen.append(f"{name}: {'completed early, ' if early else ''}{what}")
        if early:
            t.deviates("CC-07" if opcode == CNP else "OPC-01",
                       f"{name} at a queue pair with a request in flight: it completes with {what} (A29)")
        else:
            t.equal((what, len(hold.hits)), ("success", 1), name)
        near.close()
        far.close()
    return "; ".join(seen)


@test("wire-send-inv", "A28 RSP-18: SEND with invalidate of a key that is not there")
def bad_invalidate(t):
    seen = []
    for pair in t.pairs(timeout=12, retry=2):
        pair.rsp.do("recv", id=1, off=INBOX, len=64)
        pair.req.do("send", id=2, op=SEND_INV, off=SOURCE, len=64, inv=0x12345678)
        got, there = pair.req.poll(ms=10000), pair.rsp.poll(ms=2000)
        what = [STATUS.get(w.status, w.status) for w in got]
        seen.append(f"{pair.rsp}: {what} for the requester, {[STATUS.get(w.status, w.status) for w in there]} there")
        t.check(what and what[0] in ("success", "RETRY_EXC_ERR"), pair, what)
        t.check(not there or there[0].status != OK, pair, "the receive succeeded:", there)
    return "; ".join(seen)


@test("wire-many-lengths", "A17 A32: 600 messages of random length each way: no iCRC is wrong at either end")
def many_lengths(t):
    dice = random.Random(4)
    before = t.counters().get("rx_icrc_err", 0)
    n, window = 600, 60
    for pair in t.pairs(mtu=1024):
        pair.req.do("fill", off=SOURCE, len=9000, seed=1)
        for _ in range(n // window):
            for i in range(window):
                pair.req.do("send", id=i, op=WRITE, off=SOURCE, len=dice.randrange(9000), raddr=pair.rsp.addr + TARGET,
                            rkey=pair.rsp.rkey)
            t.equal({w.status for w in pair.req.poll(window)}, {OK}, pair)
    t.equal(t.counters().get("rx_icrc_err", 0), before, "rx_icrc_err of ours")
    again = t.cable.packets(lambda p: p.nak is not None)
    t.equal(again, [], "NAKs")
    return f"{len(t.cable.packets())} packets"
