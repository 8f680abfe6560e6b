#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The emulated /sys/class/infiniband under the tools that people look at it with: each ends with 0, says what it
should, and prints no error. Also descriptors of directories, extended attributes, old programs' functions, and the
addresses that getifaddrs tells.

    test_verbs_tree.py URNICD URNIC SOURCE
"""
import os
import subprocess
import tempfile

from cli_rig import DATA, URNIC, check, run, test_all

IB = "/sys/class/infiniband"
URN0 = IB + "/urn0"


def private(*command):
    return run(URNIC, ["run", "--private", "--", *command])


def quiet(command, want, *, shell="bash"):
    """Run it by a shell; it prints no error, and all that is wanted is in what it prints."""
    r = private(shell, "-c", command)
    check(r.returncode == 0 and r.stderr == "", f"{command}: status {r.returncode}, {r.stderr[:400]}")
    for text in [want] if isinstance(want, str) else want:
        check(text in r.stdout, f"{command}: no '{text}' in {r.stdout[:400]}")
    return r.stdout


def listing():
    quiet(f"ls {IB}", "urn0\n")
    quiet(f"ls -l {IB}", ["dr-xr-xr-x", " urn0"])
    quiet(f"ls -la --color=always {URN0}", ["node_guid", "ports"])
    out = quiet(f"ls -lRi {IB}", ["/ports/1/gids:", "node_type"])
    check("?" not in out, f"ls knows everything: {out}")
    quiet("ls -l /dev/infiniband", ["crw-rw-rw-", "10,  60", "rdma_cm", "231, 192", "uverbs0"])
    quiet(f"du -a {IB} | wc -l", "\n")


def finding():
    out = quiet(f"find {IB}", [f"{IB}\n", f"{URN0}/ports/1/state\n"])
    files = [f for f in out.splitlines() if os.path.basename(f) != "infiniband"]
    check(len(files) == len(set(files)) > 50, "find sees each name once")
    quiet(f"find {IB} -name state -type f", f"{URN0}/ports/1/state\n")
    quiet(f"find {IB} -type f -exec cat {{}} + | grep -c .", "")
    quiet(f"find {IB} -maxdepth 1 -ls", "urn0")
    quiet(f"find -L {URN0}/ports -type d -newermt 1960-01-01", "/ports/1")
    quiet(f"grep -r ACTIVE {IB}", f"{URN0}/ports/1/state:4: ACTIVE\n")
    quiet(f"grep -rl RoCE.v2 {IB} | head -1", "gid_attrs/types")
    quiet(f"grep -l CA {URN0}/*_type", f"{URN0}/node_type\n")


def reading():
    quiet(f"cat {URN0}/ports/1/state {URN0}/node_type", "4: ACTIVE\n1: CA\n")
    quiet(f"cat <{URN0}/ports/1/link_layer; read -r x <{URN0}/node_type; echo \"$x\"", "Ethernet\n1: CA\n")
    quiet(f"head -c3 {URN0}/ports/1/state; tail -n1 {URN0}/ports/1/state; wc -c {URN0}/node_type", ["4: ", "6 "])
    quiet(f"dd if={URN0}/ports/1/state bs=1 status=none; md5sum {URN0}/node_guid; od -c {URN0}/hw_rev", "ACTIVE")
    quiet(f"diff -r {IB} {IB}; cmp {URN0}/node_guid {URN0}/sys_image_guid; echo same", "same")
    quiet(f"awk '{{print FILENAME, $2}}' {URN0}/ports/*/state; sed -n 1p {URN0}/fw_ver", "/state ACTIVE")
    with tempfile.TemporaryDirectory(dir=DATA) as d:
        quiet(f"cp -a {IB} {d}/copy && cat {d}/copy/urn0/ports/1/state", "4: ACTIVE")


def shells():
    for shell in "bash", "sh":
        quiet(f"echo {IB}/*/ports/*/gids/[01]", f"{URN0}/ports/1/gids/0 {URN0}/ports/1/gids/1\n", shell=shell)
        quiet(f"for f in {IB}/*; do echo $(cat $f/ports/1/state); done", "4: ACTIVE", shell=shell)
        quiet(f"test -d {IB} && test -r {URN0}/node_guid && test ! -w {URN0}/node_guid && test -e {URN0}/ports && "
              f"test ! -x {URN0}/node_guid && test ! -L {URN0} && test -c /dev/infiniband/rdma_cm && echo yes", "yes",
              shell=shell)
    quiet(f"stat -c '%F %a' {IB} {URN0}/node_guid /dev/infiniband/rdma_cm",
          "directory 555\nregular file 444\ncharacter special file 666\n")
    quiet(f"stat -f -c %T {IB}", "sysfs")
    quiet(f"realpath {IB}/../infiniband/./urn0/; readlink -f {URN0}/ports", f"{URN0}\n{URN0}/ports\n")
    for command, status, error in ((f"echo x >{URN0}/node_desc", 1, "Permission denied"),
                                   (f"cat {URN0}/nothing", 1, "No such file"),
                                   (f"ls {IB}/urn1", 2, "No such file"), (f"readlink {URN0}", 1, "")):
        r = private("sh", "-c", command)
        check(r.returncode in (status, 2) and error in r.stderr, f"{command}: {r}")


PYTHON = f"""
import errno, glob, os, pathlib, shutil
def bad(e): raise e
IB = "{IB}"
walked = sum(len(f) for _, _, f in os.walk(IB, onerror=bad))
assert walked > 50, walked
assert walked == sum(len(f) for _, _, f, _ in os.fwalk(IB, onerror=bad))
assert walked == sum(p.is_file() for p in pathlib.Path(IB).rglob("*"))
assert os.listdir(IB) == ["urn0"] and [e.name for e in os.scandir(IB)] == ["urn0"]
assert all(e.is_dir() and e.stat().st_ino == e.inode() for e in os.scandir(IB))
assert glob.glob(IB + "/*/ports/*/state") == [IB + "/urn0/ports/1/state"]
assert os.listxattr(IB + "/urn0/fw_ver") == []
try:
    os.getxattr(IB + "/urn0", "user.x")
    raise SystemExit("an attribute that is not there")
