#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our libibverbs has the functions of the system's, each in its node, and those of later releases; nothing of its
insides shows. Programs that were linked with a later release start, and are answered.

    test_verbs_abi.py OURS URNIC [THEIRS]

Left out are the functions of libibverbs' first ABI, of 2006, which no program uses (`name@IBVERBS_1.0` beside
`name@@IBVERBS_1.1`).
"""
import os
import re
import subprocess
import sys
import tempfile

# What releases of rdma-core after 44 have, by node, up to 65.
NEWER = {
    "IBVERBS_1.15": ["ibv_alloc_dmah", "ibv_dealloc_dmah", "ibv_reg_mr_ex"],
    "IBVERBS_1.16": ["ibv_dm_export_dmabuf_fd", "ibv_query_port_speed"],
    "IBVERBS_1.17": ["ibv_alloc_buf", "ibv_free_buf", "ibv_reg_buf_mr"],
    "IBVERBS_1.18": ["_ibv_query_comp_cntr_caps", "ibv_create_comp_cntr", "ibv_destroy_comp_cntr",
                     "ibv_export_buf_dmabuf_fd", "ibv_inc_comp_cntr", "ibv_inc_err_comp_cntr",
                     "ibv_qp_attach_comp_cntr", "ibv_read_comp_cntr", "ibv_read_err_comp_cntr", "ibv_set_comp_cntr",
                     "ibv_set_err_comp_cntr"],
    "IBVERBS_PRIVATE_34": ["ibv_cmd_create_cq_ex2", "ibv_wr_opcode_str"],  # came later into the same node
}
# The private nodes of releases 57 and 58, 59 to 63, 64, and 65: the functions of node 34, and these.
PRIVATE = [57, 59, 64, 65]
PRIVATE_LATER = """ibv_cmd_alloc_dmah ibv_cmd_create_comp_cntr ibv_cmd_destroy_comp_cntr ibv_cmd_export_dmabuf_fd
    ibv_cmd_free_dmah ibv_cmd_inc_comp_cntr ibv_cmd_inc_err_comp_cntr ibv_cmd_qp_attach_comp_cntr
    ibv_cmd_query_comp_cntr_caps ibv_cmd_query_port_speed ibv_cmd_read_comp_cntr ibv_cmd_read_err_comp_cntr
    ibv_cmd_reg_mr_ex ibv_cmd_set_comp_cntr ibv_cmd_set_err_comp_cntr ibv_dmabuf_heap_alloc
    ibv_dmabuf_heap_cc_shared_init ibv_dmabuf_heap_destroy ibv_dmabuf_heap_free""".split()

# Functions of libc that the library stands before have no version, or programs would not find them.
NO_VERSION = re.compile(r"^(?!ibv_|urnic_|uv_|verbs_|client_|ipc_)[a-z_0-9]+$")


def symbols(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def soname(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"SONAME.*\[(.*)\]", out)[1], set(re.findall(r"NEEDED.*\[(.*)\]", out))


def newer(theirs):
    """All symbols that later releases have beside those of this one."""
    private = {s.split("@@")[0] for s in theirs if s.endswith("@@IBVERBS_PRIVATE_34")} - {"verbs_register_driver_34"}
    private |= set(PRIVATE_LATER) | set(NEWER["IBVERBS_PRIVATE_34"])
    found = set()
    for node, names in NEWER.items():
        found |= {node} | {f"{n}@@{node}" for n in names}
    for number in PRIVATE:
        node = f"IBVERBS_PRIVATE_{number}"
        found |= {node} | {f"{n}@{node}" for n in private | {f"verbs_register_driver_{number}"}}
    return found


PROGRAM = r"""
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s, errno %d\n", __LINE__, #x, errno); return 1; } } while (0)
#undef ibv_get_device_list
struct mr_attr { size_t length; int access; uint64_t mask, iova; void *addr; int fd; uint64_t offset; void *more[4]; };
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_attr *attr);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);
void *ibv_alloc_dmah(struct ibv_context *context, void *attr);
int ibv_dealloc_dmah(void *dmah);
int ibv_dm_export_dmabuf_fd(void *dm);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, void *out);
void *ibv_create_comp_cntr(struct ibv_context *context, void *attr);
int ibv_read_comp_cntr(void *counter, uint64_t *value);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type);
void REGISTER(const void *ops);

