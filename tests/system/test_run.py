#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic run: the command's status, signals, arguments and environment; the private daemon lives as long as the
command and leaves nothing behind; what can't be preloaded is said.
"""
import os
import shutil
import signal
import subprocess
import time

from cli_rig import DATA, SOCKET, URNIC, URNICD, check, run, test_all

# Folders of private daemons are made here, and nothing else is.
RUNTIME = os.path.join(DATA, "runtime")
os.mkdir(RUNTIME, 0o700)
os.environ["XDG_RUNTIME_DIR"] = RUNTIME


def private(*command, options=(), **env):
    return run(URNIC, ["run", "--private", *options, "--", *command], **env)


def left():
    """What is left of private daemons: folders, and processes that name one."""
    found = os.listdir(RUNTIME)
    ps = subprocess.run(["pgrep", "-f", "--", f"--socket {RUNTIME}/"], capture_output=True, text=True, check=False)
    return found + ps.stdout.split()


def wait_until(what, seconds=10):
    for _ in range(int(seconds * 50)):
        if what():
            return True
        time.sleep(0.02)
    return False


def statuses():
    for command, want in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -KILL $$"], 137)):
        r = private(*command)
        check(r.returncode == want, f"{command}: status {r.returncode}, not {want}: {r.stderr}")
    r = run(URNIC, ["run", "no-such-command"])
    check(r.returncode == 127 and "no-such-command: No such file" in r.stderr, f"no such command: {r}")
    r = run(URNIC, ["run", os.path.join(DATA, "file")])
    check(r.returncode == 126 and "Permission denied" in r.stderr, f"no program: {r}")
    script = os.path.join(DATA, "script")
    with open(script, "w", encoding="ascii") as f:
        f.write("exit $(($1 + 1))\n")  # without a first line that names a shell
    os.chmod(script, 0o755)
    r = private(script, "4")
    check(r.returncode == 5, f"a script without a first line: {r}")
    check(not left(), f"left behind: {left()}")


def arguments():
    r = private("sh", "-c", 'printf "%s|" "$@"', "sh", "a b", "", "--help", "*")
    check(r.stdout == "a b||--help|*|", f"arguments: {r}")
    r = run(URNIC, ["run", "printf", "%s", "--private"])
    check(r.stdout == "--private", f"an option after the command is the command's: {r}")
    r = subprocess.run([URNIC, "run", "--private", "cat"], input="through", capture_output=True, text=True, check=False)
    check(r.stdout == "through", f"standard input: {r}")


def environment():
    r = private("sh", "-c", "echo $URNIC_SOCKET; echo $LD_PRELOAD; ls -ld $(dirname $URNIC_SOCKET)")
    socket, preload, folder = r.stdout.splitlines()
    check(socket.startswith(RUNTIME) and folder.startswith("drwx------"), f"the folder is the user's alone: {r}")
    check(preload.endswith("/libibverbs.so.1") and preload.startswith("/"), f"LD_PRELOAD: {preload}")
    r = private("sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libc.so.6")
    check(r.stdout.startswith("libc.so.6:/"), f"what is preloaded already comes first: {r}")
    r = private(URNIC, "run", "--", "sh", "-c", "echo $LD_PRELOAD")
    check(r.stdout.count("libibverbs") == 1, f"run in run: {r}")
    r = run(URNIC, ["run", "sh", "-c", "echo $URNIC_SOCKET"])
    check(r.stdout.strip() == SOCKET, f"the daemon that runs already: {r}")
    r = run(URNIC, ["run", "--socket", "/nowhere", "sh", "-c", "echo $URNIC_SOCKET"])
    check(r.stdout.strip() == "/nowhere" and "no urnicd serves at /nowhere" in r.stderr, f"no daemon: {r}")


# Does the program load the engine, and does it open the device?
OPEN = ("sh", "-c", "LD_DEBUG=files ibv_devinfo 2>err >/dev/null && echo open; "
        "grep -q 'calling init.*liburnic-engine.so' err && echo here; grep '^urnic: ' err >&2; true")


def opened(**env):
    return private(*OPEN, **env)


def engines():
    """The engine runs in the program, also where liburnic's programs are to have that of the daemon."""
    for env in ({}, {"URNIC_ENGINE": "daemon"}, {"URNIC_ENGINE": "application"},
                {"URNIC_ENGINE": "application,progress=thread"}):
        r = opened(**env)
        check(r.stdout.split() == ["open", "here"] and r.stderr == "", f"the engine with {env}: {r}")
    r = private("sh", "-c", "echo ${URNIC_ENGINE-none}")
    check(r.stdout == "none\n", f"other programs have the engine that they want: {r}")
    for word in ("elsewhere", "auto", "application,colour=red"):
        r = opened(URNIC_ENGINE=word)
        check("open" not in r.stdout.split() and f"URNIC_ENGINE={word} is not valid" in r.stderr, f"a wrong value: {r}")
    for word, good in (("zlib", True), ("", True), ("mmx", False)):
        r = private("sh", "-c", f"export URNIC_CRC={word}; {OPEN[2]}")
        check(("open" in r.stdout.split()) == good and ("URNIC_CRC=mmx is not valid" in r.stderr) != good,
              f"URNIC_CRC={word}: {r}")


