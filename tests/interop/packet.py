# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames, taken apart independently of lib/wire, and pcapng files of them."""
import struct
import zlib

RC, UC, UD, CNP = 0x00, 0x20, 0x60, 0x81
NAMES = {
    0x00: "SEND_FIRST", 0x01: "SEND_MIDDLE", 0x02: "SEND_LAST", 0x03: "SEND_LAST_IMM", 0x04: "SEND_ONLY",
    0x05: "SEND_ONLY_IMM", 0x06: "WRITE_FIRST", 0x07: "WRITE_MIDDLE", 0x08: "WRITE_LAST",
    0x09: "WRITE_LAST_IMM", 0x0A: "WRITE_ONLY", 0x0B: "WRITE_ONLY_IMM", 0x0C: "READ_REQUEST",
    0x0D: "READ_FIRST", 0x0E: "READ_MIDDLE", 0x0F: "READ_LAST", 0x10: "READ_ONLY", 0x11: "ACK",
    0x12: "ATOMIC_ACK", 0x13: "CAS", 0x14: "FADD", 0x16: "SEND_LAST_INV", 0x17: "SEND_ONLY_INV",
}
WITH_AETH = {0x0D, 0x0F, 0x10, 0x11, 0x12}
MADS = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP",
        0x17: "SIDR_REQ", 0x18: "SIDR_REP"}
NAKS = {0: "sequence", 1: "invalid request", 2: "remote access", 3: "remote operation"}


def icrc(ip, bth):
    """The iCRC of an IP packet whose BTH begins at octet `bth`, as on the wire (ICRC-01..06)."""
    n = len(ip) - 4
    head = bytearray(ip[:min(n, bth + 12)])
    if head[0] >> 4 == 4:
        masked = (1, 8, 10, 11, bth - 2, bth - 1)
    else:
        head[0] |= 0x0F
        masked = (1, 2, 3, 7, bth - 2, bth - 1)
    for i in (*masked, bth + 4):
        head[i] = 0xFF
    return struct.pack("<I", zlib.crc32(ip[len(head):n], zlib.crc32(bytes(head), zlib.crc32(b"\xff" * 8))))


class Packet:
    """A RoCEv2 frame. `out`: sent by urnicd. `lost`: the cable dropped it.

    Fields: opcode, name, qpn, psn, ackreq, solicited, pkey, migreq, payload (length without pad);
    where the opcode has them syndrome and msn; for the connection manager's datagrams `mad`.
    """

    __slots__ = ("out", "time", "lost", "ip", "bth", "opcode", "name", "qpn", "psn", "ackreq", "solicited",
                 "migreq", "pkey", "payload", "syndrome", "msn", "mad", "icrc_ok", "tos", "sport", "version")

    @classmethod
    def parse(cls, frame, out, time):
        """None when the frame isn't RoCEv2 on IPv4 or IPv6."""
        kind = frame[12:14]
        if kind == b"\x08\x00" and len(frame) >= 58 and frame[23] == 17:
            at, total = 14 + (frame[14] & 15) * 4, struct.unpack_from(">H", frame, 16)[0]
        elif kind == b"\x86\xdd" and len(frame) >= 78 and frame[20] == 17:
            at, total = 54, 40 + struct.unpack_from(">H", frame, 18)[0]
        else:
            return None
        if frame[at + 2:at + 4] != b"\x12\xb7" or total > len(frame) - 14:
            return None
        p = cls()
        p.out, p.time, p.lost = out, time, False
        p.ip, p.bth = frame[14:14 + total], at + 8 - 14
        p.version = p.ip[0] >> 4
        p.tos = p.ip[1] if p.version == 4 else (struct.unpack_from(">H", p.ip)[0] >> 4) & 0xFF
        p.sport = struct.unpack_from(">H", frame, at)[0]
        p.opcode, flags, p.pkey, qpn, psn = struct.unpack_from(">BBHII", p.ip, p.bth)
        p.qpn, p.psn, p.ackreq = qpn & 0xFFFFFF, psn & 0xFFFFFF, psn >> 31 == 1
        p.solicited, p.migreq = flags >> 7 == 1, flags >> 6 & 1
        p.name = "CNP" if p.opcode == CNP else NAMES.get(p.opcode & 0x1F, "?")
        p.payload = len(p.ip) - p.bth - 12 - 4 - (flags >> 4 & 3)
        p.syndrome = p.msn = None
        if p.opcode in WITH_AETH:
            aeth = struct.unpack_from(">I", p.ip, p.bth + 12)[0]
            p.syndrome, p.msn = aeth >> 24, aeth & 0xFFFFFF
        p.mad = None
        if p.qpn == 1 and p.opcode == UD | 0x04 and len(p.ip) >= p.bth + 12 + 8 + 256:
            p.mad = MADS.get(struct.unpack_from(">H", p.ip, p.bth + 20 + 16)[0], "?")
        p.icrc_ok = icrc(p.ip, p.bth) == p.ip[-4:]
        return p

    @property
    def transport(self):
        return self.opcode & 0xE0

    @property
    def is_ack(self):
        return self.opcode == 0x11 and self.syndrome >> 5 == 0

    @property
    def is_rnr(self):
        return self.opcode == 0x11 and self.syndrome >> 5 == 1

    @property
    def nak(self):
        """The NAK's code, None when it isn't one."""
        return self.syndrome & 0x1F if self.opcode == 0x11 and self.syndrome >> 5 == 3 else None

    @property
    def is_request(self):
        return self.transport == RC and self.opcode & 0x1F not in (*range(0x0D, 0x13),)

    @property
    def is_read_data(self):
        return 0x0D <= self.opcode <= 0x10

    def __str__(self):
        way = "urnic->rxe" if self.out else "rxe->urnic"
        s = f"{way} {self.mad or self.name} qpn {self.qpn:06x} psn {self.psn:06x}"
        if self.ackreq:
            s += " ackreq"
        if self.nak is not None:
            s += f" NAK {NAKS.get(self.nak, self.nak)}"
        elif self.is_rnr:
            s += f" RNR {self.syndrome & 31}"
        elif self.syndrome is not None:
            s += f" credits {self.syndrome & 31} msn {self.msn}"
        if self.payload and self.opcode & 0x1F not in (0x0C, 0x11, 0x12, 0x13, 0x14):
            s += f" len {self.payload}"
        return s + (" LOST" if self.lost else "")


class Pcapng:
    """Writes one Ethernet interface's frames, ns time, with direction and comments."""

    def __init__(self, path, interface="tap0"):
        self.out = open(path, "wb")
        self._block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        options = self._option(2, interface.encode()) + self._option(9, b"\x09") + self._option(0, b"")
        self._block(1, struct.pack("<HHI", 1, 0, 0) + options)

    @staticmethod
    def _option(code, value):
        return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

    def _block(self, kind, body):
        n = len(body) + 12
        self.out.write(struct.pack("<II", kind, n) + body + struct.pack("<I", n))

    def write(self, frame, out, ns, comment=None):
        options = self._option(2, struct.pack("<I", 2 if out else 1))
        if comment:
            options += self._option(1, comment.encode())
        self._block(6, struct.pack("<IIIII", 0, ns >> 32, ns & 0xFFFFFFFF, len(frame), len(frame)) + frame
                    + bytes(-len(frame) % 4) + options + self._option(0, b""))

    def close(self):
        self.out.close()