int main(void)
{
    static char memory[8192];
    struct mr_attr attr = {.length = sizeof memory, .access = IBV_ACCESS_LOCAL_WRITE, .mask = 2, .addr = memory};
    uint64_t speed = 0;
    unsigned type = 9;
    REGISTER(NULL);
    struct ibv_context *c = ibv_open_device(ibv_get_device_list(NULL)[0]);
    struct ibv_pd *pd = ibv_alloc_pd(c);
    struct ibv_mr *mr = ibv_reg_mr_ex(pd, &attr);
    CHECK(mr != NULL && mr->addr == memory && mr->length == sizeof memory && mr->lkey != 0 && ibv_dereg_mr(mr) == 0);
    attr.mask = 3, attr.iova = 4096, attr.access |= IBV_ACCESS_REMOTE_READ;
    mr = ibv_reg_mr_ex(pd, &attr);
    CHECK(mr != NULL && mr->rkey != 0 && ibv_dereg_mr(mr) == 0);
    for (int bit = 2; bit < 8; bit++) {
        attr.mask = 2 | 1 << bit;
        CHECK(ibv_reg_mr_ex(pd, &attr) == NULL && errno == (bit < 6 ? EOPNOTSUPP : EINVAL));
    }
    attr.mask = 0;
    CHECK(ibv_reg_mr_ex(pd, &attr) == NULL && errno == EINVAL);
    CHECK(ibv_query_port_speed(c, 1, &speed) == 0 && speed == 1000);
    CHECK(ibv_query_port_speed(c, 2, &speed) == EINVAL);
    CHECK(ibv_query_gid_type(c, 1, 0, &type) == 0 && type <= 1);
    errno = 0;
    CHECK(ibv_alloc_dmah(c, NULL) == NULL && errno == EOPNOTSUPP && ibv_dealloc_dmah(NULL) == EOPNOTSUPP);
    errno = 0;
    CHECK(ibv_dm_export_dmabuf_fd(NULL) == -1 && errno == EOPNOTSUPP);
    CHECK(ibv_alloc_buf(pd, 4096, &attr) == NULL && ibv_create_comp_cntr(c, NULL) == NULL);
    CHECK(ibv_read_comp_cntr(NULL, &speed) == EOPNOTSUPP);
    CHECK(ibv_dealloc_pd(pd) == 0 && ibv_close_device(c) == 0);
    puts("done");
    return 0;
}
"""


def start_newer(urnic, system, number):
    """A program that was linked with a libibverbs of that release starts on ours, and its calls are answered."""
    nodes = {}
    for s in {s for s in symbols(system) if "@@" in s} | newer({s for s in symbols(system) if "@@" in s}):
        name, _, node = s.replace("@@", "@").partition("@")
        if node and (not node.startswith("IBVERBS_PRIVATE_") or node.endswith(f"_{number}")):
            nodes.setdefault(node, []).append(name)
    with tempfile.TemporaryDirectory() as d:
        def write(name, text):
            with open(os.path.join(d, name), "w", encoding="ascii") as f:
                f.write(text)
            return os.path.join(d, name)
        lib, exe = os.path.join(d, "libibverbs.so.1"), os.path.join(d, "program")
        stubs = write("stubs.c", "".join(f"void {n}(void);\nvoid {n}(void) {{}}\n" for l in nodes.values() for n in l))
        script = write("map", "".join(f"{node} {{ global: {' '.join(n + ';' for n in names)} }};\n"
                                      for node, names in nodes.items()))
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", lib, stubs,
                        "-Wl,-soname,libibverbs.so.1", f"-Wl,--version-script,{script}"], check=True)
        subprocess.run(["cc", "-Wall", "-Wl,-z,now", f"-DREGISTER=verbs_register_driver_{number}", "-o", exe,
                        write("program.c", PROGRAM), lib], check=True)
        need = subprocess.run(["objdump", "-p", exe], capture_output=True, text=True, check=True).stdout
        if f"IBVERBS_PRIVATE_{number}" not in need or "IBVERBS_1.18" not in need:
            return [f"the program for {number} needs no later node"]
        r = subprocess.run([urnic, "run", "--private", "--", exe], capture_output=True, text=True, check=False)
    return [] if r.returncode == 0 and r.stdout == "done\n" else [f"linked with a release of node {number}: {r}"]


def main():
    ours = symbols(sys.argv[1])
    system = sys.argv[3] if len(sys.argv) > 3 else find()
    theirs = {s for s in symbols(system) if "@@" in s or s.startswith("IBVERBS_")}
    theirs |= newer(theirs)
    bad = [f"missing: {s}" for s in sorted(theirs - ours)]
    bad += [f"too many: {s}" for s in sorted(ours - theirs) if "@" in s]
    bad += [f"shows: {s}" for s in sorted(ours - theirs) if "@" not in s and not NO_VERSION.match(s)]
    name, needed = soname(sys.argv[1])
    if name != soname(system)[0]:
        bad.append(f"SONAME {name}, theirs {soname(system)[0]}")
    if needed - {"libc.so.6"}:
        bad.append(f"needs {needed}: it can't be mounted into a container by itself")
    for number in [34] + PRIVATE:
        bad += start_newer(sys.argv[2], system, number)
    print("\n".join(bad) or f"{len(theirs)} symbols as in {system} and later releases")
    return 1 if bad else 0


def find():
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return re.search(r"libibverbs\.so\.1 .*=> (\S+)", out)[1]


if __name__ == "__main__":
    sys.exit(main())
