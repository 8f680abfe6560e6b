/* SPDX-License-Identifier: BSD-3-Clause
 *
 * timestamps: completions of extended CQs carry the device's clock and the time of day, both
 * between what these clocks say before a message and after it, in the order of the completions; the
 * device says how to read them; CQs and QPs in parent domains work as others do. */
#include "vt.h"

#define MESSAGES 50
#define BURSTS   20

static uint64_t ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* The device's clock by ibv_query_rt_values_ex, in the unit of its completions. */
static uint64_t raw_clock(struct ibv_context *ctx)
{
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    OK0(ibv_query_rt_values_ex(ctx, &v));
    WANT(v.comp_mask == IBV_VALUES_MASK_RAW_CLOCK, "ibv_query_rt_values_ex gave 0x%x", v.comp_mask);
    return ns(&v.raw_clock);
}

static uint64_t time_of_day(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ns(&t);
}

static struct ibv_pd *parent_domain(struct ibv_context *ctx, struct ibv_pd *pd)
{
    struct ibv_td_init_attr ta = {0};
    struct ibv_td *td = ibv_alloc_td(ctx, &ta);
    WANT(td, "ibv_alloc_td: errno %d", errno);
    struct ibv_parent_domain_init_attr pa = {.pd = pd, .td = td};
    struct ibv_pd *p = ibv_alloc_parent_domain(ctx, &pa);
    WANT(p, "ibv_alloc_parent_domain: errno %d", errno);
    return p;
}

static struct ibv_cq_ex *make(struct ibv_context *ctx, struct ibv_pd *parent)
{
    struct ibv_cq_init_attr_ex ia = {.cqe = 256,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS |
                                                 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
                                     .comp_mask = parent ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
                                     .parent_domain = parent};
    struct ibv_cq_ex *x = ibv_create_cq_ex(ctx, &ia);
    WANT(x, "ibv_create_cq_ex with timestamps: errno %d (%s)", errno, strerror(errno));
    return x;
}

struct seen {
    uint64_t device, day; /* times of the last completion */
};

/* The next completion; its times lie between those taken before and now. */
static void one(struct ibv_cq_ex *x, struct ibv_context *ctx, const char *what, uint64_t id,
                uint64_t device, uint64_t day, struct seen *last)
{
    struct ibv_poll_cq_attr pa = {0};
    uint64_t end = vt_ms() + 5000;
    int r;
    while ((r = ibv_start_poll(x, &pa)) == ENOENT && vt_ms() < end)
        sched_yield();
    WANT(r == 0, "%s: ibv_start_poll gave %d", what, r);
    WANT(x->wr_id == id && x->status == IBV_WC_SUCCESS, "%s: wr_id %llu status %d", what,
         (unsigned long long)x->wr_id, x->status);
    uint64_t ts = ibv_wc_read_completion_ts(x);
    uint64_t wall = ibv_wc_read_completion_wallclock_ns(x);
    ibv_end_poll(x);
    uint64_t device_now = raw_clock(ctx), day_now = time_of_day();
    WANT(ts >= device && ts <= device_now, "%s: completed at %llu, between %llu and %llu", what,
         (unsigned long long)ts, (unsigned long long)device, (unsigned long long)device_now);
    /* the two clocks are read one after the other, and one of them is slewed */
    WANT(wall + 1000000 >= day && wall <= day_now + 1000000,
         "%s: time of day %llu, between %llu and %llu", what, (unsigned long long)wall,
         (unsigned long long)day, (unsigned long long)day_now);
    WANT(ts >= last->device && wall + 1000000 >= last->day, "%s: earlier than the one before",
         what);
    *last = (struct seen){ts, wall};
}

