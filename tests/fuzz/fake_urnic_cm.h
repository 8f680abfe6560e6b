/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A liburnic for the fuzz target of the emulated rdma_cm: one device, ids that know their state,
 * and events that come when the target asks for them. It refuses the calls that liburnic refuses,
 * and stops the target when a destroyed id is used.
 */
#ifndef URNIC_TESTS_FAKE_URNIC_CM_H
#define URNIC_TESTS_FAKE_URNIC_CM_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "ucma.h"

enum fake_state {
    FAKE_IDLE,
    FAKE_RESOLVING,
    FAKE_RESOLVED,
    FAKE_ROUTING,
    FAKE_ROUTED,
    FAKE_LISTENING,
    FAKE_CONNECTED, /* asked, asking, or connected */
    FAKE_ENDED,
};

struct urnic_cm_id {
    void *context;
    enum fake_state state;
    uint16_t port;
    uint8_t remote[16];
};

#define FAKE_IDS    256u
#define FAKE_EVENTS 64u

static struct {
    struct urnic_cm_id ids[FAKE_IDS];
    unsigned live;
    struct urnic_cm_event events[FAKE_EVENTS];
    unsigned nevents;
    int fail;          /* -errno of the next calls */
    unsigned failures; /* number of failures */
    bool gone;         /* the daemon */
    unsigned devices;  /* 0..2 */
    int sock[2];
} fake = {.devices = 2, .sock = {-1, -1}};

/* The addresses of device i: 10.0.0.1 and fd00::1, 10.0.0.2 and fd00::2. */
static inline void fake_gid(uint8_t gid[16], unsigned i, bool ip4)
{
    static const uint8_t v4[13] = {[10] = 0xFF, [11] = 0xFF, [12] = 10};
    memset(gid, 0, 16);
    if (ip4)
        memcpy(gid, v4, sizeof(v4));
    else
        gid[0] = 0xFD;
    gid[15] = (uint8_t)(i + 1);
}

static inline int fake_outcome(void)
{
    if (fake.failures == 0)
        return 0;
    fake.failures--;
    return fake.fail;
}

/* An id that is alive, or the target stops. */
static inline struct urnic_cm_id *fake_live(struct urnic_cm_id *id)
{
    FUZZ_CHECK(id >= fake.ids && id < fake.ids + FAKE_IDS && id->state != FAKE_ENDED);
    return id;
}

static inline int fake_move(struct urnic_cm_id *id, enum fake_state from, enum fake_state to)
{
    int err = fake_outcome();
    if (fake_live(id)->state != from)
        return -EINVAL;
    if (err == 0)
        id->state = to;
    return err;
}

static inline struct urnic_cm_id *fake_new(void *context, enum fake_state state)
{
    for (unsigned i = 0; i < FAKE_IDS; i++) {
        if (fake.ids[i].state != FAKE_ENDED)
            continue;
        fake.ids[i] = (struct urnic_cm_id){.context = context, .state = state, .port = 1};
        fake.live++;
        return &fake.ids[i];
    }
    return NULL;
}

static inline void fake_reset(void)
{
    for (unsigned i = 0; i < FAKE_IDS; i++)
        fake.ids[i].state = FAKE_ENDED;
    fake.live = fake.nevents = fake.failures = 0;
    fake.gone = false;
    fake.devices = 2;
}

/* An event of the k-th live id, of a type that its state allows. */
static inline void fake_event(unsigned k, unsigned type, int status)
{
    struct urnic_cm_event ev = {.event = (enum urnic_cm_event_type)(type % 16), .status = status};
    struct urnic_cm_id *id = NULL;
    for (unsigned i = 0; fake.live > 0 && i < FAKE_IDS && id == NULL; i++)
        if (fake.ids[i].state != FAKE_ENDED && k-- == 0)
            id = &fake.ids[i];
    if (id == NULL || fake.nevents == FAKE_EVENTS)
        return;
    ev.id = id;
    ev.private_data_len = type;
    memset(ev.private_data, (int)type, sizeof(ev.private_data));
    switch (id->state) {
    case FAKE_RESOLVING:
        ev.event = type & 1 ? URNIC_CM_ADDR_ERROR : URNIC_CM_ADDR_RESOLVED;
        id->state = type & 1 ? FAKE_IDLE : FAKE_RESOLVED;
        break;
    case FAKE_ROUTING:
        ev.event = URNIC_CM_ROUTE_RESOLVED;
        id->state = FAKE_ROUTED;
        break;
    case FAKE_LISTENING:
        ev.event = URNIC_CM_CONNECT_REQUEST;
        ev.listen = id;
        ev.id = fake_new(id->context, FAKE_CONNECTED);
        if (ev.id == NULL)
            return;
        break;
    case FAKE_CONNECTED:
        if (ev.event < URNIC_CM_CONNECT_RESPONSE || ev.event == URNIC_CM_DEVICE_REMOVAL)
            return;
        break;
    default:
        return;
    }
    fake.events[fake.nevents++] = ev;
}

