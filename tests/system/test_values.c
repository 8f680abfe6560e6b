/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SEC-25: a number is checked before it is narrowed. One that is too large by 2^8, 2^16, 2^24 or
 * 2^31 mustn't be accepted as its lower bits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client_cm.h"
#include "daemon_rig.h"
#include "ipc.h"
#include "unit.h"

#define SIZE (1u << 16)
#define PORT 4803

static struct rig rig;
static struct end a, b;

static void up(void)
{
    rig_open_pair(&rig, "", &a, &b, SIZE);
}

static void down(void)
{
    rig_close_pair(&rig, &a, &b);
}

/* Objects made by raw requests, which liburnic doesn't know, end with the client. */
static void down_with_all(void)
{
    rig_stop(&rig);
}

/* ---- one field too large ---- */

struct field {
    const char *name;
    size_t off, size;
    unsigned from; /* added number: 2^8, 2^16, 2^24, 2^31, from this one on */
};
#define F(type, field, from)                                                                       \
    {                                                                                              \
#type "." #field, offsetof(struct type, field), sizeof(((struct type *)0)->field), from    \
    }

static int asks(const void *msg, size_t len)
{
    _Alignas(8) uint8_t copy[1024], reply[1024];
    memcpy(copy, msg, len);
    return (int)client_conn_raw(&a.ctx->conn, copy, len, NULL, 0, reply, sizeof(reply), NULL, NULL);
}

static int tool_asks(const void *msg, size_t len)
{
    struct ipc_hdr reply;
    return rig_request(&rig, msg, len, -1, &reply, sizeof(reply));
}

/* All of them are refused, and the message itself, in the end, is not. */
static void refused(int (*ask)(const void *, size_t), const void *msg, size_t len,
                    const struct field *fields, unsigned n)
{
    static const unsigned bits[] = {8, 16, 24, 31};
    for (unsigned i = 0; i < n; i++) {
        const struct field *f = &fields[i];
        for (unsigned k = 0; k < 4; k++) {
            uint8_t copy[1024];
            uint32_t v = 0;
            if (bits[k] < f->from || bits[k] >= 8 * f->size)
                continue;
            memcpy(copy, msg, len);
            memcpy(&v, copy + f->off, f->size);
            v += 1u << bits[k];
            memcpy(copy + f->off, &v, f->size);
            int rc = ask(copy, len);
            ck_assert_msg(rc < 0, "%s = 0x%x is taken", f->name, v);
        }
    }
    int rc = ask(msg, len);
    ck_assert_msg(rc >= 0, "%s: %s", fields[0].name, strerror(-rc));
}
#define REFUSED(ask, m, fields)                                                                    \
    refused(ask, &(m), sizeof(m), fields, sizeof(fields) / sizeof((fields)[0]))

/* ---- requests ---- */

