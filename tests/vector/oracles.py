# SPDX-License-Identifier: BSD-3-Clause
"""lib/wire against two independent implementations: scapy and tshark.

    oracles.py FRAME_TOOL CAPTURES

1. Frames of every opcode that we build: scapy recomputes the iCRC and reads the BTH; tshark dissects
   them. Every field that both sides know must be equal.
2. Frames that scapy builds: we must accept them and read the same values.
3. All captures: our reading and tshark's must be equal, packet by packet.

Rules: HDR-01, HDR-05, HDR-08, OPC-01, ICRC-01..06, WIRE-03, WIRE-13.
"""

import glob
import ipaddress
import json
import logging
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SEED = 4791


def fail(text):
    print("FAIL:", text)
    sys.exit(1)


try:
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.contrib.roce import AETH, BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw
except ImportError as e:
    fail(f"scapy is missing ({e}): install python3-scapy (scripts/deps lists it)")
if not shutil.which("tshark"):
    fail("tshark is missing: install it (scripts/deps lists it)")

# Our field name -> tshark's. A frame has the field when our line has it.
TSHARK = {
    "sip": None,  # ip.src or ipv6.src, below
    "opcode": "infiniband.bth.opcode",
    "se": "infiniband.bth.se",
    "migreq": "infiniband.bth.m",
    "pad": "infiniband.bth.padcnt",
    "pkey": "infiniband.bth.p_key",
    "dqpn": "infiniband.bth.destqp",
    "ackreq": "infiniband.bth.a",
    "psn": "infiniband.bth.psn",
    "va": "infiniband.reth.va",
    "rkey": "infiniband.reth.r_key",
    "dma_len": "infiniband.reth.dmalen",
    "swap_add": "infiniband.atomiceth.swapdt",
    "compare": "infiniband.atomiceth.cmpdt",
    "syndrome": "infiniband.aeth.syndrome",
    "msn": "infiniband.aeth.msn",
    "orig": "infiniband.atomicacketh.origremdt",
    "qkey": "infiniband.deth.q_key",
    "sqpn": "infiniband.deth.srcqp",
    "imm": "infiniband.immdt",
    "inv_rkey": "infiniband.ieth",
    "icrc": "infiniband.invariant.crc",
    "ttl": "ip.ttl",
    "ip_id": "ip.id",
    "flow_label": "ipv6.flow",
    "sport": "udp.srcport",
}
IP_FIELDS = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.dsfield", "ipv6.tclass", "ipv6.hlim",
             "vlan.id", "vlan.priority"]
# Headers after the BTH that tshark 4.0 doesn't dissect: XRC's own header shifts the others, FLUSH and
# ATOMIC WRITE are unknown to it.
BTH_ONLY = {"sip", "opcode", "se", "migreq", "pad", "pkey", "dqpn", "ackreq", "psn", "ttl", "ip_id",
            "flow_label", "sport"}


def bth_only(frame):
    return frame["opcode"] >> 5 == 5 or frame["opcode"] in (0x1C, 0x1D, 0x81)


def run_tool(tool, args, stdin=None):
    out = subprocess.run([tool] + args, input=stdin, text=True, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in out.stdout.splitlines()]


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def read_pcap(path):
    data = open(path, "rb").read()
    at = 24
    while at < len(data):
        n = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + n]
        at += 16 + n


def tshark(frames):
    """One dict of strings per frame."""
    names = [n for n in TSHARK.values() if n] + IP_FIELDS
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frames.pcap")
        write_pcap(path, frames)
        # rpcordma: its heuristic takes some payloads for RPC. (No fields are lost without it.)
        cmd = ["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-T", "fields",
               "-E", "separator=|", "-E", "occurrence=f"]
        for n in names:
            cmd += ["-e", n]
        out = subprocess.run(cmd, text=True, check=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    rows = [dict(zip(names, line.split("|"))) for line in out.stdout.splitlines()]
    if len(rows) != len(frames):
        fail(f"tshark dissected {len(rows)} of {len(frames)} frames:\n{out.stderr}")
    return rows


def compare_tshark(ours, theirs, where):
    """Compare every field of one frame; returns how many."""
    count = 0

    def same(name, mine, other):
        nonlocal count
        if mine != other:
            fail(f"{where} {ours['name']}: {name} is {mine} for us, {other} for tshark\n{ours}")
        count += 1

    v6 = ours["ip_version"] == 6
    ip = "ipv6" if v6 else "ip"
    for mine, other in (("sip", "src"), ("dip", "dst")):
        same(mine, ipaddress.ip_address(ours[mine]),
             ipaddress.ip_address(theirs[f"{ip}.{other}"]))
    same("tclass", ours["tclass"], int(theirs["ipv6.tclass" if v6 else "ip.dsfield"], 0))
    if v6:
        same("hop limit", ours["ttl"], int(theirs["ipv6.hlim"]))
    if "tci" in ours:
        same("VID", ours["tci"] & 0xFFF, int(theirs["vlan.id"]))
        same("PCP", ours["tci"] >> 13, int(theirs["vlan.priority"]))
    for name, other in TSHARK.items():
        if not other or name not in ours or (bth_only(ours) and name not in BTH_ONLY):
            continue
        if v6 and name == "ttl":
            continue
        value = theirs[other]
        if name == "icrc" and ours["opcode"] >> 5 == 3 and not ours["payload_len"]:
            continue  # tshark stops before the iCRC of an empty datagram
        if value == "":
            fail(f"{where} {ours['name']}: tshark sees no {name}")
        if name == "imm":
            same(name, ours[name], value)
        elif name == "inv_rkey":
            same(name, ours[name], int(value, 16))
        elif name == "icrc":
            # tshark shows the four octets in wire order
            same(name, struct.pack("<I", ours[name]), struct.pack(">I", int(value, 0)))
        else:
            same(name, ours[name], int(value, 0))
    return count


def scapy_icrc(packet):
    """scapy's iCRC; its class knows IPv4 only, so the IPv6 mask is put on scapy's layers here."""
    if IP in packet:
        again = packet.copy()
        again[BTH].icrc = None
        return bytes(again)[-4:]
    masked = packet[IPv6].copy()
    masked.tc, masked.fl, masked.hlim = 0xFF, 0xFFFFF, 0xFF
    masked[UDP].chksum = 0xFFFF
    masked[BTH].fecn, masked[BTH].becn, masked[BTH].resv6 = 1, 1, 0x3F
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)[:-4]))


