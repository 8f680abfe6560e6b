/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys that are made and invalidated by work requests: memory windows and fast registrations, all
 * through liburnic and a daemon.
 */
#include <errno.h>
#include <string.h>

#include "client.h"
#include "daemon_rig.h"
#include "unit.h"

#define SIZE 65536u
#define PAGE 4096u
#define VA   0x7000000u /* where fast regions begin */

static struct rig rig;
static struct end a, b; /* a uses keys that b makes */

static void connect_again(void)
{
    struct end *const ends[] = {&a, &b};
    for (unsigned i = 0; i < 2; i++) {
        if (ends[i]->qp)
            ck_assert_int_eq(urnic_destroy_qp(ends[i]->qp), 0);
        end_qp(ends[i], URNIC_QPT_RC);
    }
    end_connect(&a, &b);
}

static void setup(void)
{
    rig_start_pair(&rig, "");
    end_open(&a, &rig, "urn0", SIZE);
    end_open(&b, &rig, "urn1", SIZE);
    connect_again();
}

static void teardown(void)
{
    end_close(&a);
    end_close(&b);
    rig_stop(&rig);
}

static void post(struct end *e, const struct urnic_send_wr *wr)
{
    ck_assert_int_eq(urnic_post_send(e->qp, wr, NULL), 0);
}

/* a writes through the key; returns the outcome. */
static void write_by(uint32_t rkey, uint64_t va, uint32_t len, enum urnic_wc_status status)
{
    ck_assert_int_eq(end_post(&a, URNIC_WR_RDMA_WRITE, 0, len, va, rkey, 77), 0);
    end_expect(&a, status, 77);
}

static void complete(struct end *e, enum urnic_wc_status status, enum urnic_wc_opcode opcode)
{
    struct urnic_wc wc;
    end_wait(e, &wc, 10000);
    ck_assert_msg(wc.status == status, "%s, not %s", urnic_wc_status_str(wc.status),
                  urnic_wc_status_str(status));
    if (status == URNIC_WC_SUCCESS)
        ck_assert_int_eq(wc.opcode, opcode);
}

static void local_invalidate(uint32_t key)
{
    post(&b, &(struct urnic_send_wr){
                 .opcode = URNIC_WR_LOCAL_INV, .send_flags = URNIC_SEND_SIGNALED, .imm_data = key});
    complete(&b, URNIC_WC_SUCCESS, URNIC_WC_LOCAL_INV);
}

/* ---- windows ---- */

static void bind(struct urnic_mw *mw, const struct urnic_mr *mr, uint64_t off, uint64_t len,
                 enum urnic_wc_status status)
{
    uint32_t key = urnic_inc_rkey(mw->rkey);
    post(&b, &(struct urnic_send_wr){.opcode = URNIC_WR_BIND_MW,
                                     .send_flags = URNIC_SEND_SIGNALED,
                                     .bind_mw = {.mw_rkey = mw->rkey,
                                                 .new_rkey = key,
                                                 .mr_lkey = mr->lkey,
                                                 .access = URNIC_ACCESS_REMOTE_WRITE,
                                                 .addr = mr->iova + off,
                                                 .length = len}});
    complete(&b, status, URNIC_WC_BIND_MW);
    if (status == URNIC_WC_SUCCESS)
        mw->rkey = key;
}

/* MW-01 MW-02 MW-05 MR-06: a window opens a part of a region that peers may not touch by itself, as
 * long as it is bound. */
START_TEST(windows)
{
    struct urnic_mr *mr;
    struct urnic_mw *mw;
    ck_assert_int_eq(
        urnic_reg_mr(b.pd, b.mem, SIZE, URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_MW_BIND, &mr), 0);
    ck_assert_int_eq(urnic_alloc_mw(b.pd, 3, &mw), -EINVAL);
    for (int type = 1; type <= 2; type++) {
        memset(b.mem, 0, SIZE);
        ck_assert_int_eq(urnic_alloc_mw(b.pd, type, &mw), 0);
        bind(mw, mr, PAGE, PAGE, URNIC_WC_SUCCESS);
        memset(a.mem, type, PAGE);
        write_by(mw->rkey, mr->iova + PAGE, PAGE, URNIC_WC_SUCCESS);
        ck_assert(b.mem[PAGE] == type && b.mem[2 * PAGE - 1] == type);
        ck_assert(b.mem[PAGE - 1] == 0 && b.mem[2 * PAGE] == 0);
        ck_assert_int_eq(urnic_dereg_mr(mr), -EBUSY);
        if (type == 1)
            bind(mw, mr, 0, 0, URNIC_WC_SUCCESS);
        else
            local_invalidate(mw->rkey);
        write_by(mw->rkey, mr->iova + PAGE, 1, URNIC_WC_REM_ACCESS_ERR);
        connect_again();
        ck_assert_int_eq(urnic_dealloc_mw(mw), 0);
    }
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
}
END_TEST

