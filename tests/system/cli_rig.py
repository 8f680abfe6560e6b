# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the command lines share: the programs, a folder with some files, and a daemon with two devices
on one link, urn0 (10.0.0.1) and urn1 (10.0.0.2), which all commands find by URNIC_SOCKET.

Each of these tests is called so: test_cli_X.py URNICD URNIC SOURCE_ROOT
"""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time

URNICD, URNIC, ROOT = (os.path.abspath(p) for p in sys.argv[1:4])
CAPTURE = os.path.join(ROOT, "pcaps", "err-rnr.pcap")
SCENARIO = os.path.join(ROOT, "app", "urnic", "scenarios", "two-flows.sim")
SCRIPT = os.path.join(ROOT, "tests", "drill", "atm", "atm_02_byte_order.drill")
DATA = tempfile.mkdtemp(prefix="urnic-cli-")
SOCKET = os.path.join(DATA, "sock")
failures = []
atexit.register(shutil.rmtree, DATA, ignore_errors=True)


def check(ok, text):
    if not ok:
        failures.append(text)
        print("FAIL:", text)


def run(program, args, timeout=30, **env):
    return subprocess.run([program, *args], cwd=DATA, timeout=timeout, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="backslashreplace", env=dict(os.environ, **env))


def test_all(*tests):
    """Each of the functions, while the daemon runs, which the last ones may stop. The exit status."""
    for name, text in (("file", "no capture, no scenario\n"), ("empty", ""), ("kept", "kept"), ("zero", "\0")):
        with open(os.path.join(DATA, name), "w", encoding="ascii") as f:
            f.write(text)
    os.environ["URNIC_SOCKET"] = SOCKET
    with subprocess.Popen([URNICD, "--foreground", "--socket", SOCKET, "--log-level", "warn", "--port", "mem:l",
                           "--addr", "10.0.0.1/24", "--port", "mem:l", "--addr", "10.0.0.2/24"]) as daemon:
        try:
            for _ in range(300):
                if run(URNIC, ["info"]).returncode == 0:
                    break
                time.sleep(0.05)
            for test in tests:
                test()
            if daemon.poll() is None:
                daemon.terminate()
            check(daemon.wait(timeout=20) == 0, "the daemon's status")
        finally:
            if daemon.poll() is None:
                daemon.kill()
    print(f"{len(failures)} failures")
    return 1 if failures else 0