/* Forget the events of an id, NULL = of all; requests that were never got end. */
static inline void fake_forget(const struct urnic_cm_id *id)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < fake.nevents; i++) {
        struct urnic_cm_event *ev = &fake.events[i];
        bool ended = ev->id->state == FAKE_ENDED; /* a request, which comes before its events */
        if (id != NULL && !ended && ev->id != id && ev->listen != id) {
            fake.events[kept++] = *ev;
        } else if (ev->event == URNIC_CM_CONNECT_REQUEST) {
            ev->id->state = FAKE_ENDED;
            fake.live--;
        }
    }
    fake.nevents = kept;
}

/* ---- functions that the emulation calls ---- */

int urnic_get_device_list(struct urnic_device **list, int *n)
{
    int err = fake_outcome();
    *list = NULL;
    *n = 0;
    if (err < 0)
        return err;
    *list = calloc(2, sizeof(**list));
    for (unsigned i = 0; i < fake.devices; i++) {
        snprintf((*list)[i].name, sizeof((*list)[i].name), "urn%u", i);
        (*list)[i].index = i;
        (*list)[i].guid = i + 1;
    }
    *n = (int)fake.devices;
    return 0;
}

void urnic_free_device_list(struct urnic_device *list)
{
    free(list);
}

/* A context is the number of its device. */
void urnic_set_first_fd(int fd)
{
    FUZZ_CHECK(fd >= 0);
}

int urnic_open(const char *device, struct urnic_context **ctx)
{
    static uint8_t numbers[2];
    int err = fake_outcome();
    if (err == 0)
        *ctx = (struct urnic_context *)(void *)&numbers[device[3] - '0'];
    numbers[1] = 1;
    return err;
}

int urnic_async_fd(const struct urnic_context *ctx)
{
    return fake.sock[*(const uint8_t *)(const void *)ctx];
}

int urnic_close(struct urnic_context *ctx)
{
    (void)ctx;
    return 0;
}

int urnic_open_daemon(const char *device, struct urnic_context **ctx)
{
    return urnic_open(device, ctx);
}

int urnic_query_port(struct urnic_context *ctx, struct urnic_port_attr *attr)
{
    (void)ctx;
    *attr = (struct urnic_port_attr){.active_mtu = URNIC_MTU_1024, .gid_tbl_len = 8};
    return fake_outcome();
}

int urnic_query_gid_table(struct urnic_context *ctx, struct urnic_gid *gids, int n)
{
    unsigned dev = *(const uint8_t *)(const void *)ctx;
    int err = fake_outcome();
    FUZZ_CHECK(n >= 4);
    for (unsigned i = 0; i < 4; i++) {
        gids[i] =
            (struct urnic_gid){.index = i, .type = i & 1 ? URNIC_GID_ROCE_V2 : URNIC_GID_ROCE_V1};
        fake_gid(gids[i].raw, dev, i < 2);
    }
    return err < 0 ? err : 4;
}

/* Nothing ever arrives on the channel's descriptor: the target pumps by itself. */
int urnic_create_cm_channel(struct urnic_context *ctx, struct urnic_cm_channel **channel)
{
    int err = fake_outcome();
    if (err == 0)
        *channel = (struct urnic_cm_channel *)(void *)ctx;
    return err;
}

int urnic_cm_channel_fd(const struct urnic_cm_channel *channel)
{
    return fake.sock[*(const uint8_t *)(const void *)channel];
}

int urnic_get_cm_event(struct urnic_cm_channel *channel, struct urnic_cm_event *event)
{
    (void)channel;
    if (fake.gone) {
        fake_forget(NULL);
        return -ENODEV;
    }
    if (fake.nevents == 0)
        return -EAGAIN;
    *event = fake.events[0];
    memmove(fake.events, fake.events + 1, --fake.nevents * sizeof(fake.events[0]));
    return 0;
}

const char *urnic_cm_event_str(enum urnic_cm_event_type event)
{
    return event == URNIC_CM_ADDR_RESOLVED ? "address resolved" : "another event";
}

int urnic_create_id(struct urnic_cm_channel *channel, enum urnic_port_space ps, void *id_context,
                    struct urnic_cm_id **id)
{
    int err = fake_outcome();
    (void)channel;