START_TEST(objects)
{
    static const struct field cq_fields[] = {
        F(ipc_cq_create, cqe, 24), F(ipc_cq_create, channel, 8), F(ipc_cq_create, vector, 8)};
    static const struct field srq_fields[] = {
        F(ipc_srq_create, pd, 8), F(ipc_srq_create, max_wr, 16), F(ipc_srq_create, max_sge, 8)};
    static const struct field qp_fields[] = {
        F(ipc_qp_create, pd, 8),           F(ipc_qp_create, type, 8),
        F(ipc_qp_create, send_cq, 8),      F(ipc_qp_create, recv_cq, 8),
        F(ipc_qp_create, srq, 8),          F(ipc_qp_create, max_send_wr, 16),
        F(ipc_qp_create, max_recv_wr, 16), F(ipc_qp_create, max_send_sge, 8),
        F(ipc_qp_create, max_recv_sge, 8), F(ipc_qp_create, max_inline, 16),
        F(ipc_qp_create, cm_id, 8),
    };
    /* bits 20 to 29 of access are hints, which are taken and not followed */
    static const struct field mr_fields[] = {F(ipc_mr_reg, pd, 8), F(ipc_mr_reg, kind, 8),
                                             F(ipc_mr_reg, obj, 8), F(ipc_mr_reg, access, 31)};
    static const struct field fr_fields[] = {F(ipc_mr_alloc, pd, 8), F(ipc_mr_alloc, obj, 8),
                                             F(ipc_mr_alloc, max_segs, 8)};
    static const struct field mw_fields[] = {F(ipc_mw_alloc, pd, 8), F(ipc_mw_alloc, mw_type, 8)};
    static const struct field slab_fields[] = {F(ipc_slab_alloc, flags, 8)};
    static const struct field handle_fields[] = {F(ipc_handle, handle, 8)};

    up();
    end_qp(&a, URNIC_QPT_RC);
    const uint32_t pd = a.pd->handle, cq = a.cq->handle;
    const struct client_slab *slab = a.ctx->slabs;
    while (!slab->data)
        slab = slab->next;
    const struct ipc_cq_create cq_create = {.hdr.type = IPC_CQ_CREATE, .cqe = 1};
    REFUSED(asks, cq_create, cq_fields);
    const struct ipc_srq_create srq = {
        .hdr.type = IPC_SRQ_CREATE, .pd = pd, .max_wr = 1, .max_sge = 1};
    REFUSED(asks, srq, srq_fields);
    const struct ipc_qp_create qp = {
        .hdr.type = IPC_QP_CREATE, .pd = pd, .type = URNIC_QPT_RC, .send_cq = cq, .recv_cq = cq};
    REFUSED(asks, qp, qp_fields);
    const struct ipc_mr_reg mr = {.hdr.type = IPC_MR_REG,
                                  .pd = pd,
                                  .kind = IPC_MR_SLAB,
                                  .obj = slab->number,
                                  .access = 1,
                                  .len = 64};
    REFUSED(asks, mr, mr_fields);
    const struct ipc_mr_alloc fr = {
        .hdr.type = IPC_MR_ALLOC, .pd = pd, .obj = slab->number, .max_segs = 1, .len = 64};
    REFUSED(asks, fr, fr_fields);
    const struct ipc_mw_alloc mw = {.hdr.type = IPC_MW_ALLOC, .pd = pd, .mw_type = 1};
    REFUSED(asks, mw, mw_fields);
    const struct ipc_slab_alloc more = {.hdr.type = IPC_SLAB_ALLOC, .size = 4096};
    REFUSED(asks, more, slab_fields);
    const struct ipc_handle query = {.hdr.type = IPC_QP_QUERY, .handle = a.qp->handle};
    REFUSED(asks, query, handle_fields);
    down_with_all();
}
END_TEST