def check_scapy(frames):
    for f in frames:
        raw = bytes.fromhex(f["hex"])
        packet = Ether(raw)
        if BTH not in packet:
            fail(f"scapy sees no BTH in {f}")
        bth = packet[BTH]
        for mine, other in (("opcode", "opcode"), ("se", "solicited"), ("migreq", "migreq"),
                            ("pad", "padcount"), ("pkey", "pkey"), ("fecn", "fecn"),
                            ("becn", "becn"), ("dqpn", "dqpn"), ("ackreq", "ackreq"),
                            ("psn", "psn")):
            if f[mine] != getattr(bth, other):
                fail(f"{f['name']}: {mine} is {f[mine]} for us, {getattr(bth, other)} for scapy")
        if AETH in packet and packet[AETH].syndrome != f["syndrome"]:
            fail(f"{f['name']}: syndrome")
        if scapy_icrc(packet) != raw[-4:]:
            fail(f"{f['name']}: scapy computes another iCRC\n{f}")


def scapy_frames(rng, count):
    """Frames that scapy builds, with their values: opcodes without extension headers, and ACKs."""
    for _ in range(count):
        op = rng.choice([0x00, 0x01, 0x02, 0x04, 0x07, 0x08, 0x0E, 0x11, 0x20, 0x24, 0x27])
        ack = op == 0x11
        payload = b"" if ack else rng.randbytes(rng.choice([0, 1, 5, 64, 255, 1024]))
        pad = -len(payload) % 4
        want = {"opcode": op, "se": rng.getrandbits(1), "migreq": rng.getrandbits(1), "pad": pad,
                "pkey": rng.getrandbits(16), "dqpn": rng.randrange(1, 0xFFFFFF),
                "ackreq": rng.getrandbits(1), "psn": rng.getrandbits(24),
                "payload_len": len(payload), "tclass": rng.getrandbits(8),
                "ttl": rng.getrandbits(8), "ip_id": rng.getrandbits(16), "sip": "10.1.2.3",
                "dip": "10.4.5.6", "sport": rng.getrandbits(16)}
        bth = BTH(opcode=op, solicited=want["se"], migreq=want["migreq"], padcount=pad,
                  pkey=want["pkey"], dqpn=want["dqpn"], ackreq=want["ackreq"], psn=want["psn"])
        if ack:
            want.update(syndrome=rng.choice([0x1F, 0x2C, 0x60]), msn=rng.getrandbits(24))
            rest = AETH(syndrome=want["syndrome"], msn=want["msn"])
        else:
            rest = Raw(payload + bytes(pad))
        packet = (Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01", type=0x0800)
                  / IP(src=want["sip"], dst=want["dip"], tos=want["tclass"], ttl=want["ttl"],
                       id=want["ip_id"], flags="DF")
                  / UDP(sport=want["sport"], dport=4791, chksum=0) / bth)
        if ack or payload:
            packet = packet / rest
        yield want, bytes(packet)


def main():
    tool, captures = sys.argv[1:3]

    ours = run_tool(tool, ["gen", str(SEED)])
    bad = [f for f in ours if f["verdict"] != "ok"]
    if bad:
        fail(f"we refuse a frame of our own: {bad[0]}")
    names = {f["name"] for f in ours}
    check_scapy(ours)
    fields = sum(compare_tshark(f, t, "generated")
                 for f, t in zip(ours, tshark([bytes.fromhex(f["hex"]) for f in ours])))
    print(f"{len(ours)} frames of {len(names)} opcodes: scapy agrees, tshark agrees "
          f"in {fields} fields")

    built = list(scapy_frames(random.Random(SEED), 200))
    for (want, raw), got in zip(built, run_tool(tool, ["parse"],
                                                "".join(raw.hex() + "\n" for _, raw in built))):
        if got["verdict"] != "ok":
            fail(f"{got['verdict']} for a frame of scapy's: {raw.hex()}")
        for key, value in want.items():
            if got[key] != value:
                fail(f"{key} is {got[key]} for us, {value} for scapy: {raw.hex()}")
    print(f"{len(built)} frames built by scapy: we read the same values")

    frames, where = [], []
    for path in sorted(glob.glob(os.path.join(captures, "*.pcap"))):
        for n, frame in enumerate(read_pcap(path), 1):
            frames.append(frame)
            where.append(f"{os.path.basename(path)} packet {n}")
    if not frames:
        fail(f"no captures in {captures}")
    parsed = run_tool(tool, ["parse"], "".join(f.hex() + "\n" for f in frames))
    fields = 0
    for got, theirs, place in zip(parsed, tshark(frames), where):
        if got["verdict"] != "ok":
            fail(f"{place}: {got['verdict']}")
        fields += compare_tshark(got, theirs, place)
    print(f"{len(frames)} captured packets: tshark agrees in {fields} fields")


main()