/* Many completions of one burst: none is earlier than the one before, by either clock. */
static void burst(struct vt_end *a, struct vt_end *b, struct ibv_cq_ex *x)
{
    struct ibv_poll_cq_attr pa = {0};
    struct seen last = {0};
    uint64_t end = vt_ms() + 5000;
    for (int i = 0; i < MESSAGES; i++)
        OK0(vt_post(a, IBV_WR_RDMA_WRITE, i, a->buf, 64, IBV_SEND_SIGNALED, (uintptr_t)b->buf,
                    b->mr->rkey, 0));
    for (int i = 0; i < MESSAGES;) {
        int r = ibv_start_poll(x, &pa);
        WANT(vt_ms() < end, "the burst: %d of %d completions", i, MESSAGES);
        if (r == ENOENT)
            continue;
        for (; r == 0; r = ibv_next_poll(x), i++) {
            struct seen s = {ibv_wc_read_completion_ts(x), ibv_wc_read_completion_wallclock_ns(x)};
            WANT(s.device >= last.device && s.day >= last.day, "the burst: %d is earlier than %d",
                 i, i - 1);
            last = s;
        }
        ibv_end_poll(x);
    }
}

int main(int argc, char **argv)
{
    vt_start(argc, argv, "timestamps");
    struct ibv_device_attr_ex attr;
    OK0(ibv_query_device_ex(vt.ctx[0], NULL, &attr));
    if (!attr.completion_timestamp_mask)
        vt_pass("not offered");
    WANT(attr.completion_timestamp_mask == UINT64_MAX && attr.hca_core_clock == 1000000,
         "mask 0x%llx, clock %llu kHz: what ibv_query_rt_values_ex says would be in another unit",
         (unsigned long long)attr.completion_timestamp_mask,
         (unsigned long long)attr.hca_core_clock);
    struct vt_end a, b;
    struct vt_cfg c = VT_RC;
    struct ibv_pd *pd[2];
    struct ibv_cq_ex *x[2];
    for (int side = 0; side < 2; side++) {
        pd[side] = ibv_alloc_pd(vt.ctx[side]);
        struct ibv_pd *parent = parent_domain(vt.ctx[side], pd[side]);
        x[side] = make(vt.ctx[side], side ? parent : NULL);
        c.pd = parent;
        c.scq = c.rcq = ibv_cq_ex_to_cq(x[side]);
        vt_end(side ? &b : &a, side, &c);
    }
    vt_join(&a, &b);
    /* a domain in use can't go */
    WANT(ibv_dealloc_pd(pd[0]) == EBUSY, "a domain with a parent domain on it was freed");
    struct seen last[2] = {{0}};
    for (int i = 0; i < MESSAGES; i++) {
        uint64_t device[2] = {raw_clock(vt.ctx[0]), raw_clock(vt.ctx[1])}, day = time_of_day();
        OK0(vt_recv(&b, i, b.buf, 64));
        OK0(vt_post(&a, IBV_WR_SEND, i, a.buf, 64, IBV_SEND_SIGNALED, 0, 0, 0));
        one(x[0], vt.ctx[0], "SEND", i, device[0], day, &last[0]);
        one(x[1], vt.ctx[1], "receive", i, device[1], day, &last[1]);
    }
    for (int i = 0; i < BURSTS; i++)
        burst(&a, &b, x[0]);
    /* a completion that waits keeps its time */
    uint64_t device = raw_clock(vt.ctx[0]), day = time_of_day();
    OK0(vt_post(&a, IBV_WR_RDMA_WRITE, 99, a.buf, 64, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
                b.mr->rkey, 0));
    vt_sleep(300);
    one(x[0], vt.ctx[0], "WRITE", 99, device, day, &last[0]);
    WANT(last[0].device < device + 250000000u && last[0].day < day + 250000000u,
         "completed %llu ns after it was posted, and polled after 300 ms",
         (unsigned long long)(last[0].device - device));
    /* unknown flags */
    struct ibv_cq_init_attr_ex ia = {.cqe = 16, .wc_flags = 1ull << 40};
    WANT(!ibv_create_cq_ex(vt.ctx[0], &ia) && errno == EOPNOTSUPP, "an unknown flag: errno %d",
         errno);
    vt_pass(NULL);
}