except OSError as e:
    assert e.errno in (errno.ENODATA, errno.EOPNOTSUPP), e
d = os.open(IB + "/urn0", os.O_RDONLY | os.O_DIRECTORY)
for fd in d, os.dup(d):
    assert sorted(os.listdir(fd)) == sorted(os.listdir(IB + "/urn0"))
    f = os.open("ports/1/state", os.O_RDONLY, dir_fd=fd)
    assert os.read(f, 99) == b"4: ACTIVE\\n" and os.fstat(f).st_ino == os.stat("ports/1/state", dir_fd=fd).st_ino
    os.close(f)
    sub = os.open("ports", os.O_RDONLY, dir_fd=fd)
    assert os.listdir(sub) == ["1"] and os.access("1/rate", os.R_OK, dir_fd=sub) and os.fstatvfs(sub).f_namemax
    os.close(sub)
    for wrong in lambda: os.open("nothing", 0, dir_fd=fd), lambda: os.open("fw_ver/x", 0, dir_fd=fd):
        try:
            wrong()
            raise SystemExit("what isn't there was opened")
        except OSError:
            pass
    os.close(fd)
again = os.open("/etc/passwd", os.O_RDONLY)  # a number that comes back
assert again == d and os.fstat(again).st_size == os.stat("/etc/passwd").st_size
with open(IB + "/urn0/ports/1/state") as f:
    assert f.read() == "4: ACTIVE\\n" and f.seek(0) == 0 and f.readline() == "4: ACTIVE\\n"
for _ in range(300):
    os.listdir(IB)
    os.close(os.open(IB, os.O_RDONLY))
