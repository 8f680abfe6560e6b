/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands that programs write to the descriptor, with the kernel's checks, in its order and
 * with its errno. Answers go to the address in the command, in the program's own memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"
#include "ucma.h"

#define BACKLOG_MAX     1024
#define NUDGE_NS        4000000
#define ACK_TIMEOUT_MAX 31 /* 5 bits */

/* A command under way. */
struct cmd {
    struct ucma_file *file;
    int fd;
    uint64_t in; /* address of its octets in the program's memory */
    uint16_t in_len, out_len;
    bool blocks;   /* the descriptor waits for events; only for GET_EVENT */
    char text[96]; /* its text for a trace */
};

/* Set the command's text for a trace. */
static void says(struct cmd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void says(struct cmd *c, const char *format, ...)
{
    if (!uv_tracing())
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(c->text, sizeof(c->text), format, args);
    va_end(args);
}

/* Copy the command's octets into a structure; at least `need` must be present. */
static int take(const struct cmd *c, void *to, size_t size, size_t need)
{
    if (c->in_len < need)
        return -EINVAL;
    memset(to, 0, size);
    return ucma_copy_in(to, c->in, c->in_len < size ? c->in_len : size);
}

/* Answer with the first octets of a structure; the program must have room for at least `need`. */
static int answer(const struct cmd *c, uint64_t to, const void *from, size_t size, size_t need)
{
    if (c->out_len < need)
        return -ENOSPC;
    return ucma_copy_out(to, from, c->out_len < size ? c->out_len : size);
}

#define TAKE(c, s)          take(c, &(s), sizeof(s), sizeof(s))
#define ANSWER(c, to, resp) answer(c, to, &(resp), sizeof(resp), sizeof(resp))

/* ---- ids ---- */

static int cmd_create_id(struct cmd *c)
{
    struct rdma_ucm_create_id in;
    int err = TAKE(c, in);
    if (err != 0)
        return err;
    /* RDMA_PS_IB is for connections of the type that the program names, at IP addresses. Addresses
     * of AF_IB, which librdmacm tries first, can't be bound. */
    if (in.ps != RDMA_PS_TCP && in.ps != RDMA_PS_UDP &&
        (in.ps != RDMA_PS_IB || in.qp_type == URNIC_QPT_UD))
        return -EINVAL;
    struct ucma_id *id = ucma_id_new(c->file, in.ps);
    if (id == NULL)
        return -ENOMEM;
    id->uid = in.uid;
    id->uid_is_set = true;
    const struct rdma_ucm_create_id_resp resp = {.id = id->number};
    says(c, "%s, id %u",
         in.ps == RDMA_PS_UDP  ? "UDP"
         : in.ps == RDMA_PS_IB ? "IB"
                               : "TCP",
         id->number);
    err = ANSWER(c, in.response, resp);
    if (err != 0)
        ucma_id_free(id);
    return err;
}

static int cmd_destroy_id(struct cmd *c)
{
    struct rdma_ucm_destroy_id in;
    int err = TAKE(c, in);
    struct ucma_id *id = err != 0 ? NULL : ucma_id_get(c->file, in.id);
    if (err != 0)
        return err;
    if (id == NULL)
        return -ENOENT;
    const struct rdma_ucm_destroy_id_resp resp = {.events_reported = id->reported};
    says(c, "id %u", in.id);
    err = ANSWER(c, in.response, resp);
    if (err == 0)
        ucma_id_free(id);
    return err;
}

static int cmd_migrate_id(struct cmd *c)
{
    struct rdma_ucm_migrate_id in;
    int err = TAKE(c, in);
    if (err != 0)
        return err;
    struct ucma_file *from = ucma_fd((int)in.fd);
    struct ucma_id *id = from != NULL ? ucma_id_get(from, in.id) : NULL;
    if (from == NULL)
        return -EINVAL;
    if (id == NULL)
        return -ENOENT;
    const struct rdma_ucm_migrate_resp resp = {.events_reported = id->reported};
    err = ANSWER(c, in.response, resp);
    if (err != 0 || from == c->file)
        return err;
    LIST_REMOVE(id, next);
    LIST_INSERT_HEAD(&c->file->ids, id, next);
    id->file = c->file;
    if (id->state == UCMA_REQUEST)
        id->asked_at = from;
    ucma_file_move(from, c->file, id);
    return 0;
}

/* ---- addresses ---- */

static int id_of(struct cmd *c, uint32_t number, struct ucma_id **id)
{
    says(c, "id %u", number);
    *id = ucma_id_get(c->file, number);
    return *id != NULL ? 0 : -ENOENT;
}

static int cmd_bind_ip(struct cmd *c)
{
    struct rdma_ucm_bind_ip in;
    union ucma_addr addr;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = ucma_addr_take(&addr, &in.addr, sizeof(in.addr));
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : ucma_bind(id, &addr);
}

static int cmd_bind(struct cmd *c)
{
    struct rdma_ucm_bind in;
    union ucma_addr addr;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0 && (in.reserved != 0 || in.addr_size > sizeof(in.addr)))
        err = -EINVAL;
    if (err == 0)
        err = ucma_addr_take(&addr, &in.addr, in.addr_size);
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : ucma_bind(id, &addr);
}

