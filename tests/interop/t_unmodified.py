# SPDX-License-Identifier: BSD-3-Clause
"""Debian's own programs at both ends: on our side under `urnic run`, on the other on rxe."""
import re
import time

from bench import OUR4, OUR6, test
from guest import ADDR4, ADDR6
from t_connect import GuestProgram, wait_listening


def rejected(text):
    return re.search(r"REJECTED|[Rr]ejected|Unexpected CM event|Connection refused", text)


def until_served(serve, call):
    """The client is rejected where the server does not listen yet. Both are started again then: perftest makes two
    connections. After a rejection of the second one, the server takes the next client's first connection for its
    second, and both wait for ever. Returns the server, and the client's exit status and output."""
    end = time.monotonic() + 20
    while True:
        server = serve()
        status, text = call()
        if status == 0 or not rejected(text) or time.monotonic() > end:
            return server, status, text
        server.kill()


def rxe_calls(t, server, client):
    """Our program serves, rxe's calls it. Their outputs."""
    def serve():
        child = t.urnic("run", "--", *server.split())
        time.sleep(1)
        return child
    ours, status, text = until_served(serve, lambda: t.guest.sh(client, check=False))
    t.equal(status, 0, "rxe's", client, text[-400:])
    status, said = t.output(ours)
    t.equal(status, 0, "our", server, said[-400:])
    return said, text


def ours_calls(t, server, client):
    def serve():
        program = GuestProgram(t, server)
        wait_listening(t, server.split()[0])  # said a moment before it is true
        return program
    theirs, status, text = until_served(serve, lambda: t.output(t.urnic("run", "--", *client.split())))
    t.equal(status, 0, "our", client, text[-400:])
    status, said = theirs.output()
    t.equal(status, 0, "rxe's", server, said[-400:])
    return said, text


def both_ways(t, server, client, expect, families=((OUR4, ADDR4),)):
    """The client's words name the server as {to}, the server's its own address. Both outputs must match."""
    for our, their in families:
        for call, at in ((rxe_calls, our), (ours_calls, their)):
            outputs = call(t, server.format(at=at), client.format(to=at))
            for text, what in zip(outputs, expect):
                t.check(re.search(what, text), call.__name__, at, "the output lacks", what, "in", text[-400:])


BOTH = ((OUR4, ADDR4), (OUR6, ADDR6))


@test("unmodified-rping", "CM-01: Debian's rping under `urnic run` and on rxe, both directions, IPv4 and IPv6", short=True)
def rping(t):
    both_ways(t, "rping -s -a {at} -C 10 -S 3000 -V", "rping -c -a {to} -C 10 -S 3000 -v -V",
              ("", "ping data: rdma-ping-9:"), BOTH)
    return "4 x 10 rounds, data verified by rping"


@test("unmodified-ucmatose", "CM-01: Debian's ucmatose likewise, ten connections, IPv4 and IPv6")
def ucmatose(t):
    both_ways(t, "ucmatose -b {at} -c 10 -C 20 -S 2000", "ucmatose -s {to} -c 10 -C 20 -S 2000",
              ("return status 0", "return status 0"), BOTH)
    return "4 x 10 connections of 20 messages each way"


@test("unmodified-write-bw", "CM-01: perftest's ib_write_bw -R likewise", short=True)
def write_bw(t):
    both_ways(t, "ib_write_bw -R -F -n 100 -s 65536", "ib_write_bw -R -F -n 100 -s 65536 {to}",
              (r"65536 +100 ", r"65536 +100 "))
    return "2 x 100 WRITEs of 64 KiB"


@test("unmodified-read-bw", "CM-01: perftest's ib_read_bw -R likewise")
def read_bw(t):
    both_ways(t, "ib_read_bw -R -F -n 100 -s 16384", "ib_read_bw -R -F -n 100 -s 16384 {to}",
              (r"16384 +100 ", r"16384 +100 "))
    return "2 x 100 READs of 16 KiB"


@test("unmodified-send-lat", "CM-01: perftest's ib_send_lat -R likewise")
def send_lat(t):
    both_ways(t, "ib_send_lat -R -F -n 100 -s 64", "ib_send_lat -R -F -n 100 -s 64 {to}", (r"64 +100 ", r"64 +100 "))
    return "2 x 100 round trips"


@test("unmodified-rstream", "CM-01: rdma-core's rstream over rsockets likewise, octets compared; IPv4 and IPv6")
def rstream(t):
    how = "-S 4096 -I 20 -C 1 -T v"
    both_ways(t, "rstream -b {at} " + how, "rstream -s {to} " + how, ("4k", "4k"), BOTH)
    return "4 streams"
