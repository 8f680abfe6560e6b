# SPDX-License-Identifier: BSD-3-Clause
"""More programs of rdma-core against ours: datagrams that find each other by the connection manager, multicast, and
connections with librdmacm's default parameters."""
import select

from bench import OUR4, OUR6, test
from ends import DISCONNECTED, ESTABLISHED, OK, SEND
from guest import ADDR4, ADDR6
from t_connect import GuestProgram, both_roles, bytes_of, event, wait_listening

GROUP, COUNT, SIZE = "239.77.1.2", 20, 1000


def datagrams(t, *words):
    return t.spawn(t.build / "tests/interop/datagrams", *words)


def served(t, child):
    status, text = t.output(child)
    t.equal(status, 0, "datagrams", text[-300:])
    return text


def ready(t, child):
    line = child.stdout.readline()
    t.check("ready" in line, "not ready:", line)


@test("udaddy-from-rxe", "CM-31: udaddy of rdma-core finds our datagram service by SIDR, and is answered; IPv4 and IPv6")
def udaddy_from_rxe(t):
    for our in (OUR4, OUR6):
        server = datagrams(t, "serve", our, 7174, COUNT, SIZE)
        ready(t, server)
        status, text = t.guest.sh(f"udaddy -s {our} -C {COUNT} -S {SIZE}", check=False)
        t.equal((status, "return status 0" in text), (0, True), "udaddy", text[-300:])
        t.check(f"received {COUNT}, sent {COUNT}" in served(t, server), "not all datagrams")
    return f"{4 * COUNT} datagrams"


@test("udaddy-to-rxe", "CM-31: ours finds the service of rdma-core's udaddy; IPv4 and IPv6")
def udaddy_to_rxe(t):
    for their in (ADDR4, ADDR6):
        server = GuestProgram(t, f"udaddy -b {their} -C {COUNT} -S {SIZE}")
        wait_listening(t, "udaddy")
        t.check(f"received {COUNT}, sent {COUNT}" in served(t, datagrams(t, "call", their, 7174, COUNT, SIZE)),
                "not all datagrams")
        status, text = server.output()
        t.equal((status, "return status 0" in text), (0, True), "udaddy", text[-300:])
    return f"{4 * COUNT} datagrams"


@test("cm-no-datagram-service", "CM-31: nobody listens for datagrams: both refuse with SIDR status 1")
def no_service(t):
    status, text = t.guest.sh(f"udaddy -s {OUR4}", check=False)
    t.check(status != 0, "udaddy reached a peer:", text[-300:])
    status, text = t.output(datagrams(t, "call", ADDR4, 7174, 1, 100))
    t.check(status != 0 and "unreachable, status 1" in text, "ours reached a peer:", text)
    t.equal(sorted((p.mad, p.out) for p in t.cable.packets(lambda p: p.mad)),
            [("SIDR_REP", False), ("SIDR_REP", True), ("SIDR_REQ", False), ("SIDR_REQ", True)], "CM messages")
    return "both refuse"


@test("mckey", "UD-10 UD-11: a multicast group with rdma-core's mckey, sender and receiver")
def mckey(t):
    ours = datagrams(t, "hear", GROUP, 0, 10, 100)
    ready(t, ours)
    status, text = t.guest.sh(f"mckey -m {GROUP} -b {ADDR4} -s", check=False)
    t.equal((status, "return status 0" in text), (0, True), "mckey", text[-300:])
    t.check("received 10" in served(t, ours), "not all datagrams")
    theirs = GuestProgram(t, f"mckey -m {GROUP} -b {ADDR4}")
    joined = "01:00:5e:4d:01:02"  # the group's MAC address, among those of the interface
    t.guest.sh(f"for i in $(seq 200); do ip maddr show dev roce | grep -q {joined} && break; sleep 0.05; done; sleep 0.5")
    served(t, datagrams(t, "tell", GROUP, 0, 10, 100))
    status, text = theirs.output()
    t.equal((status, "return status 0" in text), (0, True), "mckey", text[-300:])
    return "20 datagrams"


@test("rdma-client", "CM-07: rdma_client of rdma-core offers 128 READs, all that rxe has: it is accepted; IPv4 and IPv6")
def rdma_client(t):
    for our in (OUR4, OUR6):
        end = t.near(our == OUR6)
        end.do("listen", port=7471)
        client = GuestProgram(t, f"rdma_client -s {our}")
        asked = end.do("answer")
        t.check(asked["rd"] > 16, "rdma_client offers", asked["rd"], "READs: this shows nothing any more")
        end.do("recv", id=1, off=0, len=16)
        end.do("accept", rd=16)
        event(t, end, ESTABLISHED, "accept")
        t.equal([w.status for w in end.poll()], [OK], "receive")
        end.do("send", id=2, op=SEND, off=0, len=16)
        t.equal([w.status for w in end.poll()], [OK], "send")
        event(t, end, DISCONNECTED, "rdma_client's end")
        end.do("hangup")
        status, text = client.output()
        t.equal(status, 0, "rdma_client", text[-300:])
        end.close()
    return "2 connections"


@test("rdma-server", "rdma_server of rdma-core, which accepts with librdmacm's default parameters; IPv4 and IPv6")
def rdma_server(t):
    for their in (ADDR4, ADDR6):
        server = GuestProgram(t, f"rdma_server -s {their}")
        wait_listening(t, "rdma_server")
        end = t.near(their == ADDR6)
        end.do("dial", to=their, port=7471)
        end.do("recv", id=1, off=0, len=16)
        end.do("connect")
        t.equal(bytes_of(event(t, end, ESTABLISHED, "connect")), "", "private data")
        end.do("send", id=2, op=SEND, off=0, len=16)
        t.equal(sorted(w.status for w in end.poll(2)), [OK, OK], "send and receive")
        event(t, end, DISCONNECTED, "rdma_server's end")
        end.do("hangup")
        status, text = server.output()
        t.equal(status, 0, "rdma_server", text[-300:])
        end.close()
    return "2 connections"


@test("cm-unread-event", "CM-35: an id is destroyed before its event is read: the channel is quiet afterwards")
def unread_event(t):
    for client, server in both_roles(t):
        server.do("listen", port=7778)
        client.do("dial", to=server.ip, port=7778)
        client.do("connect")
        server.do("answer")
        server.do("accept")
        t.check(t.cable.wait(lambda p: p.mad == "REP" and p.out == (server.side == "urnic")), "no REP")
        t.guest.sh("sleep 0.3")  # it is told
        client.do("destroy")
        client.start("event", ms=300)
        # Else it waits for the event that is gone; the guest's answers have a time limit of their own.
        told = client.side == "rxe" or select.select([client.source], [], [], 20)[0]
        line = client.source.readline() if told else "nothing"
        t.check("timed out" in line, client, "asks for an event after its id has gone:", line)
    return "both are quiet"