START_TEST(states)
{
    static const struct field init[] = {F(ipc_qp_modify, qp, 8), F(ipc_qp_modify, attr.state, 8),
                                        F(ipc_qp_modify, attr.access_flags, 16),
                                        F(ipc_qp_modify, attr.pkey_index, 8)};
    static const struct field rtr[] = {
        F(ipc_qp_modify, attr.state, 8), F(ipc_qp_modify, attr.dest_qpn, 24),
        F(ipc_qp_modify, attr.rq_psn, 24), F(ipc_qp_modify, attr.av.sgid_index, 8),
        F(ipc_qp_modify, attr.av.flow_label, 24)};
    static const struct field rts[] = {F(ipc_qp_modify, attr.state, 8),
                                       F(ipc_qp_modify, attr.cur_state, 8),
                                       F(ipc_qp_modify, attr.sq_psn, 24)};
    struct ipc_qp_modify m = {.hdr.type = IPC_QP_MODIFY, .attr = {.state = 1, .port = 1}};
    up();
    end_qp(&a, URNIC_QPT_RC);
    m.qp = a.qp->handle;
    m.mask = URNIC_QP_STATE | URNIC_QP_PKEY_INDEX | URNIC_QP_PORT | URNIC_QP_ACCESS_FLAGS;
    REFUSED(asks, m, init);
    m.mask = URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU | URNIC_QP_DEST_QPN |
             URNIC_QP_RQ_PSN | URNIC_QP_MAX_DEST_RD_ATOMIC | URNIC_QP_MIN_RNR_TIMER;
    m.attr = (struct ipc_qp_attr){.state = 2, .path_mtu = 3, .dest_qpn = 77, .rq_psn = 5};
    m.attr.av = (struct ipc_av){.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    REFUSED(asks, m, rtr);
    m.mask = URNIC_QP_STATE | URNIC_QP_CUR_STATE | URNIC_QP_SQ_PSN | URNIC_QP_TIMEOUT |
             URNIC_QP_RETRY_CNT | URNIC_QP_RNR_RETRY | URNIC_QP_MAX_QP_RD_ATOMIC;
    m.attr = (struct ipc_qp_attr){.state = 3, .cur_state = 2, .sq_psn = 5};
    REFUSED(asks, m, rts);
    down();
}
END_TEST

START_TEST(connections)
{
    static const struct field create[] = {F(ipc_cm_id_create, channel, 8),
                                          F(ipc_cm_id_create, ps, 16)};
    static const struct field resolve[] = {F(ipc_cm_addr, channel, 8), F(ipc_cm_addr, ps, 16)};
    static const struct field conn[] = {F(ipc_cm_conn, id, 8), F(ipc_cm_conn, param.qpn, 24),
                                        F(ipc_cm_conn, param.starting_psn, 24),
                                        F(ipc_cm_conn, channel, 8)};
    static const struct field reject[] = {F(ipc_cm_conn, id, 8), F(ipc_cm_conn, reason, 16)};
    struct ipc_cm_conn m = {.hdr.type = IPC_CM_CONNECT, .param.starting_psn = 1};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct urnic_cm_id *listener, *active, *passive;
    struct urnic_cm_channel *ch;
    up();
    ck_assert_int_eq(urnic_create_cm_channel(a.ctx, &ch), 0);
    const struct ipc_cm_id_create id = {
        .hdr.type = IPC_CM_ID_CREATE, .channel = ch->base.handle, .ps = IPC_PS_TCP};
    REFUSED(asks, id, create);
    const struct ipc_cm_addr addr = {.hdr.type = IPC_CM_RESOLVE_ADDR,
                                     .dst.ip = {[10] = 0xFF, 0xFF, 10, 0, 0, 2},
                                     .channel = ch->base.handle,
                                     .ps = IPC_PS_TCP};
    REFUSED(asks, addr, resolve);

    /* To itself: both halves of a connection by one client, once rejected and once accepted. */
    ck_assert_int_eq(urnic_create_id(ch, URNIC_PS_TCP, NULL, &listener), 0);
    ck_assert_int_eq(urnic_bind_addr(listener, (struct sockaddr *)&at), 0);
    ck_assert_int_eq(urnic_listen(listener, 0), 0);
    inet_pton(AF_INET, "10.0.0.1", &at.sin_addr);
    end_qp(&a, URNIC_QPT_RC);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(urnic_create_id(ch, URNIC_PS_TCP, NULL, &active), 0);
        ck_assert_int_eq(urnic_resolve(active, NULL, (struct sockaddr *)&at, 5000), 0);
        await_cm(ch, URNIC_CM_ROUTE_RESOLVED);
        m.hdr.type = IPC_CM_CONNECT;
        m.id = active->handle;
        m.param.qpn = urnic_qp_num(a.qp);
        refused(asks, &m, sizeof(m), conn, 3);
        passive = await_cm(ch, URNIC_CM_CONNECT_REQUEST).id;
        m.id = passive->handle;
        if (i == 0) {
            m.hdr.type = IPC_CM_REJECT;
            m.reason = 29;
            REFUSED(asks, m, reject);
            ck_assert_int_eq(await_cm(ch, URNIC_CM_REJECTED).status, 29);
        } else {
            m.hdr.type = IPC_CM_ACCEPT;
            m.channel = ch->base.handle;
            m.ref = passive->obj.ref;
            REFUSED(asks, m, conn);
            await_cm(ch, URNIC_CM_CONNECT_RESPONSE);
        }
        ck_assert_int_eq(urnic_destroy_id(passive), 0);
        ck_assert_int_eq(urnic_destroy_id(active), 0);
    }
    down_with_all();
}
END_TEST

/* ---- tools ---- */

START_TEST(steering)
{
    static const struct field addr_fields[] = {F(ipc_addr_admin, prefix_len, 8)};
    static const struct field history_fields[] = {F(ipc_qp_filter, qpn, 24)};
    static const struct field link_fields[] = {
        F(ipc_link_admin, loss_ppm, 24), F(ipc_link_admin, reorder_ppm, 24),
        F(ipc_link_admin, duplicate_ppm, 24), F(ipc_link_admin, corrupt_ppm, 24),
        F(ipc_link_admin, ecn_ppm, 24)};
    const struct ipc_addr_admin addr = {.hdr.type = IPC_ADDR_ADD,
                                        .device = "urn0",
                                        .ip = {[10] = 0xFF, 0xFF, 10, 1, 0, 1},
                                        .prefix_len = 24};
    const struct ipc_link_admin link = {.hdr.type = IPC_LINK_SET,
                                        .device = "urn0",
                                        .mask = IPC_LINK_LOSS | IPC_LINK_REORDER |
                                                IPC_LINK_DUPLICATE | IPC_LINK_CORRUPT |
                                                IPC_LINK_ECN};
    up();
    end_qp(&a, URNIC_QPT_RC);
    REFUSED(tool_asks, addr, addr_fields);
    REFUSED(tool_asks, link, link_fields);
    const struct ipc_qp_filter history = {
        .hdr.type = IPC_QP_HISTORY, .device = "urn0", .qpn = urnic_qp_num(a.qp)};
    REFUSED(tool_asks, history, history_fields);
    down();
}
END_TEST