streams = [os.scandir(IB) for _ in range(20)]
assert all(next(s).name == "urn0" for s in streams)
print("done")
"""


def python():
    r = private("python3", "-c", PYTHON)
    check(r.returncode == 0 and r.stdout == "done\n" and r.stderr == "", f"python: {r}")


OLD = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <ifaddrs.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define IB "/sys/class/infiniband"
#define CHECK(x) do { if (!(x)) { printf("line %d: %s, errno %d\n", __LINE__, #x, errno); return 1; } } while (0)
#define F(type, name) type name = (type)dlsym(RTLD_DEFAULT, #name); CHECK(name != NULL)
typedef int (*xstat)(int, const char *, void *);
typedef int (*fxstat)(int, int, void *);
typedef int (*fxstatat)(int, int, const char *, void *, int);
typedef int (*open2)(const char *, int);
typedef int (*openat2)(int, const char *, int);

static int names(const struct dirent *e) { return e->d_name[0] != '.'; }

int main(void)
{
    /* What binaries of older systems, and those with _FORTIFY_SOURCE, call. */
    F(xstat, __xstat); F(xstat, __xstat64); F(xstat, __lxstat); F(xstat, __lxstat64);
    F(fxstat, __fxstat); F(fxstat, __fxstat64); F(fxstatat, __fxstatat); F(fxstatat, __fxstatat64);
    F(open2, __open_2); F(open2, __open64_2); F(openat2, __openat_2); F(openat2, __openat64_2);
    struct stat st;
    xstat stats[] = {__xstat, __xstat64, __lxstat, __lxstat64};
    for (int i = 0; i < 4; i++) {
        CHECK(stats[i](1, IB "/urn0", &st) == 0 && S_ISDIR(st.st_mode));
        CHECK(stats[i](1, "/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
        CHECK(stats[i](1, IB "/urn9", &st) == -1 && errno == ENOENT);
    }
    int dir = __open_2(IB "/urn0", O_RDONLY | O_DIRECTORY), file = __openat_2(dir, "fw_ver", O_RDONLY);
    CHECK(dir >= 0 && file >= 0 && __open64_2(IB "/urn0/fw_ver", O_RDONLY) >= 0);
    CHECK(__openat64_2(dir, "ports/1", O_RDONLY | O_DIRECTORY) >= 0);
    CHECK(__fxstat(1, dir, &st) == 0 && S_ISDIR(st.st_mode) && __fxstat64(1, file, &st) == 0 && S_ISREG(st.st_mode));
    CHECK(__fxstatat(1, dir, "ports", &st, 0) == 0 && S_ISDIR(st.st_mode));
    CHECK(__fxstatat64(1, AT_FDCWD, IB "/urn0/fw_ver", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode));
    CHECK(open64(IB "/urn0/fw_ver", O_RDONLY) >= 0 && fopen64(IB "/urn0/fw_ver", "re") != NULL);
    CHECK(stat64(IB, (struct stat64 *)&st) == 0 && lstat64(IB, (struct stat64 *)&st) == 0);
    CHECK(fcntl64(dir, F_GETFD) == 0 && fcntl64(dir, F_DUPFD, 50) == 50 && fstat64(50, (struct stat64 *)&st) == 0);
    CHECK(S_ISDIR(st.st_mode));
    struct statx sx;
    CHECK(statx(dir, "ports/1/rate", 0, STATX_ALL, &sx) == 0 && S_ISREG(sx.stx_mode));
    CHECK(statx(file, "", AT_EMPTY_PATH, STATX_ALL, &sx) == 0 && S_ISREG(sx.stx_mode));
    CHECK(faccessat(dir, "ports", R_OK | X_OK, 0) == 0 && faccessat(dir, "fw_ver", W_OK, AT_EACCESS) == -1);
    char to[64];
    CHECK(readlinkat(dir, "ports", to, sizeof to) == -1 && errno == EINVAL);
    struct dirent **list, entry, *e;
    CHECK(scandir(IB "/urn0", &list, names, alphasort) > 5 && strcmp(list[0]->d_name, "board_id") == 0);
    CHECK(scandir64(IB, (struct dirent64 ***)&list, NULL, NULL) == 3);
    glob_t g;
    CHECK(glob(IB "/*/ports/*/s*", 0, NULL, &g) == 0 && g.gl_pathc >= 3);
    globfree(&g);
    CHECK(glob64(IB "/urn[0-9]", GLOB_ONLYDIR, NULL, (glob64_t *)&g) == 0 && g.gl_pathc == 1);
    DIR *d = opendir(IB "/urn0/ports");
    CHECK(d != NULL && fstat(dirfd(d), &st) == 0 && S_ISDIR(st.st_mode) && dirfd(d) == dirfd(d));
    long at = telldir(d);
    CHECK(readdir(d) != NULL && readdir(d) != NULL && strcmp(readdir(d)->d_name, "1") == 0 && readdir(d) == NULL);
    seekdir(d, at);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    CHECK(readdir_r(d, &entry, &e) == 0 && e == &entry && strcmp(e->d_name, ".") == 0);
    rewinddir(d);
    CHECK(strcmp(readdir64(d)->d_name, ".") == 0 && closedir(d) == 0);
    CHECK((d = fdopendir(dir)) != NULL && dirfd(d) == dir && closedir(d) == 0 && fcntl(dir, F_GETFD) == -1);
    /* libfabric looks for devices by the addresses of interfaces. */
    struct ifaddrs *all, *i;
    int seen = 0;
    CHECK(getifaddrs(&all) == 0);
    for (i = all; i != NULL; i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET && strcmp(i->ifa_name, "urn0") == 0)
            seen += ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr == inet_addr("198.18.0.1");
    CHECK(seen == 1);
    freeifaddrs(all);
    puts("done");
    return 0;
}
"""


def old_programs():
    exe = os.path.join(DATA, "old")
    subprocess.run(["cc", "-Wall", "-O2", "-x", "c", "-o", exe, "-"], input=OLD, text=True, check=True)
    r = private(exe)
    check(r.returncode == 0 and r.stdout == "done\n", f"functions of older programs: {r}")


raise SystemExit(test_all(listing, finding, reading, shells, python, old_programs))