/* MW-01: a window that its owner gives back is shut. MW-03: none opens more than the region has. */
START_TEST(window_goes)
{
    struct urnic_mr *mr;
    struct urnic_mw *mw;
    ck_assert_int_eq(
        urnic_reg_mr(b.pd, b.mem, PAGE, URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_MW_BIND, &mr), 0);
    ck_assert_int_eq(urnic_alloc_mw(b.pd, 2, &mw), 0);
    bind(mw, mr, 0, PAGE + 1, URNIC_WC_MW_BIND_ERR);
    connect_again();
    bind(mw, mr, 0, PAGE, URNIC_WC_SUCCESS);
    write_by(mw->rkey, mr->iova, PAGE, URNIC_WC_SUCCESS);
    uint32_t key = mw->rkey;
    ck_assert_int_eq(urnic_dealloc_mw(mw), 0);
    write_by(key, mr->iova, PAGE, URNIC_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
}
END_TEST

/* ---- regions that are registered fast ---- */

static void reg_mr(const struct urnic_mr *mr, const struct urnic_sge *segs, int n, uint32_t key)
{
    post(&b, &(struct urnic_send_wr){
                 .opcode = URNIC_WR_REG_MR,
                 .send_flags = URNIC_SEND_SIGNALED,
                 .sg_list = segs,
                 .num_sge = n,
                 .reg_mr = {.mr = mr,
                            .iova = VA,
                            .key = key,
                            .access = URNIC_ACCESS_LOCAL_WRITE | URNIC_ACCESS_REMOTE_WRITE}});
}

static struct urnic_sge seg(uint64_t off, uint32_t len)
{
    return (struct urnic_sge){.addr = (uint64_t)(uintptr_t)b.mem + off, .length = len};
}

/* MR-08 RSP-19: pages out of order become one stretch of addresses, until one end invalidates it.
 */
START_TEST(fast_registration)
{
    struct urnic_mr *mr;
    const struct urnic_sge segs[] = {seg(8 * PAGE, PAGE), seg(2 * PAGE, PAGE)};
    ck_assert_int_eq(urnic_alloc_mr(b.pd, b.mem + PAGE, 15 * PAGE, 2, &mr), 0);
    ck_assert_int_eq(urnic_free(b.ctx, b.mem), -EBUSY);
    uint32_t key = mr->rkey;
    for (unsigned i = 0; i < 2; i++) {
        key = urnic_inc_rkey(key);
        memset(b.mem, 0, SIZE);
        for (unsigned k = 0; k < 2 * PAGE; k++)
            a.mem[k] = (uint8_t)(1 + i + k / 32);
        reg_mr(mr, segs, 2, key);
        complete(&b, URNIC_WC_SUCCESS, URNIC_WC_REG_MR);
        write_by(key, VA, 2 * PAGE, URNIC_WC_SUCCESS);
        ck_assert(memcmp(b.mem + 8 * PAGE, a.mem, PAGE) == 0);
        ck_assert(memcmp(b.mem + 2 * PAGE, a.mem + PAGE, PAGE) == 0);
        ck_assert(b.mem[8 * PAGE - 1] == 0 && b.mem[9 * PAGE] == 0 && b.mem[3 * PAGE] == 0);
        if (i == 0) {
            local_invalidate(key);
            continue;
        }
        ck_assert_int_eq(end_post_recv(&b, 0, PAGE, 5), 0);
        const struct urnic_send_wr inv = {
            .opcode = URNIC_WR_SEND_WITH_INV, .send_flags = URNIC_SEND_SIGNALED, .imm_data = key};
        post(&a, &inv);
        complete(&a, URNIC_WC_SUCCESS, URNIC_WC_SEND);
        struct urnic_wc wc;
        end_wait(&b, &wc, 10000);
        ck_assert(wc.wc_flags & URNIC_WC_WITH_INV);
        ck_assert_uint_eq(wc.imm_data, key);
    }
    write_by(key, VA, 1, URNIC_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
}
END_TEST

/* MR-08 SHM-03: nothing outside of the region's memory, no more pieces than its size, and not
 * twice; with any numbers. */
START_TEST(fast_registration_refused)
{
    static const struct {
        const char *what;
        uint64_t off;
        uint32_t len;
        int n;
    } cases[] = {
        {"begins before it", 0, PAGE, 1},         {"begins after it", 4 * PAGE, PAGE, 1},
        {"ends after it", 3 * PAGE, PAGE + 1, 1}, {"wraps around", UINT64_MAX - 16, PAGE, 1},
        {"far away", 1ull << 63, UINT32_MAX, 1},  {"empty piece", PAGE, 0, 1},
        {"three pieces", PAGE, PAGE, 3},
    };
    struct urnic_mr *mr;
    struct urnic_sge one = seg(PAGE, PAGE);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, b.mem, PAGE, 0, &mr), -EINVAL);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, b.mem, PAGE, 17, &mr), -EINVAL);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, b.mem, 0, 1, &mr), -EINVAL);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, &one, sizeof(one), 1, &mr), -EOPNOTSUPP);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, b.mem + PAGE, 3 * PAGE, 2, &mr), 0);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct urnic_sge segs[3];
        for (int k = 0; k < 3; k++)
            segs[k] = seg(cases[i].off, cases[i].len);
        reg_mr(mr, segs, cases[i].n, urnic_inc_rkey(mr->rkey));
        complete(&b, URNIC_WC_LOC_QP_OP_ERR, 0);
        connect_again();
    }
    reg_mr(mr, &one, 1, urnic_inc_rkey(mr->rkey));
    complete(&b, URNIC_WC_SUCCESS, URNIC_WC_REG_MR);
    reg_mr(mr, &one, 1, urnic_inc_rkey(mr->rkey));
    complete(&b, URNIC_WC_LOC_QP_OP_ERR, 0);
    connect_again();
    reg_mr(b.mr, &one, 1, urnic_inc_rkey(b.mr->rkey)); /* MR-09: an ordinary region */
    complete(&b, URNIC_WC_LOC_QP_OP_ERR, 0);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
}
END_TEST