/* The source may be missing: then its family is 0. */
static int take_source(union ucma_addr *to, const void *from, size_t size)
{
    sa_family_t family = AF_UNSPEC;
    if (size >= sizeof(family))
        memcpy(&family, from, sizeof(family));
    if (family == AF_UNSPEC) {
        memset(to, 0, sizeof(*to));
        return 0;
    }
    return ucma_addr_take(to, from, size);
}

static int cmd_resolve_ip(struct cmd *c)
{
    struct rdma_ucm_resolve_ip in;
    union ucma_addr src, dst;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = take_source(&src, &in.src_addr, sizeof(in.src_addr));
    if (err == 0)
        err = ucma_addr_take(&dst, &in.dst_addr, sizeof(in.dst_addr));
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : ucma_resolve(id, &src, &dst, in.timeout_ms);
}

static int cmd_resolve_addr(struct cmd *c)
{
    struct rdma_ucm_resolve_addr in;
    union ucma_addr src, dst;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0 && (in.reserved != 0 || in.src_size > sizeof(in.src_addr) ||
                     in.dst_size > sizeof(in.dst_addr)))
        err = -EINVAL;
    if (err == 0)
        err = take_source(&src, &in.src_addr, in.src_size);
    if (err == 0)
        err = ucma_addr_take(&dst, &in.dst_addr, in.dst_size);
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : ucma_resolve(id, &src, &dst, in.timeout_ms);
}

static int cmd_resolve_route(struct cmd *c)
{
    struct rdma_ucm_resolve_route in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    if (id->state != UCMA_ADDR_RESOLVED)
        return -EINVAL;
    return urnic_resolve_route(id->leg.cm, (int)in.timeout_ms);
}

static int cmd_listen(struct cmd *c)
{
    struct rdma_ucm_listen in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    return ucma_listen(id,
                       in.backlog > 0 && in.backlog < BACKLOG_MAX ? (int)in.backlog : BACKLOG_MAX);
}

/* ---- queries ---- */

