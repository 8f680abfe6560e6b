# SPDX-License-Identifier: BSD-3-Clause
"""When things go wrong: one end, or its daemon, is killed in the middle. The other programs end within seconds."""
from row import BOTH, LOCAL, Row


def killed(name, client, server, kill, topologies=BOTH):
    return Row(f"{name}, the {kill} is killed", client, server, kill=kill, status=None, server_ends=False, lint=False,
               ready=0.8, seconds=15, topologies=topologies)


def perftests():
    words = ["ib_write_bw", "-F", "-p", "{port}", "-D", "60"]
    for kill in ("server", "daemon"):  # the server of a killed client waits for TCP alone
        yield killed("ib_write_bw", [*words, "-d", "{cdev}", "{oob}"], [*words, "-d", "{sdev}"], kill)


def rpings():
    for kill in ("server", "client", "daemon"):
        yield killed("rping", ["rping", "-c", "-a", "{sip}", "-p", "{port}", "-C", "100000000"],
                     ["rping", "-s", "-a", "{sip}", "-p", "{port}"], kill)


def rstreams():
    """An end that only waits for data isn't told of a peer's death: librdmacm 44 looks for events of connections only in
    rpoll. So the client sends all the time when its server is killed; they take turns when their daemon is."""
    for kill, how, where in (("server", ["-I", "1", "-C", "100000000"], BOTH),
                             ("daemon", ["-I", "100000000", "-C", "1"], LOCAL)):
        words = ["rstream", "-p", "{port}", "-S", "65536", *how]
        yield killed("rstream", [*words, "-s", "{sip}"], words, kill, where)


def rows():
    yield from perftests()
    yield from rpings()
    yield from rstreams()
