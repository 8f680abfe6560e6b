#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SEC-34: only the user and root choose the daemon of a program. Neither a folder /tmp/urnic-UID that
another user has made, nor the environment of a set-uid program does. It takes three users, so it runs as root.

usage: test_squat.py URNIC URNICD
"""
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

URNIC, URNICD = map(os.path.abspath, sys.argv[1:3])
OWNER, STRANGER = 65510, 65511
FOLDER = f"/tmp/urnic-{OWNER}"
SOCKET = FOLDER + "/urnicd.sock"
failures = []


def check(ok, what):
    print("ok  " if ok else "FAIL", what, flush=True)
    if not ok:
        failures.append(what)


def as_user(uid, argv, **env):
    """Exit status and stderr of a command of this user's; a daemon that starts is ended after 2 s."""
    clean = {k: v for k, v in os.environ.items() if k not in ("URNIC_SOCKET", "XDG_RUNTIME_DIR")}
    p = subprocess.Popen(argv, user=uid, group=uid, extra_groups=[], env={**clean, **env}, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True, cwd="/")
    try:
        _, err = p.communicate(timeout=2)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=20)
        return None, err
    return p.returncode, err


def clear():
    if os.path.islink(FOLDER) or os.path.isfile(FOLDER):
        os.unlink(FOLDER)
    shutil.rmtree(FOLDER, ignore_errors=True)


def make(uid, mode):
    clear()
    os.mkdir(FOLDER)
    os.chmod(FOLDER, mode)
    os.chown(FOLDER, uid, uid)


def daemon():
    return as_user(OWNER, [URNICD, "--foreground", "--port", "mem:squat"])


def the_daemon():
    clear()
    rc, _ = daemon()
    check(rc is None, "the daemon serves in a folder that it makes")
    check(stat.S_IMODE(os.lstat(FOLDER).st_mode) == 0o755, "... which is its own alone")
    for uid, mode, text in [(STRANGER, 0o777, f"{FOLDER} belongs to user {STRANGER}"),
                            (STRANGER, 0o755, f"{FOLDER} belongs to user {STRANGER}"),
                            (OWNER, 0o777, "can be written by other users"),
                            (OWNER, 0o775, "can be written by other users")]:
        make(uid, mode)
        rc, err = daemon()
        check(rc == 1 and text in err, f"a folder of {uid}, {mode:o}: {err.strip()!r}")
        check(not os.path.exists(SOCKET), "... and nothing is made in it")
    clear()
    os.mkdir(FOLDER + ".real")
    os.chown(FOLDER + ".real", OWNER, OWNER)
    os.symlink(FOLDER + ".real", FOLDER)
    os.lchown(FOLDER, STRANGER, STRANGER)
    rc, err = daemon()
    check(rc == 1 and f"belongs to user {STRANGER}" in err, f"a link: {err.strip()!r}")
    os.unlink(FOLDER)
    os.rmdir(FOLDER + ".real")


def the_clients():
    """Of what is not the user's own no more is said than that there is no daemon of the system's."""
    for folder, mode, sock, own in [(OWNER, 0o755, OWNER, True), (STRANGER, 0o755, OWNER, False),
                                    (OWNER, 0o777, OWNER, False), (OWNER, 0o755, STRANGER, False)]:
        make(folder, mode)
        open(SOCKET, "w").close()
        os.chown(SOCKET, sock, sock)
        rc, err = as_user(OWNER, [URNIC, "stat"])
        check(rc == 1 and (SOCKET in err) == own, f"folder of {folder}, {mode:o}, socket of {sock}: {err.strip()!r}")
    clear()


def set_uid():
    with tempfile.TemporaryDirectory(dir="/tmp") as tmp:
        os.chmod(tmp, 0o755)
        program = tmp + "/urnic"
        shutil.copy(URNIC, program)
        trap = tmp + "/trap.sock"
        rc, err = as_user(STRANGER, [program, "stat"], URNIC_SOCKET=trap)
        check(trap in err, "a program of the user's own obeys $URNIC_SOCKET")
        os.chown(program, OWNER, OWNER)
        os.chmod(program, 0o4755)
        rc, err = as_user(STRANGER, [program, "stat"], URNIC_SOCKET=trap)
        check(rc == 1 and trap not in err, f"a set-uid one does not: {err.strip()!r}")
        os.makedirs(tmp + "/run/urnic")
        open(tmp + "/run/urnic/urnicd.sock", "w").close()
        for path in ("/run/urnic", "/run/urnic/urnicd.sock"):
            os.chown(tmp + path, OWNER, OWNER)
        rc, err = as_user(STRANGER, [program, "stat"], XDG_RUNTIME_DIR=tmp + "/run")
        check(rc == 1 and tmp not in err, f"nor $XDG_RUNTIME_DIR: {err.strip()!r}")


def set_uid_daemon():
    """It serves where its owner's daemon would, and loads nothing that its starter chose."""
    clear()
    with tempfile.TemporaryDirectory(dir="/tmp") as tmp:
        os.chmod(tmp, 0o755)
        program = tmp + "/urnicd"
        shutil.copy(URNICD, program)
        run = tmp + "/run"
        os.mkdir(run)
        os.chown(run, OWNER, OWNER)
        plugins = tmp + "/plugins"
        os.mkdir(plugins)
        for folder in (plugins, tmp):  # named by the environment, and beside the program
            open(folder + "/liburnic-dpdk.so", "w").close()
        traps = {"URNIC_SOCKET": run + "/trap.sock", "XDG_RUNTIME_DIR": run}
        mem, dpdk = (["--foreground", "--port", port] for port in ("mem:squat", "dpdk:net_null0"))

        for set_uid_bit in (False, True):
            os.chown(program, OWNER, OWNER)
            os.chmod(program, 0o4755 if set_uid_bit else 0o755)
            uid = STRANGER if set_uid_bit else OWNER
            for name, value in traps.items():
                clear()
                env = {k: v for k, v in os.environ.items() if k not in traps}
                p = subprocess.Popen([program] + mem, user=uid, group=uid, extra_groups=[], env={**env, name: value},
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
                end = time.monotonic() + 10
                served = []
                while not served and p.poll() is None and time.monotonic() < end:
                    served = [s for s in (SOCKET, run + "/trap.sock", run + "/urnic/urnicd.sock") if os.path.exists(s)]
                    time.sleep(0.01)
                p.send_signal(signal.SIGTERM)
                p.wait(20)
                check(bool(served) and (served == [SOCKET]) == set_uid_bit,
                      f"{name}, {'set-uid' if set_uid_bit else 'the owner'}: the daemon serves at {served}")
            for folder, env in ((plugins, {"URNIC_PLUGIN_DIR": plugins}), (tmp, {})):
                _, err = as_user(uid, [program, "--socket", run + "/s.sock"] + dpdk, **env)
                tried = "could not be loaded: " + folder + "/liburnic-dpdk.so" in err
                check(tried != set_uid_bit, f"a plugin in {folder}, {'set-uid' if set_uid_bit else 'the owner'}: "
                      f"{err.strip()[-160:]!r}")
    clear()


def main():
    if os.geteuid() != 0:
        print("this test takes three users: run it as root")
        return 77
    for program in (URNIC, URNICD):  # folders of root's alone on the way would hide them
        if subprocess.run([program, "--version"], user=OWNER, group=OWNER, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode:
            print(f"other users can't run {program}")
            return 77
    try:
        the_daemon()
        the_clients()
        set_uid()
        set_uid_daemon()
    finally:
        clear()
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