def no_engine():
    """The engine can't run in the program, here for want of the library: the device can't be opened, and the user
    learns why."""
    r = opened(URNIC_PLUGIN_DIR="/nowhere")
    check(r.stdout == "" and "urnic: urn0 can't be opened with the engine in the program: liburnic-engine.so was not "
          "found beside liburnic" in r.stderr, f"no library: {r}")


FULL = r"""
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(c);
    struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, 0);
    struct ibv_device_attr device;
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    int n = 0;
    if (pd == NULL || cq == NULL || ibv_query_device(c, &device) != 0)
        return 3;
    while (n <= device.max_qp && ibv_create_qp(pd, &attr) != NULL)
        n++;
    printf("%d of %d, %d\n", n, device.max_qp, errno == ENOSPC);
    return 0;
}
"""


def no_more():
    """More queue pairs than an engine in a program has."""
    exe = os.path.join(DATA, "full")
    subprocess.run(["cc", "-x", "c", "-o", exe, "-", "-libverbs"], input=FULL, text=True, check=True)
    r = private(exe)
    check(r.stdout == "1024 of 1024, 1\n" and r.stderr.count("urnic: urn0: a context can have 1024 queue pairs") == 1,
          f"queue pairs: {r}")


def several_workers():
    socket = os.path.join(DATA, "team")
    with subprocess.Popen([URNICD, "--foreground", "--log-level", "warn", "--socket", socket, "--device",
                           "port=udp:lo,workers=4,addr=127.0.0.1/8"]) as daemon:
        check(wait_until(lambda: os.path.exists(socket)), "the daemon serves")
        r = run(URNIC, ["run", "--socket", socket, *OPEN])
        check(r.stdout.split() == ["open", "here"] and r.stderr == "", f"a device with several workers: {r}")
        daemon.terminate()


def devices():
    r = private(URNIC, "info", "--json", options=["--devices", "3"])
    check(r.returncode == 0 and r.stdout.count('"active"') == 3 and "198.18.0.3" in r.stdout
          and "fd75:726e:6963::3" in r.stdout, f"three devices: {r}")
    r = private(URNIC, "info", options=["--port", "mem:a", "--addr", "10.9.0.1/24", "--port", "mem:b"])
    check("10.9.0.1" in r.stdout and "198.18.0.2" in r.stdout and "198.18.0.1" not in r.stdout, f"ports: {r}")
    r = private("true", options=["--port", "eth0"])
    check(r.returncode == 1 and "port=eth0" in r.stderr and "could not start" in r.stderr, f"a wrong port: {r}")
    check(not left(), f"left behind: {left()}")


def signals():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        text = f"trap 'echo got; exit 3' {sig}; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen([URNIC, "run", "--private", "sh", "-c", text], stdout=subprocess.PIPE, text=True) as p:
            check(p.stdout.readline() == "ready\n", "the command runs")
            p.send_signal(sig)
            check(p.stdout.readline() == "got\n" and p.wait(timeout=10) == 3, f"signal {sig} reaches the command")
    check(not left(), f"left behind: {left()}")


