# SPDX-License-Identifier: BSD-3-Clause
"""The cable between urnicd's tap and the guest's NICs: it forwards, records, and does what it is told to.

urnicd has the tap's kernel end (dpdk:net_af_packet on tap0); this holds the other end, and the sockets
behind QEMU's NICs. A frame is forwarded by its destination's MAC address. Rules pick RoCEv2 packets and
lose, repeat, hold back or damage them: faults that hit exactly the packet a test means, on machines whose
kernel has no netem.

What is recorded is what an observer at tap0 sees: all that urnicd sends, a lost frame with a comment,
and of the peer's frames those that got through.
"""
import collections
import fcntl
import os
import random
import select
import socket
import struct
import threading
import time

from packet import Packet, Pcapng

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000


class Rule:
    """Do `action` to packets for which `match` holds: `times` of them, after letting `skip` pass.

    Actions: "lose"; "twice"; "hold" (deliver after the next packet of that direction); "damage" (flip a bit);
    or a function from the frame to the frame to deliver, or None.
    """

    def __init__(self, action, match, times, skip):
        self.action, self.match, self.times, self.skip = action, match, times, skip
        self.hits = []

    def takes(self, packet):
        if self.times is not None and len(self.hits) >= self.times or not self.match(packet):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits.append(packet)
        return True


class Cable:
    def __init__(self, work, macs, tap="tap0"):
        """`macs`: addresses of the guest's NICs; self.nics are the sockets to give to QEMU, in that order."""
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", tap.encode(), IFF_TAP | IFF_NO_PI))
        self.nics, self.doors = [], []
        for i in range(len(macs)):
            path = f"{work}/nic{i}"
            door = socket.socket(socket.AF_UNIX)
            door.bind(path)
            door.listen(1)
            self.nics.append(path)
            self.doors.append(door)
        self.macs = [bytes.fromhex(m.replace(":", "")) for m in macs]
        self.conns = [None] * len(macs)
        self.partial = [b""] * len(macs)
        self.backlog = [collections.deque() for _ in macs]
        self.rules, self.seen, self.held = [], [], {True: [], False: []}
        self.capture = None
        self.bad_icrc, self.frames = 0, 0
        self.lock = threading.Condition()
        self.wake_r, self.wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.ending = False
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    # ---- what tests use

    def rule(self, action, match, times=1, skip=0):
        r = Rule(action, match, times, skip)
        with self.lock:
            self.rules.append(r)
        return r

    def lose(self, match, times=1, skip=0):
        return self.rule("lose", match, times, skip)

    def lossy(self, part, seed, match=lambda p: p.mad is None):
        """Lose this part of the packets, by a fixed seed."""
        dice = random.Random(seed)
        return self.rule("lose", lambda p: match(p) and dice.random() < part, times=None)

    def clear(self):
        with self.lock:
            self.rules = []

    def record(self, path):
        """Begin a file, and forget what was seen before. None: end it."""
        with self.lock:
            if self.capture:
                self.capture.close()
            self.capture = Pcapng(path) if path else None
            self.seen = []

    def packets(self, match=lambda p: True):
        with self.lock:
            return [p for p in self.seen if match(p)]

    def wait(self, match, count=1, seconds=20):
        """Until that many packets match; they are returned, fewer of them when time is up."""
        end = time.monotonic() + seconds
        with self.lock:
            while True:
                got = [p for p in self.seen if match(p)]
                left = end - time.monotonic()
                if len(got) >= count or left <= 0:
                    return got
                self.lock.wait(min(left, 1))

    def inject(self, frame, nic=0):
        """Send a frame to one of the guest's NICs, as if urnicd had. It is not recorded: urnicd has not."""
        with self.lock:
            self.backlog[nic].append(frame)
        os.write(self.wake_w, b"x")

    def close(self):
        self.record(None)
        self.ending = True
        os.write(self.wake_w, b"x")
        self.thread.join()
        os.close(self.tap)

    # ---- the thread

    def _write(self, frame, out, comment=None):
        if self.capture:
            self.capture.write(frame, out, time.time_ns(), comment)

    def _record(self, frame, out, packet, comment):
        if out:
            self._write(frame, out, comment)
        if packet:
            self.frames += 1
            self.bad_icrc += not packet.icrc_ok
            self.seen.append(packet)
            self.lock.notify_all()

    def _forward(self, frame, out, nic):
        to = frame[:6]
        if out:
            for i, mac in enumerate(self.macs):
                if to == mac or to[0] & 1:
                    self.backlog[i].append(frame)
            return
        for i, mac in enumerate(self.macs):
            if i != nic and (to == mac or to[0] & 1):
                self.backlog[i].append(frame)
        self._write(frame, out)
        if to not in self.macs:
            try:
                os.write(self.tap, frame)
            except OSError:  # the interface is down, or its queue is full: a loss like any other
                pass

    def _arrive(self, frame, out, nic):
        with self.lock:
            packet = Packet.parse(frame, out, time.time_ns())
            rule = packet and next((r for r in self.rules if r.takes(packet)), None)
            action = rule.action if rule else None
            if action == "lose":
                packet.lost = True
                self._record(frame, out, packet, "lost by the cable")
                return
            self._record(frame, out, packet, None)
            if action == "hold":
                self.held[out].append((frame, nic))
                return
            if action == "damage":
                frame = frame[:-6] + bytes([frame[-6] ^ 0x10]) + frame[-5:]
            elif callable(action):
                frame = action(frame)
                if frame is None:
                    return
            self._forward(frame, out, nic)
            if action == "twice":
                self._forward(frame, out, nic)
            waiting, self.held[out] = self.held[out], []
            for late, where in waiting:
                self._forward(late, out, where)

    def _from_tap(self):
        for _ in range(64):
            try:
                frame = os.read(self.tap, 65536)
            except BlockingIOError:
                return
            except OSError:  # the interface is down
                time.sleep(0.01)
                return
            self._arrive(frame, True, None)

    def _from_nic(self, i):
        try:
            data = self.conns[i].recv(262144)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.conns[i].close()
            self.conns[i] = None
            return
        data, at = self.partial[i] + data, 0
        while at + 4 <= len(data):
            n = struct.unpack_from(">I", data, at)[0]
            if at + 4 + n > len(data):
                break
            self._arrive(data[at + 4:at + 4 + n], False, i)
            at += 4 + n
        self.partial[i] = data[at:]

    def _to_nic(self, i):
        queue = self.backlog[i]
        while queue:
            frame = queue[0]
            data = frame if isinstance(frame, memoryview) else memoryview(struct.pack(">I", len(frame)) + frame)
            try:
                sent = self.conns[i].send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                queue.clear()
                return
            if sent < len(data):
                queue[0] = data[sent:]
                return
            queue.popleft()

    def _loop(self):
        while not self.ending:
            readers = [self.tap, self.wake_r, *self.doors, *[c for c in self.conns if c]]
            writers = [c for c, q in zip(self.conns, self.backlog) if c and q]
            ready, _, _ = select.select(readers, writers, [], 5)
            if self.wake_r in ready:
                os.read(self.wake_r, 4096)
            if self.tap in ready:
                self._from_tap()
            for i, door in enumerate(self.doors):
                if door in ready:
                    conn, _ = door.accept()
                    conn.setblocking(False)
                    self.conns[i], self.partial[i] = conn, b""  # a guest that starts again comes anew
            for i, conn in enumerate(self.conns):
                if conn and conn in ready:
                    self._from_nic(i)
            with self.lock:
                for i, conn in enumerate(self.conns):
                    if conn:
                        self._to_nic(i)
                    else:
                        self.backlog[i].clear()