static int cmd_query_route(struct cmd *c)
{
    struct rdma_ucm_query in;
    struct rdma_ucm_query_route_resp resp = {0};
    struct ucma_path path;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    ucma_addr_put(&id->src, &resp.src_addr, sizeof(resp.src_addr));
    ucma_addr_put(&id->dst, &resp.dst_addr, sizeof(resp.dst_addr));
    if (id->leg.dev != NULL) {
        resp.node_guid = id->leg.dev->dev.guid;
        resp.ibdev_index = id->leg.dev->dev.index;
        resp.port_num = 1;
        ucma_path(id, &path);
        resp.num_paths = path.resolved;
        ucma_path_rec(&resp.ib_route[0], &path);
    }
    return answer(c, in.response, &resp, sizeof(resp),
                  offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

static int query_addr(struct cmd *c, const struct rdma_ucm_query *in, const struct ucma_id *id)
{
    struct rdma_ucm_query_addr_resp resp = {0};
    resp.src_size = (uint16_t)ucma_addr_put(&id->src, &resp.src_addr, sizeof(resp.src_addr));
    resp.dst_size = (uint16_t)ucma_addr_put(&id->dst, &resp.dst_addr, sizeof(resp.dst_addr));
    if (id->leg.dev != NULL) {
        resp.node_guid = id->leg.dev->dev.guid;
        resp.ibdev_index = id->leg.dev->dev.index;
        resp.port_num = 1;
        resp.pkey = UCMA_PKEY;
    }
    return answer(c, in->response, &resp, sizeof(resp),
                  offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static int query_path(struct cmd *c, const struct rdma_ucm_query *in, const struct ucma_id *id)
{
    struct rdma_ucm_query_path_resp head = {0};
    struct ib_path_rec_data data = {.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL};
    uint8_t resp[sizeof(head) + sizeof(data)];
    struct ucma_path path;
    ucma_path(id, &path);
    bool room = c->out_len >= sizeof(resp);
    head.num_paths = path.resolved && room;
    ucma_path_sa(data.path_rec, &path);
    memcpy(resp, &head, sizeof(head));
    memcpy(resp + sizeof(head), &data, sizeof(data));
    return answer(c, in->response, resp, head.num_paths > 0 ? sizeof(resp) : sizeof(head),
                  sizeof(head));
}

/* As sockaddr_ib, which no public header declares: family, P_Key, flow label, GID, and a service id
 * with its mask. */
static int query_gid(struct cmd *c, const struct rdma_ucm_query *in, const struct ucma_id *id)
{
    struct rdma_ucm_query_addr_resp resp = {0};
    const uint16_t family = 27; /* AF_IB */
    const uint8_t pkey[2] = {UCMA_PKEY >> 8, UCMA_PKEY & 0xFF};
    struct ucma_path path;
    uint8_t *ends[2] = {(uint8_t *)&resp.src_addr, (uint8_t *)&resp.dst_addr};
    ucma_path(id, &path);
    for (int i = 0; i < 2 && id->leg.dev != NULL; i++) {
        memcpy(ends[i], &family, sizeof(family));
        memcpy(ends[i] + 2, pkey, sizeof(pkey));
        memcpy(ends[i] + 8, i == 0 ? path.sgid : path.dgid, 16);
    }
    if (id->leg.dev != NULL) {
        resp.node_guid = id->leg.dev->dev.guid;
        resp.ibdev_index = id->leg.dev->dev.index;
        resp.port_num = 1;
        resp.pkey = UCMA_PKEY;
        resp.src_size = resp.dst_size = 48;
    }
    return answer(c, in->response, &resp, sizeof(resp),
                  offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static int cmd_query(struct cmd *c)
{
    struct rdma_ucm_query in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    switch (in.option) {
    case RDMA_USER_CM_QUERY_ADDR:
        return query_addr(c, &in, id);
    case RDMA_USER_CM_QUERY_PATH:
        return query_path(c, &in, id);
    case RDMA_USER_CM_QUERY_GID:
        return query_gid(c, &in, id);
    default:
        return -ENOSYS;
    }
}

static int cmd_init_qp_attr(struct cmd *c)
{
    struct rdma_ucm_init_qp_attr in;
    struct ib_uverbs_qp_attr resp;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0 && c->out_len < sizeof(resp))
        err = -ENOSPC;
    if (err == 0 && in.qp_state > URNIC_QPS_ERR)
        err = -EINVAL;
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    if (id->leg.cm == NULL)
        return -EINVAL;
    struct urnic_qp_attr attr = {.qp_state = (enum urnic_qp_state)in.qp_state};
    unsigned mask;
    err = urnic_init_qp_attr(id->leg.cm, &attr, &mask);
    if (err != 0)
        return err;
    if (id->ack_timeout_is_set)
        attr.timeout = id->ack_timeout; /* the mask says whether it counts */
    attr.min_rnr_timer = 0;             /* CM-11: the kernel's default, which programs may change */
    ucma_qp_attr(&resp, &attr, mask);
    return ANSWER(c, in.response, resp);
}

/* ---- connections ---- */

static int cmd_connect(struct cmd *c)
{
    struct rdma_ucm_connect in;
    struct urnic_conn_param param;
    struct ucma_id *id = NULL;
    int err = take(c, &in, sizeof(in), offsetof(struct rdma_ucm_connect, ece));
    if (err == 0 && !in.conn_param.valid)
        err = -EINVAL;
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    if (id->state != UCMA_ROUTE_RESOLVED)
        return -EINVAL;
    ucma_conn_param(&param, &in.conn_param, id->tos);
    urnic_id_set_srq(id->leg.cm, in.conn_param.srq != 0);
    err = urnic_connect(id->leg.cm, &param);
    if (err == 0)
        id->state = UCMA_CONNECT;
    return err;
}

static int cmd_accept(struct cmd *c)
{
    struct rdma_ucm_accept in;
    struct urnic_conn_param param;
    struct ucma_id *id = NULL;
    int err = take(c, &in, sizeof(in), offsetof(struct rdma_ucm_accept, ece));
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    if (id->state != UCMA_REQUEST && id->state != UCMA_CONNECT)
        return -EINVAL;
    if (!in.conn_param.valid)
        return urnic_establish(id->leg.cm);
    ucma_conn_param(&param, &in.conn_param, 0);
    param.tclass = 0;
    urnic_id_set_srq(id->leg.cm, in.conn_param.srq != 0);
    err = urnic_accept(id->leg.cm, &param);
    if (err == 0) {
        id->uid = in.uid;
        id->uid_is_set = true;
    }
    return err;
}

static int cmd_reject(struct cmd *c)
{
    struct rdma_ucm_reject in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    if (id->leg.cm == NULL)
        return -EINVAL;
    return urnic_reject(id->leg.cm, in.private_data, in.private_data_len);
}

static int cmd_disconnect(struct cmd *c)
{
    struct rdma_ucm_disconnect in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    return id->leg.cm == NULL ? -EINVAL : urnic_disconnect(id->leg.cm);
}

/* No action: the daemon itself notices a connection's first message. */
static int cmd_notify(struct cmd *c)
{
    struct rdma_ucm_notify in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    return id->leg.dev == NULL ? -EINVAL : 0;
}

/* ---- options ---- */

static int option_of_id(struct ucma_id *id, const struct rdma_ucm_set_option *in)
{
    uint8_t value[sizeof(int)] = {0};
    int err = in->optlen > sizeof(value) ? -EINVAL : ucma_copy_in(value, in->optval, in->optlen);
    if (err != 0)
        return err;
    switch (in->optname) {
    case RDMA_OPTION_ID_TOS:
        if (in->optlen != sizeof(uint8_t))
            return -EINVAL;
        id->tos = value[0];
        return 0;
    case RDMA_OPTION_ID_REUSEADDR: /* the daemon's listeners need nothing for it */
        return in->optlen != sizeof(int) ? -EINVAL : id->state != UCMA_IDLE ? -EINVAL : 0;
    case RDMA_OPTION_ID_AFONLY: {
        int on;
        if (in->optlen != sizeof(on) || id->state != UCMA_IDLE)
            return -EINVAL;
        memcpy(&on, value, sizeof(on));
        id->afonly = on != 0;
        return 0;
    }
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (in->optlen != sizeof(uint8_t) || value[0] > ACK_TIMEOUT_MAX || id->ps == RDMA_PS_UDP)
            return -EINVAL;
        id->ack_timeout = value[0];
        id->ack_timeout_is_set = true;
        return 0;
    default:
        return -ENOSYS;
    }
}

static int cmd_set_option(struct cmd *c)
{
    struct rdma_ucm_set_option in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = id_of(c, in.id, &id);
    if (err != 0)
        return err;
    return in.level == RDMA_OPTION_ID ? option_of_id(id, &in) : -ENOSYS;
}

/* ---- groups ---- */

/* The program itself attaches its queue pair; the event carries the address to send to. */
static int join(struct cmd *c, struct ucma_id *id, const union ucma_addr *addr, uint64_t uid,
                uint64_t response)
{
    struct ucma_mc *mc;
    uint8_t gid[16];
    if (id->ps != RDMA_PS_UDP || id->leg.dev == NULL || !ucma_addr_is_multicast(addr))
        return -EINVAL;
    mc = calloc(1, sizeof(*mc));
    if (mc == NULL)
        return -ENOMEM;
    *mc = (struct ucma_mc){.number = ucma_number(), .uid = uid, .addr = *addr};
    const struct rdma_ucm_create_id_resp resp = {.id = mc->number};
    struct ucma_event *ev = ucma_event_new(id, URNIC_CM_MULTICAST_JOIN, 0);
    int err = ev == NULL ? -ENOMEM : ANSWER(c, response, resp);
    if (err == 0 && ucma_dev_address(id->leg.dev, addr->sa.sa_family, gid) < 0)
        err = -EADDRNOTAVAIL;
    if (err != 0) {
        free(ev);
        free(mc);
        return err;
    }
    if (id->src.sa.sa_family == addr->sa.sa_family && !ucma_addr_is_zero(&id->src))
        ucma_addr_gid(&id->src, gid);
    LIST_INSERT_HEAD(&id->groups, mc, next);
    ev->mc = mc;
    ev->resp.uid = uid;
    ev->resp.id = mc->number;
    ucma_group_param(&ev->resp, addr, ucma_dev_sgid_index(id->leg.dev, gid));
    ucma_file_put(id->file, ev);
    return 0;
}

static int cmd_join_ip_mcast(struct cmd *c)
{
    struct rdma_ucm_join_ip_mcast in;
    union ucma_addr addr;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0)
        err = ucma_addr_take(&addr, &in.addr, sizeof(in.addr));
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : join(c, id, &addr, in.uid, in.response);
}

static int cmd_join_mcast(struct cmd *c)
{
    struct rdma_ucm_join_mcast in;
    union ucma_addr addr;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err == 0 && (in.addr_size > sizeof(in.addr) || in.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED))
        err = -EINVAL;
    if (err == 0)
        err = ucma_addr_take(&addr, &in.addr, in.addr_size);
    if (err == 0)
        err = id_of(c, in.id, &id);
    return err != 0 ? err : join(c, id, &addr, in.uid, in.response);
}

static int cmd_leave_mcast(struct cmd *c)
{
    struct rdma_ucm_destroy_id in;
    struct ucma_id *id = NULL;
    int err = TAKE(c, in);
    if (err != 0)
        return err;
    struct ucma_mc *mc = ucma_mc_get(c->file, in.id, &id);
    if (mc == NULL)
        return -ENOENT;
    const struct rdma_ucm_destroy_id_resp resp = {.events_reported = mc->reported};
    err = ANSWER(c, in.response, resp);
    if (err == 0)
        ucma_mc_free(id, mc);
    return err;
}

/* ---- events ---- */

/* Keep the file readable for as long as its other readers may need to be scheduled. */
static void after_nudge(void)
{
    const struct timespec ts = {.tv_nsec = NUDGE_NS};
    ucma_unlock();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    ucma_lock();
}

/* Another thread has closed the file since this call began. In the kernel the call holds the file
 * and goes on waiting, so a program may close a channel while its thread reads events. */
static int wait_on_closed(const struct cmd *c)
{
    if (!c->blocks)
        return -EAGAIN;
    ucma_unlock();
    pause();
    ucma_lock();
    return -EINTR;
}

/* With the lock, which is released during the wait. */
static int cmd_get_event(struct cmd *c)
{
    struct rdma_ucm_get_event in;
    struct ucma_event *ev = NULL;
    int err = TAKE(c, in);
    if (err == 0 && c->out_len < offsetof(struct rdma_ucm_event_resp, ece))
        err = -ENOSPC;
    while (err == 0) {
        if (c->file->nudged && TAILQ_EMPTY(&c->file->events))
            after_nudge();
        ev = ucma_file_take(c->file, c->fd);
        if (ev != NULL)
            break;
        ucma_unlock();
        err = ucma_file_wait(c->fd);
        ucma_lock();
        if (err != -EAGAIN && err != -EINTR && ucma_fd(c->fd) != c->file)
            err = wait_on_closed(c);
    }
    if (err != 0)
        return err;
    says(c, "id %u, %s, status %d", ev->resp.id,
         urnic_cm_event_str((enum urnic_cm_event_type)ev->resp.event), (int)ev->resp.status);
    err = answer(c, in.response, &ev->resp, sizeof(ev->resp), 0);
    ev->id->reported++;
    if (ev->mc != NULL)
        ev->mc->reported++;
    /* librdmacm accepts rsockets in a thread of its own, which doesn't wake threads that poll the
     * listener. They would find the connection at their next poll, 5 s later. */
    if (ev->resp.event == URNIC_CM_ESTABLISHED && ev->id->asked_at != NULL) {
        ucma_file_nudge(ev->id->asked_at);
        ev->id->asked_at = NULL;
    }
    free(ev);
    return err;
}

/* ---- all ---- */

static int run(struct cmd *c, uint32_t number)
{
    static int (*const commands[])(struct cmd *) = {
        [RDMA_USER_CM_CMD_CREATE_ID] = cmd_create_id,
        [RDMA_USER_CM_CMD_DESTROY_ID] = cmd_destroy_id,
        [RDMA_USER_CM_CMD_BIND_IP] = cmd_bind_ip,
        [RDMA_USER_CM_CMD_RESOLVE_IP] = cmd_resolve_ip,
        [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = cmd_resolve_route,
        [RDMA_USER_CM_CMD_QUERY_ROUTE] = cmd_query_route,
        [RDMA_USER_CM_CMD_CONNECT] = cmd_connect,
        [RDMA_USER_CM_CMD_LISTEN] = cmd_listen,
        [RDMA_USER_CM_CMD_ACCEPT] = cmd_accept,
        [RDMA_USER_CM_CMD_REJECT] = cmd_reject,
        [RDMA_USER_CM_CMD_DISCONNECT] = cmd_disconnect,
        [RDMA_USER_CM_CMD_INIT_QP_ATTR] = cmd_init_qp_attr,
        [RDMA_USER_CM_CMD_GET_EVENT] = cmd_get_event,
        [RDMA_USER_CM_CMD_SET_OPTION] = cmd_set_option,
        [RDMA_USER_CM_CMD_NOTIFY] = cmd_notify,
        [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = cmd_join_ip_mcast,
        [RDMA_USER_CM_CMD_LEAVE_MCAST] = cmd_leave_mcast,
        [RDMA_USER_CM_CMD_MIGRATE_ID] = cmd_migrate_id,
        [RDMA_USER_CM_CMD_QUERY] = cmd_query,
        [RDMA_USER_CM_CMD_BIND] = cmd_bind,
        [RDMA_USER_CM_CMD_RESOLVE_ADDR] = cmd_resolve_addr,
        [RDMA_USER_CM_CMD_JOIN_MCAST] = cmd_join_mcast,
    };
    if (number >= sizeof(commands) / sizeof(commands[0]))
        return -EINVAL;
    return commands[number] == NULL ? -ENOSYS : commands[number](c);
}

/* The name of a command for messages: librdmacm's call, or, if no call sends it, the command
 * itself. */
static const char *name_of(uint32_t number)
{
    static const char *const names[] = {
        [RDMA_USER_CM_CMD_CREATE_ID] = "rdma_create_id",
        [RDMA_USER_CM_CMD_DESTROY_ID] = "rdma_destroy_id",
        [RDMA_USER_CM_CMD_BIND_IP] = "rdma_bind_addr",
        [RDMA_USER_CM_CMD_RESOLVE_IP] = "rdma_resolve_addr",
        [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = "rdma_resolve_route",
        [RDMA_USER_CM_CMD_QUERY_ROUTE] = "rdma_cm query_route",
        [RDMA_USER_CM_CMD_CONNECT] = "rdma_connect",
        [RDMA_USER_CM_CMD_LISTEN] = "rdma_listen",
        [RDMA_USER_CM_CMD_ACCEPT] = "rdma_accept",
        [RDMA_USER_CM_CMD_REJECT] = "rdma_reject",
        [RDMA_USER_CM_CMD_DISCONNECT] = "rdma_disconnect",
        [RDMA_USER_CM_CMD_INIT_QP_ATTR] = "rdma_init_qp_attr",
        [RDMA_USER_CM_CMD_GET_EVENT] = "rdma_get_cm_event",
        [RDMA_USER_CM_CMD_SET_OPTION] = "rdma_set_option",
        [RDMA_USER_CM_CMD_NOTIFY] = "rdma_notify",
        [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = "rdma_join_multicast",
        [RDMA_USER_CM_CMD_LEAVE_MCAST] = "rdma_leave_multicast",
        [RDMA_USER_CM_CMD_MIGRATE_ID] = "rdma_migrate_id",
        [RDMA_USER_CM_CMD_QUERY] = "rdma_cm query",
        [RDMA_USER_CM_CMD_BIND] = "rdma_bind_addr",
        [RDMA_USER_CM_CMD_RESOLVE_ADDR] = "rdma_resolve_addr",
        [RDMA_USER_CM_CMD_JOIN_MCAST] = "rdma_join_multicast",
    };
    bool known = number < sizeof(names) / sizeof(names[0]) && names[number] != NULL;
    return known ? names[number] : "rdma_cm unknown";
}

/* liburnic's errors as the kernel names them. */
static int errno_of(int err)
{
    return err == -EDQUOT ? ENOMEM : err == -ENOTSUP ? EOPNOTSUPP : -err;
}

ssize_t ucma_write(struct ucma_file *f, int fd, const void *buf, size_t len)
{
    struct rdma_ucm_cmd_hdr hdr;
    const uint64_t at = (uintptr_t)buf;
    int err = len < sizeof(hdr) ? -EINVAL : ucma_copy_in(&hdr, at, sizeof(hdr));
    if (err == 0 && (size_t)hdr.in + sizeof(hdr) > len)
        err = -EINVAL;
    if (err == 0) {
        struct cmd c = {
            .file = f, .fd = fd, .in = at + sizeof(hdr), .in_len = hdr.in, .out_len = hdr.out};
        if (hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT) /* before a wait for the lock */
            c.blocks = (syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) == 0;
        ucma_lock();
        err = run(&c, hdr.cmd);
        ucma_unlock();
        if (uv_tracing() && !(hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT && err == -EAGAIN))
            uv_trace(name_of(hdr.cmd), UV_STATUS, errno_of(err != 0 ? err : 0), "%s", c.text);
    }
    if (err != 0) {
        errno = errno_of(err);
        return -1;
    }
    return (ssize_t)len;
}
