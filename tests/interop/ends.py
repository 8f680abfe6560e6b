# SPDX-License-Identifier: BSD-3-Clause
"""The two ends of a connection, driven from here: peer.c on liburnic and in the guest on libibverbs."""
import collections
import os
import subprocess

RESET, INIT, RTR, RTS, SQD, SQE, ERR = range(7)
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CAS, FADD, LOCAL_INV, BIND_MW, SEND_INV = range(10)
SIGNALED, SOLICITED, INLINE, FENCE = 2, 4, 8, 1
# Completion statuses.
OK, LOC_LEN, LOC_QP_OP, LOC_PROT, FLUSHED = 0, 1, 2, 4, 5
REM_INV_REQ, REM_ACCESS, REM_OP, RETRY_EXC, RNR_EXC = 9, 10, 11, 12, 13
STATUS = {0: "success", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 4: "LOC_PROT_ERR", 5: "WR_FLUSH_ERR",
          7: "BAD_RESP_ERR", 8: "LOC_ACCESS_ERR", 9: "REM_INV_REQ_ERR", 10: "REM_ACCESS_ERR", 11: "REM_OP_ERR",
          12: "RETRY_EXC_ERR", 13: "RNR_RETRY_EXC_ERR"}
# Connection events.
CONNECT_REQUEST, CONNECT_ERROR, UNREACHABLE, REJECTED, ESTABLISHED, DISCONNECTED = 4, 6, 7, 8, 9, 10
WITH_IMM = 2
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL_ACCESS = 15
FLUSH_GLOBAL = 0x100
FLUSH, ATOMIC_WRITE = 14, 15

Wc = collections.namedtuple("Wc", "id status opcode len flags imm src_qpn")


class EndError(Exception):
    """The library said no; `text` is its reason."""

    def __init__(self, side, text):
        super().__init__(f"{side}: {text}")
        self.text = text


class End:
    """An end. do() sends any command of peer.c; the methods below name the common ones."""

    def __init__(self, side, ip, source, sink, finish):
        self.side, self.ip, self.source, self.sink, self.finish = side, ip, source, sink, finish
        self.qpn = {}
        hello = self.answer()
        self.addr, self.rkey = hello["addr"], hello["rkey"]

    def __repr__(self):
        return self.side

    def answer(self):
        line = self.source.readline().strip()
        if not line:
            raise EndError(self.side, "has gone")
        head, *words = line.split(" ")
        if head != "ok":
            raise EndError(self.side, line.removeprefix("error "))
        found = {"wc": [], "ev": []}
        for word in words:
            name, _, value = word.partition("=")
            if name == "wc":
                found["wc"].append(Wc(*map(int, value.split(":"))))
            elif name == "ev":  # of an asynchronous event the kind; which queue pair it is about, tests know
                found["ev"].append(int(value.split(":")[0]))
            else:
                found[name] = value if name == "text" else int(value)
        return found

    def start(self, verb, **words):
        """Send a command and don't wait for its answer."""
        text = " ".join([verb, *(f"{k}={v}" for k, v in words.items() if v is not None)])
        self.sink.write(text + "\n")
        self.sink.flush()

    def do(self, verb, **words):
        self.start(verb, **words)
        return self.answer()

    def qp(self, q=0, type="rc"):
        self.qpn[q] = self.do("qp", q=q, type=type)["qpn"]
        return self.qpn[q]

    def poll(self, n=1, ms=20000):
        return self.do("poll", n=n, ms=ms)["wc"]

    def state(self, q=0):
        return self.do("state", q=q)["state"]

    def bad(self, off, length, **pattern):
        """Where memory differs from the pattern (seed=, or zero=1); -1 if nowhere."""
        return self.do("check", off=off, len=length, **pattern)["bad"]

    def close(self):
        finish, self.finish = self.finish, lambda: None
        finish()


def near(program, ip, socket, access=ALL_ACCESS):
    """An end on our daemon."""
    child = subprocess.Popen([program, ip, str(access)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, env={**os.environ, "URNIC_SOCKET": socket})

    def finish():
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()

    end = End("urnic", ip, child.stdout, child.stdin, finish)
    end.child = child
    return end


def far(guest, ip, access=ALL_ACCESS, program="peer", env="", side="rxe"):
    """An end in the guest. Its shell says its pid first."""
    conn = guest.connect(f"echo $$; {env} exec {program} {ip} {access}")
    stream = conn.makefile("rw")
    pid = int(stream.readline())

    def finish():
        conn.shutdown(2)
        stream.close()
        conn.close()

    end = End(side, ip, stream, stream, finish)
    end.pid = pid
    return end