    FUZZ_CHECK(ps == URNIC_PS_TCP || ps == URNIC_PS_UDP || ps == URNIC_PS_IB);
    if (err < 0)
        return err;
    *id = fake_new(id_context, FAKE_IDLE);
    return *id == NULL ? -ENOMEM : 0;
}

int urnic_destroy_id(struct urnic_cm_id *id)
{
    fake_live(id)->state = FAKE_ENDED;
    fake.live--;
    fake_forget(id);
    return 0;
}

void *urnic_id_context(const struct urnic_cm_id *id)
{
    return id->context;
}

void urnic_id_set_context(struct urnic_cm_id *id, void *id_context)
{
    fake_live(id)->context = id_context;
}

void urnic_id_set_srq(struct urnic_cm_id *id, bool srq)
{
    (void)srq;
    fake_live(id);
}

bool urnic_id_peer_srq(const struct urnic_cm_id *id)
{
    return ((uintptr_t)id & 64) != 0;
}

int urnic_bind_addr(struct urnic_cm_id *id, const struct sockaddr *addr)
{
    union ucma_addr a;
    FUZZ_CHECK(ucma_addr_take(&a, addr, sizeof(a)) == 0);
    fake_live(id)->port = ucma_addr_port(&a) != 0 ? ucma_addr_port(&a) : 7471;
    return fake_outcome();
}

int urnic_id_addr(struct urnic_cm_id *id, uint8_t local[16], uint16_t *local_port,
                  uint8_t remote[16], uint16_t *remote_port)
{
    fake_live(id);
    if (local != NULL)
        fake_gid(local, 0, true);
    if (local_port != NULL)
        *local_port = id->port;
    if (remote != NULL)
        memcpy(remote, id->remote, 16);
    if (remote_port != NULL)
        *remote_port = 2;
    return fake_outcome();
}

int urnic_listen(struct urnic_cm_id *id, int backlog)
{
    FUZZ_CHECK(backlog > 0);
    return fake_move(id, FAKE_IDLE, FAKE_LISTENING);
}

int urnic_listen_family(struct urnic_cm_id *id, int backlog, int family)
{
    FUZZ_CHECK(family == AF_UNSPEC || family == AF_INET || family == AF_INET6);
    return urnic_listen(id, backlog);
}

int urnic_resolve_addr(struct urnic_cm_id *id, const struct sockaddr *src,
                       const struct sockaddr *dst, int timeout_ms)
{
    union ucma_addr a;
    (void)timeout_ms;

    FUZZ_CHECK(src == NULL || ucma_addr_take(&a, src, sizeof(a)) == 0);
    FUZZ_CHECK(ucma_addr_take(&a, dst, sizeof(a)) == 0);
    ucma_addr_gid(&a, id->remote);
    return fake_move(id, FAKE_IDLE, FAKE_RESOLVING);
}

int urnic_resolve_route(struct urnic_cm_id *id, int timeout_ms)
{
    (void)timeout_ms;
    return fake_move(id, FAKE_RESOLVED, FAKE_ROUTING);
}

static inline int fake_private(const struct urnic_conn_param *p, size_t max)
{
    volatile uint8_t sum = 0;
    for (unsigned i = 0; i < p->private_data_len; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)p->private_data)[i]);
    FUZZ_CHECK(p->retry_count < 8 && p->rnr_retry_count < 8);
    return p->private_data_len > max ? -EINVAL : 0;
}

int urnic_connect(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    int err = fake_private(param, 56);
    return err < 0 ? err : fake_move(id, FAKE_ROUTED, FAKE_CONNECTED);
}

int urnic_accept(struct urnic_cm_id *id, const struct urnic_conn_param *param)
{
    int err = fake_private(param, 196);
    return err < 0 ? err : fake_move(id, FAKE_CONNECTED, FAKE_CONNECTED);
}

int urnic_establish(struct urnic_cm_id *id)
{
    return fake_move(id, FAKE_CONNECTED, FAKE_CONNECTED);
}

int urnic_disconnect(struct urnic_cm_id *id)
{
    return fake_move(id, FAKE_CONNECTED, FAKE_CONNECTED);
}

int urnic_reject(struct urnic_cm_id *id, const void *private_data, uint8_t len)
{
    const struct urnic_conn_param p = {.private_data = private_data, .private_data_len = len};
    int err = fake_private(&p, 148);
    return err < 0 ? err : fake_move(id, FAKE_CONNECTED, FAKE_CONNECTED);
}

int urnic_init_qp_attr(struct urnic_cm_id *id, struct urnic_qp_attr *attr, unsigned *mask)
{
    fake_live(id);
    FUZZ_CHECK(attr->qp_state <= URNIC_QPS_ERR);
    *mask = URNIC_QP_STATE | URNIC_QP_AV;
    return fake_outcome();
}

#endif
