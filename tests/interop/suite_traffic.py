#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Traffic for `urnic wire --suite` between our daemon and the guest's rxe, one end asking, the other answering.

usage: suite_traffic.py near|far PEER SOCKET ADDRESS RETRY

PEER is peer_urnic; SOCKET and ADDRESS are our daemon's. OP, SIZE, COUNT and QPS come by the environment."""
import os
import sys

import ends
import guest as guests

TIMEOUT, MTU = 14, 1024
SOURCE, TARGET = 0, 1 << 20
WINDOW = 12  # messages under way


def main():
    asks, peer, sock, address, retry = sys.argv[1:]
    op = {"write": ends.WRITE, "read": ends.READ}[os.environ["OP"]]
    size, count, qps = (int(os.environ[name]) for name in ("SIZE", "COUNT", "QPS"))
    guest = object.__new__(guests.Guest)  # it runs; only its address is needed
    near, far = ends.near(peer, address, sock), ends.far(guest, guests.ADDR4)
    try:
        req, rsp = (near, far) if asks == "near" else (far, near)
        for q in range(qps):
            req.qp(q)
            rsp.qp(q)
            psn, other = 0x100 + q, 0x5A5A00 + q
            words = {"q": q, "mtu": MTU, "timeout": TIMEOUT, "retry": retry, "rnr_retry": 7}
            rsp.do("join", remote=req.ip, qpn=req.qpn[q], sq_psn=other, rq_psn=psn, **words)
            req.do("join", remote=rsp.ip, qpn=rsp.qpn[q], sq_psn=psn, rq_psn=other, **words)
        sent = done = 0
        while done < count * qps:
            while sent < count * qps and sent - done < WINDOW:
                req.do("send", q=sent % qps, id=sent, op=op, off=SOURCE, len=size, flags=ends.SIGNALED,
                       raddr=rsp.addr + TARGET, rkey=rsp.rkey)
                sent += 1
            got = req.poll()
            bad = [wc for wc in got if wc.status != ends.OK]
            if bad or not got:
                return f"{ends.STATUS.get(bad[0].status) if bad else 'nothing'} after {done} of {count * qps} messages"
            done += len(got)
        return 0
    finally:
        near.close()
        far.close()


if __name__ == "__main__":
    sys.exit(main())