/* MR-08 SHM-07: the region, and the memory below it, may be gone before a request that was posted
 * for it is looked at. */
START_TEST(fast_registration_too_late)
{
    struct urnic_mr *mr;
    void *mem;
    ck_assert_int_eq(urnic_alloc(b.ctx, SIZE, &mem), 0);
    ck_assert_int_eq(urnic_alloc_mr(b.pd, mem, SIZE, 1, &mr), 0);
    uint32_t key = urnic_inc_rkey(mr->rkey);
    struct urnic_sge one = {.addr = (uint64_t)(uintptr_t)mem, .length = PAGE};
    ck_assert_int_eq(end_post(&b, URNIC_WR_SEND, 0, 8, 0, 0, 1),
                     0); /* waits: a has no receive yet */
    reg_mr(mr, &one, 1, key);
    ck_assert_int_eq(urnic_dereg_mr(mr), 0);
    ck_assert_int_eq(urnic_free(b.ctx, mem), 0);
    ck_assert_int_eq(end_post_recv(&a, 0, PAGE, 2), 0);
    end_expect(&b, URNIC_WC_SUCCESS, 1);
    complete(&b, URNIC_WC_LOC_QP_OP_ERR, 0);
    ck_assert(rig_alive(&rig));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("keys");
    TCase *t = tcase_create("keys");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, windows);
    tcase_add_test(t, window_goes);
    tcase_add_test(t, fast_registration);
    tcase_add_test(t, fast_registration_refused);
    tcase_add_test(t, fast_registration_too_late);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return unit_run(suite());
}