def killed():
    """Nothing of a private daemon outlives `urnic run`, however that ends."""
    with subprocess.Popen([URNIC, "run", "--private", "sh", "-c", "echo ready; exec sleep 2"],
                          stdout=subprocess.PIPE, text=True) as p:
        check(p.stdout.readline() == "ready\n" and len(left()) == 2, f"one folder, one daemon: {left()}")
        p.kill()
        check(wait_until(lambda: not left()), f"left behind by kill -9: {left()}")


def several():
    together = [subprocess.Popen([URNIC, "run", "--private", URNIC, "info"], stdout=subprocess.PIPE, text=True)
                for _ in range(5)]
    for p in together:
        out = p.communicate(timeout=30)[0]
        check(p.returncode == 0 and "198.18.0.1" in out, f"one of five at once: {p.returncode} {out}")
    check(not left(), f"left behind: {left()}")


def daemon_dies():
    text = "kill -9 $(pgrep -f -- --socket.$(dirname $URNIC_SOCKET)/); sleep 0.3; exit 4"
    r = private("sh", "-c", text)
    check(r.returncode == 4 and "urnicd has ended before the command" in r.stderr, f"the daemon is killed: {r}")
    check(not left(), f"left behind: {left()}")


def no_preload():
    static = os.path.join(DATA, "static")
    subprocess.run(["cc", "-static", "-x", "c", "-o", static, "-"], input="int main(void){return 9;}", text=True,
                   check=True)
    r = private(static)
    check(r.returncode == 9 and "linked statically" in r.stderr, f"a static program: {r}")
    r = private("sh", "-c", URNICD + " --version; env | grep -c LD_PRELOAD")
    check(r.stdout.splitlines()[0].startswith("urnicd ") and r.stdout.splitlines()[1] == "1", f"urnicd in it: {r}")
    if os.getuid() == 0:
        setuid = os.path.join(DATA, "setuid")
        shutil.copy("/bin/true", setuid)
        os.chown(setuid, 1, -1)
        os.chmod(setuid, 0o4755)
        r = private(setuid)
        check("set-uid to another user" in r.stderr, f"a set-uid program: {r}")


ASAN = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
int main(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    printf("%d %s\n", n, n > 0 ? ibv_get_device_name(list[0]) : "-");
    ibv_free_device_list(list);
    return 0;
}
"""


def preloaded_already():
    """AddressSanitizer wants to be first, and says so; what LD_PRELOAD names already is."""
    exe = os.path.join(DATA, "asan")
    subprocess.run(["gcc", "-fsanitize=address", "-x", "c", "-o", exe, "-", "-libverbs"], input=ASAN, text=True,
                   check=True)
    r = private(exe)
    check(r.returncode != 0 and "does not come first" in r.stderr, f"without its library: {r}")
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    r = private(exe, LD_PRELOAD=library.strip(), ASAN_OPTIONS="detect_leaks=1")
    check(r.returncode == 0 and r.stdout == "1 urn0\n" and r.stderr == "", f"with its library: {r}")
    check(not left(), f"left behind: {left()}")


def parent_option():
    r = run(URNICD, ["--parent", "99", "--port", "mem:a", "--addr", "10.0.0.1/24"])
    check(r.returncode == 2 and "parent=99" in r.stderr, f"--parent with a closed descriptor: {r}")
    with open(os.path.join(DATA, "file"), encoding="ascii") as f:
        r = subprocess.run([URNICD, "--foreground", "--socket", os.path.join(DATA, "p"), "--parent", str(f.fileno()),
                            "--port", "mem:a", "--addr", "10.0.0.1/24"], pass_fds=[f.fileno()], capture_output=True,
                           text=True, timeout=20, check=False)
        check(r.returncode == 1 and "want a socket or a pipe" in r.stderr, f"--parent with a file: {r}")


raise SystemExit(test_all(statuses, arguments, environment, engines, no_engine, no_more, several_workers, devices, signals, killed, several, daemon_dies, no_preload,
                          preloaded_already, parent_option))
