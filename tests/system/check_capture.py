#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every RoCEv2 frame of a pcapng file must carry the right iCRC (ICRC-01..06), computed here anew.

usage: check_capture.py FILE [QPN]

With QPN: every RoCEv2 frame must be to or from that queue pair, as far as the BTH tells (its answers go
to the other end). Prints what it found; exit 0 = all good, 1 = not.
"""
import struct
import sys
import zlib


def blocks(data):
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8:at + length - 4]
        at += length


def options(body, at):
    found = {}
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 0:
            break
        found[code] = body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def icrc(ip):
    head = bytearray(ip[:60])
    if head[0] >> 4 == 4:
        bth = 28
        for i in (1, 8, 10, 11, 26, 27):
            head[i] = 0xFF
    else:
        bth = 48
        head[0] = 0x6F
        for i in (1, 2, 3, 7, 46, 47):
            head[i] = 0xFF
    head[bth + 4] = 0xFF
    crc = zlib.crc32(b"\xff" * 8 + bytes(head[:60]) + ip[60:-4] if len(ip) > 64
                     else b"\xff" * 8 + bytes(head[:len(ip) - 4]))
    return struct.pack("<I", crc), bth


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, end="", file=sys.stderr)
        return 2
    only = int(sys.argv[2], 0) if len(sys.argv) == 3 else None
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    roce = bad = sent = received = comments = strangers = 0
    qpns = set()
    for kind, body in blocks(data):
        if kind != 6:
            continue
        _, _, _, caplen, length = struct.unpack_from("<IIIII", body)
        frame = body[20:20 + caplen]
        opts = options(body, 20 + (caplen + 3) // 4 * 4)
        flags = struct.unpack("<I", opts[2])[0] if 2 in opts else 0
        received += flags & 3 == 1
        sent += flags & 3 == 2
        comments += 1 in opts
        ethertype = struct.unpack_from(">H", frame, 12)[0]
        if caplen != length or ethertype not in (0x0800, 0x86DD):
            continue
        ip = frame[14:]
        proto = ip[9] if ethertype == 0x0800 else ip[6]
        udp = 20 if ethertype == 0x0800 else 40
        if proto != 17 or struct.unpack_from(">H", ip, udp + 2)[0] != 4791:
            continue
        total = (struct.unpack_from(">H", ip, 2)[0] if ethertype == 0x0800
                 else 40 + struct.unpack_from(">H", ip, 4)[0])
        ip = ip[:total]
        want, bth = icrc(ip)
        roce += 1
        bad += want != ip[-4:]
        dqpn = int.from_bytes(ip[bth + 5:bth + 8], "big")
        qpns.add(dqpn)
    print(f"{roce} RoCEv2 frames, {bad} with a wrong iCRC; {sent} sent, {received} received, "
          f"{comments} comments, {len(qpns)} destination queue pairs")
    if only is not None and (only not in qpns or len(qpns) > 2):
        strangers = 1
        print(f"queue pair 0x{only:06x} was asked for, these are there: "
              f"{sorted(hex(q) for q in qpns)}")
    return 1 if bad or not roce or not sent or not received or strangers else 0


if __name__ == "__main__":
    sys.exit(main())