static int says(const char *json)
{
    static _Alignas(8) uint8_t buf[sizeof(struct ipc_text) + 256];
    struct ipc_text *text = (void *)buf;
    size_t len = strlen(json);
    *text = (struct ipc_text){.hdr.type = IPC_ADMIN, .len = (uint32_t)len};
    memcpy(text->text, json, len);
    return tool_asks(text, sizeof(*text) + len);
}

/* CC-25: an invalid queue pair number doesn't select the whole device. */
START_TEST(congestion_of_one)
{
    static const char *const qpn[] = {
        "4294967296", "-1", "1.5", "\"0x11\"", "null", "true", "16777216",
    };
    char json[128];
    up();
    end_qp(&a, URNIC_QPT_RC);
    for (unsigned i = 0; i < sizeof(qpn) / sizeof(qpn[0]); i++) {
        snprintf(json, sizeof(json),
                 "{\"cmd\":\"cc\",\"device\":\"urn0\",\"set\":\"fixed,rate=1M\",\"qpn\":%s}",
                 qpn[i]);
        ck_assert_msg(says(json) < 0, "qpn %s is taken", qpn[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(json, sizeof(json),
                 "{\"cmd\":\"cc\",\"device\":\"urn0\",\"set\":\"fixed,rate=1M\",\"qpn\":%llu}",
                 ((unsigned long long)i << 32) + urnic_qp_num(a.qp));
        ck_assert_int_eq(says(json) < 0, i == 1);
    }
    down();
}
END_TEST

/* ---- liburnic ---- */

START_TEST(verbs)
{
    static const unsigned more[] = {1u << 8, 1u << 16, 1u << 24};
    const unsigned mask = URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU | URNIC_QP_DEST_QPN |
                          URNIC_QP_RQ_PSN | URNIC_QP_MAX_DEST_RD_ATOMIC | URNIC_QP_MIN_RNR_TIMER;
    struct urnic_qp_attr init = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
    struct urnic_qp_attr rtr = {.qp_state = URNIC_QPS_RTR, .dest_qp_num = 77};
    struct urnic_sge sge = {(uintptr_t)a.mem, 8, 0};
    struct urnic_mw *mw;
    up();
    end_qp(&a, URNIC_QPT_RC);
    end_qp(&b, URNIC_QPT_RC);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &init,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    rtr.ah_attr = (struct urnic_ah_attr){.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    for (unsigned i = 0; i < 3; i++) {
        rtr.path_mtu = (enum urnic_mtu)(URNIC_MTU_1024 + more[i]);
        ck_assert_msg(urnic_modify_qp(a.qp, &rtr, mask) < 0, "path_mtu 0x%x", rtr.path_mtu);
        ck_assert_int_lt(urnic_alloc_mw(a.pd, (int)(1 + more[i]), &mw), 0);
    }
    rtr.path_mtu = URNIC_MTU_1024;
    ck_assert_int_eq(urnic_modify_qp(a.qp, &rtr, mask), 0);
    ck_assert_int_eq(urnic_destroy_qp(a.qp), 0);
    end_qp(&a, URNIC_QPT_RC);
    end_connect(&a, &b);
    for (unsigned i = 0; i < 3; i++) {
        const struct urnic_send_wr wr[] = {
            {.opcode = (enum urnic_wr_opcode)(URNIC_WR_RDMA_WRITE + more[i])},
            {.opcode = URNIC_WR_RDMA_WRITE, .send_flags = URNIC_SEND_SIGNALED + more[i]},
            {.opcode = URNIC_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = (int)more[i]},
        };
        for (unsigned k = 0; k < 3; k++)
            ck_assert_int_eq(urnic_post_send(a.qp, &wr[k], NULL), -EINVAL);
        const struct urnic_recv_wr recv = {.sg_list = &sge, .num_sge = (int)more[i]};
        ck_assert_int_eq(urnic_post_recv(a.qp, &recv, NULL), -EINVAL);
    }
    down();
}
END_TEST

/* No host has one of these addresses, and no neighbour is asked for them. */
START_TEST(addresses_of_nobody)
{
    static const struct urnic_ah_attr nobody[] = {
        {.dgid = {0}, .sgid_index = 1},
        {.dgid = {[10] = 0xFF, 0xFF}, .sgid_index = 3},
        {.dgid = {[10] = 0xFF, 0xFF, 0, 0, 0, 1}, .sgid_index = 3},
        {.dgid = {[10] = 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, .sgid_index = 3},
    };
    const struct urnic_ah_attr group = {.dgid = {[10] = 0xFF, 0xFF, 239, 1, 2, 3}, .sgid_index = 3};
    struct urnic_qp_attr rtr = {.qp_state = URNIC_QPS_INIT, .port_num = 1};
    struct urnic_ah *ah;
    up();
    end_qp(&a, URNIC_QPT_UC);
    ck_assert_int_eq(urnic_modify_qp(a.qp, &rtr,
                                     URNIC_QP_STATE | URNIC_QP_PORT | URNIC_QP_PKEY_INDEX |
                                         URNIC_QP_ACCESS_FLAGS),
                     0);
    rtr = (struct urnic_qp_attr){
        .qp_state = URNIC_QPS_RTR, .path_mtu = URNIC_MTU_1024, .dest_qp_num = 2};
    for (unsigned i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
        ck_assert_int_eq(urnic_create_ah(a.pd, &nobody[i], &ah), -EINVAL);
        rtr.ah_attr = nobody[i];
        ck_assert_int_eq(urnic_modify_qp(a.qp, &rtr,
                                         URNIC_QP_STATE | URNIC_QP_AV | URNIC_QP_PATH_MTU |
                                             URNIC_QP_DEST_QPN | URNIC_QP_RQ_PSN),
                         -EINVAL);
    }
    ck_assert_int_eq(urnic_create_ah(a.pd, &group, &ah), 0);
    ck_assert_int_eq(urnic_destroy_ah(ah), 0);
    down();
}
END_TEST

/* Addresses have fields of 4, 20 and 24 bits, which no type of C has. */
START_TEST(addresses)
{
    const struct urnic_ah_attr av = {.dgid = {[10] = 0xFF, 0xFF, 10, 0, 0, 2}, .sgid_index = 3};
    struct urnic_ah_attr label = av, sl = av;
    struct urnic_sge sge = {0};
    struct urnic_ah *ah;
    struct urnic_wc wc;
    up();
    sge = (struct urnic_sge){(uintptr_t)a.mem, 8, a.mr->lkey};
    end_datagrams(&a);
    for (label.flow_label = 1u << 20; label.flow_label != 0; label.flow_label <<= 1)
        ck_assert_int_eq(urnic_create_ah(a.pd, &label, &ah), -EINVAL);
    for (sl.sl = 16; sl.sl != 0; sl.sl = (uint8_t)(sl.sl << 1))
        ck_assert_int_eq(urnic_create_ah(a.pd, &sl, &ah), -EINVAL);
    label.flow_label = (1u << 20) - 1;
    label.sl = 15;
    ck_assert_int_eq(urnic_create_ah(a.pd, &label, &ah), 0);
    struct urnic_send_wr wr = {.wr_id = 5,
                               .opcode = URNIC_WR_SEND,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .send_flags = URNIC_SEND_SIGNALED,
                               .ud = {.ah = ah, .remote_qkey = 0x11}};
    for (wr.ud.remote_qpn = 1u << 24; wr.ud.remote_qpn != 0; wr.ud.remote_qpn <<= 1)
        ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), -EINVAL);
    wr.ud.remote_qpn = 0xFFFFFE;
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    end_wait(&a, &wc, 5000);
    ck_assert_int_eq(wc.status, URNIC_WC_SUCCESS);
    /* The daemon checks, too: a request that liburnic lets pass completes with an error. */
    ah->av.flow_label = 1u << 20;
    ck_assert_int_eq(urnic_post_send(a.qp, &wr, NULL), 0);
    end_expect(&a, URNIC_WC_LOC_QP_OP_ERR, 5);
    ck_assert_int_eq(urnic_destroy_ah(ah), 0);
    down();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("values");
    TCase *t = tcase_create("values");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, objects);
    tcase_add_test(t, states);
    tcase_add_test(t, connections);
    tcase_add_test(t, steering);
    tcase_add_test(t, congestion_of_one);
    tcase_add_test(t, verbs);
    tcase_add_test(t, addresses);
    tcase_add_test(t, addresses_of_nobody);
    suite_add_tcase(s, t);
    return unit_run(s);
}
