/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A context's description of its device, and the traces of a context in its process.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "daemon_rig.h"
#include "unit.h"

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, 4096);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

/* The list of devices, a context and its port describe a device as the daemon does. */
START_TEST(describes_its_device)
{
    struct urnic_context *ctx;
    struct urnic_device *list;
    struct urnic_device_attr attr;
    struct urnic_port_attr port, other;
    struct urnic_gid gid;
    void *mem;
    int n;
    up();
    setenv("URNIC_SOCKET", rig.socket, 1);
    ck_assert_int_eq(urnic_get_device_list(&list, &n), 0);
    ck_assert_int_eq(n, 2);
    ck_assert_uint_ne(list[0].guid, 0);
    ck_assert_uint_ne(list[0].guid, list[1].guid);
    ck_assert_int_eq(urnic_query_device(b.ctx, &attr), 0);
    ck_assert_str_eq(attr.dev.name, "urn1");
    ck_assert_str_eq(list[1].name, "urn1");
    ck_assert_uint_eq(attr.dev.guid, list[1].guid);
    ck_assert_uint_eq(attr.dev.index, 1);
    ck_assert_uint_eq(list[1].index, 1);
    ck_assert_str_eq(attr.fw_ver, urnic_version());
    ck_assert_int_gt(strlen(attr.port_spec), 0);
    urnic_free_device_list(list);
    ck_assert_int_eq(urnic_query_port(a.ctx, &other), 0);
    ck_assert_int_eq(urnic_query_port(b.ctx, &port), 0);
    ck_assert_mem_ne(port.mac, other.mac, sizeof(port.mac));
    ck_assert_uint_eq(port.pkeys[0], 0xFFFF);
    ck_assert_int_eq(urnic_query_gid(b.ctx, 0, &gid), 0);
    ck_assert_int_eq(gid.type, URNIC_GID_ROCE_V1);
    ck_assert_int_eq(urnic_query_gid(b.ctx, 1, &gid), 0);
    ck_assert_int_eq(gid.type, URNIC_GID_ROCE_V2);
    ck_assert_int_eq(urnic_open("a device whose name is longer than names are", &ctx), -ENODEV);
    ck_assert_int_eq(urnic_alloc(a.ctx, 0, &mem), -EINVAL);
    unsetenv("URNIC_SOCKET");
    down();
}
END_TEST

/* Of the daemon's memory, in this process. */
static unsigned mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned n = 0;
    while (fgets(line, sizeof(line), f) != NULL)
        n += strstr(line, "memfd:") != NULL;
    fclose(f);
    return n;
}

static unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* A context that is closed, or that can't be opened, leaves neither descriptors nor memory behind.
 * An open context maps memory, and closes the memory's descriptor at once. */
START_TEST(leaves_nothing_open)
{
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC, .cap = {.max_send_wr = 16}};
    struct urnic_context *ctx;
    struct urnic_device *list;
    struct urnic_pd *pd;
    struct urnic_qp *qp;
    void *mem;
    int n;
    up();
    setenv("URNIC_SOCKET", rig.socket, 1);
    const unsigned mapped = mappings();
    const unsigned before = descriptors();
    ck_assert_int_eq(urnic_get_device_list(&list, &n), 0);
    urnic_free_device_list(list);
    ck_assert_int_eq(urnic_open("nobody", &ctx), -ENODEV);
    ck_assert_uint_eq(descriptors(), before);
    ck_assert_int_eq(urnic_open("urn0", &ctx), 0);
    const unsigned open = descriptors();
    ck_assert_int_eq(urnic_alloc_pd(ctx, &pd), 0);
    ck_assert_int_eq(urnic_create_cq(ctx, 16, NULL, NULL, &init.send_cq), 0);
    init.recv_cq = init.send_cq;
    ck_assert_int_eq(urnic_create_qp(pd, &init, &qp), 0);
    ck_assert_int_eq(urnic_alloc(ctx, 4096, &mem), 0);
    ck_assert_uint_eq(descriptors(), open);
    ck_assert_int_eq(urnic_free(ctx, mem), 0);
    ck_assert_int_eq(urnic_destroy_qp(qp), 0);
    ck_assert_int_eq(urnic_destroy_cq(init.send_cq), 0);
    ck_assert_int_eq(urnic_dealloc_pd(pd), 0);
    ck_assert_int_eq(urnic_close(ctx), 0);
    ck_assert_uint_eq(descriptors(), before);
    ck_assert_uint_eq(mappings(), mapped);
    unsetenv("URNIC_SOCKET");
    down();
}
END_TEST

/* A failed object takes no number, by which events could find freed memory. */
START_TEST(fails_without_a_trace)
{
    uint32_t used = 0;
    up();
    for (unsigned i = 0; i < 3; i++) {
        struct urnic_srq_attr srq_attr = {.max_sge = 1};
        struct urnic_qp_init_attr init = {
            .send_cq = a.cq, .recv_cq = a.cq, .qp_type = (enum urnic_qp_type)9};
        struct urnic_srq *srq;
        struct urnic_cq *cq;
        struct urnic_qp *qp;

        ck_assert_int_eq(urnic_create_cq(a.ctx, 1 << 30, NULL, NULL, &cq), -EINVAL);
        ck_assert_int_eq(urnic_create_srq(a.pd, &srq_attr, NULL, &srq), -EINVAL);
        ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), -EINVAL);
        if (i == 0)
            used = a.ctx->refs.used;
        ck_assert_uint_eq(a.ctx->refs.used, used);
    }
    down();
}
END_TEST

/* The granted limits are returned; here they are larger than requested. */
START_TEST(tells_what_it_grants)
{
    struct urnic_srq_attr attr = {.max_wr = 3}, granted;
    struct urnic_qp_init_attr init = {.qp_type = URNIC_QPT_RC};
    struct urnic_srq *srq;
    struct urnic_qp *qp;
    up();
    ck_assert_int_eq(urnic_create_srq(a.pd, &attr, NULL, &srq), 0);
    ck_assert_int_eq(urnic_query_srq(srq, &granted), 0);
    ck_assert_uint_ge(attr.max_wr, 3);
    ck_assert_uint_eq(attr.max_wr, granted.max_wr);
    ck_assert_uint_ge(attr.max_sge, 1);
    ck_assert_uint_eq(attr.max_sge, granted.max_sge);
    init.send_cq = init.recv_cq = a.cq;
    ck_assert_int_eq(urnic_create_qp(a.pd, &init, &qp), 0);
    ck_assert_uint_ge(init.cap.max_send_wr, 1);
    ck_assert_uint_ge(init.cap.max_recv_wr, 1);
    ck_assert_uint_ge(init.cap.max_send_sge, 1);
    ck_assert_uint_ge(init.cap.max_recv_sge, 1);
    ck_assert_int_eq(urnic_destroy_qp(qp), 0);
    ck_assert_int_eq(urnic_destroy_srq(srq), 0);
    down();
}
END_TEST

UNIT_MAIN("contexts", describes_its_device, leaves_nothing_open, fails_without_a_trace,
          tells_what_it_grants)
