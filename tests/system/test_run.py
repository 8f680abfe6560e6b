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


OPEN = ("sh", "-c", "echo $URNIC_ENGINE; ibv_devinfo >/dev/null && echo open")
HERE, THERE = "runs in the process", "runs in the daemon"


def engines():
    """The engine runs in the program where it can, unless the user says otherwise."""
    for word, options, env, place in (("auto", [], {}, HERE), ("auto", ["--engine", "auto"], {}, HERE),
                                      ("application", ["--engine", "application"], {}, HERE),
                                      ("daemon", ["--engine", "daemon"], {}, THERE),
                                      ("daemon", [], {"URNIC_ENGINE": "daemon"}, THERE),
                                      ("application", ["--engine", "application"], {"URNIC_ENGINE": "daemon"}, HERE)):
        r = private(*OPEN, options=["--verbose", *options], **env)
        check(r.stdout.split() == [word, "open"] and r.stderr.count(place) == 1, f"the engine of {options}, {env}: {r}")
    r = private(*OPEN)
    check(r.returncode == 0 and r.stderr == "", f"without --verbose: {r}")
    r = run(URNIC, ["run", "--engine", "elsewhere", "true"])
    check(r.returncode == 2 and "must be auto, application or daemon" in r.stderr, f"wrong --engine: {r}")
    r = private(*OPEN, URNIC_ENGINE="elsewhere")
    check("open" not in r.stdout.split() and "URNIC_ENGINE=elsewhere" in r.stderr, f"wrong $URNIC_ENGINE: {r}")


def no_engine():
    """Here for want of the library: the daemon's engine serves, except where the user wants the other."""
    r = private(*OPEN, URNIC_PLUGIN_DIR="/nowhere")
    check(r.stdout.split() == ["auto", "open"] and r.stderr == "", f"fall back: {r}")
    r = private(*OPEN, options=["--verbose"], URNIC_PLUGIN_DIR="/nowhere")
    check(r.stdout.split() == ["auto", "open"] and f"{THERE}: liburnic-engine.so was not found" in r.stderr,
          f"fall back, and say so: {r}")
    r = private(*OPEN, options=["--engine", "application"], URNIC_PLUGIN_DIR="/nowhere")
    check(r.stdout.split() == ["application"] and "can't run in the program: liburnic-engine.so" in r.stderr,
          f"--engine application where that can't be: {r}")


def several_workers():
    socket = os.path.join(DATA, "team")
    with subprocess.Popen([URNICD, "--foreground", "--log-level", "warn", "--socket", socket, "--device",
                           "port=udp:lo,workers=4,addr=127.0.0.1/8"]) as daemon:
        check(wait_until(lambda: os.path.exists(socket)), "the daemon serves")
        for options in ([], ["--engine", "application"]):
            r = run(URNIC, ["run", "--socket", socket, "--verbose", *options, *OPEN])
            check(r.stdout.split()[1:] == ["open"] and r.stderr.count(HERE) == 1,
                  f"a device with several workers: {r}")
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


raise SystemExit(test_all(statuses, arguments, environment, engines, no_engine, several_workers, devices, signals, killed, several, daemon_dies, no_preload,
                          preloaded_already, parent_option))
