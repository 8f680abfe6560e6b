/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening a device, and changes while it runs: link state and addresses.
 */
#include "device.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "channel.h"
#include "clock.h"
#include "context_ops.h"
#include "datapath.h"
#include "device_addr.h"
#include "device_port.h"
#include "device_switch.h"
#include "facts.h"
#include "lane.h"
#include "log.h"
#include "loop.h"
#include "neigh.h"
#include "quota.h"
#include "requester.h"
#include "switch_news.h"
#include "team.h"
#include "uplink.h"
#include "worker.h"

#define WINDOW_OVERHEAD 64u /* octets for headers, and for the socket's own share of a train */
#define DEVICE_TX_WANT  8u
/* A program's device: each slot of its block has eight queue pair numbers. */
#define DEVICE_BLOCK_QP 1024u

static const uint8_t mac_none[6];

/* Make a MAC: the same after a restart, another on each device of a link. A device without an
 * address gets a random one. */
static void device_make_mac(struct device *d)
{
    const struct config_device *c = d->conf;
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
    if (c->naddr == 0) {
        (void)!getrandom(&h, sizeof(h), 0);
    } else {
        for (unsigned i = 0; i < sizeof(c->addr[0].ip.b); i++)
            h = (h ^ c->addr[0].ip.b[i]) * 0x100000001b3ull;
        for (const char *p = c->name; *p; p++)
            h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
    }
    d->mac[0] = 0x02; /* locally administered, unicast */
    for (unsigned i = 1; i < 6; i++)
        d->mac[i] = (uint8_t)(h >> (8 * i));
}

static void device_choose_mac(struct device *d)
{
    if (memcmp(d->conf->mac, mac_none, 6) != 0)
        memcpy(d->mac, d->conf->mac, 6);
    else if (memcmp(d->io->caps.mac, mac_none, 6) != 0)
        memcpy(d->mac, d->io->caps.mac, 6);
    else if (d->member == 0)
        device_make_mac(d);
    /* other members have the one of member 0 */

    const uint8_t *m = d->mac;
    const uint8_t eui[8] = {m[0] ^ 0x02, m[1], m[2], 0xFF, 0xFE, m[3], m[4], m[5]};
    memcpy(&d->guid, eui, sizeof(eui));
}

/* The octets that the port's frames leave for IP, and the path MTU that fits. */
static int device_choose_mtu(struct device *d, char *err)
{
    uint32_t room = device_room(d);
    if (d->conf->mtu > room) {
        snprintf(
            err, CONFIG_ERR,
            "device %s: mtu=%u, but port %s carries at most %u octets of IP: lower mtu, or raise "
            "the port's own frame size or the interface's MTU",
            d->name, d->conf->mtu, d->conf->port, room);
        return -EINVAL;
    }
    d->ip_mtu = d->conf->mtu ? d->conf->mtu : room;
    d->path_mtu = wire_mtu_for_ip(d->ip_mtu);
    if (d->path_mtu == 0) {
        snprintf(err, CONFIG_ERR,
                 "device %s: port %s carries %u octets of IP, too few for RoCE with 256 octets of "
                 "payload",
                 d->name, d->conf->port, room);
        return -EINVAL;
    }
    d->frame_max = d->ip_mtu + DEVICE_HDR;
    return 0;
}

/* ---- hooks of the engine ---- */

static void device_on_gsi(void *arg, const struct wire_pkt *pkt, const uint8_t *payload,
                          uint32_t len)
{
    struct device *d = arg;
    d->gsi->ops->rx(d->gsi, pkt, payload, len);
    d->gsi_came = true;
}

static void device_on_comm_est(void *arg, void *qp_arg, uint32_t qpn)
{
    struct device *d = arg;
    if (d->uplink)
        uplink_comm_est(d->uplink, qpn);
    else
        d->gsi->ops->comm_est(d->gsi, qp_arg);
}

static void device_on_guess(void *arg, const struct wire_addr *source, enum engine_counter why)
{
    const struct device *d = arg;
    char text[64];
    if (why == ENGINE_C_rp_cnp_unearned) {
        log_warn("cc",
                 "%s: more CNPs from %s than packets went there: a host forges them, to slow "
                 "queue pairs down (SEC-17)",
                 d->name, wire_addr_str(source, text, sizeof(text)));
        return;
    }
    log_warn("rx", "%s: too many %s from %s: a host may be guessing; limited for a second", d->name,
             engine_counter_names[why], wire_addr_str(source, text, sizeof(text)));
}

/* ---- up and down ---- */

/* Packets that a port with little room can hold (io_caps.room); 0 = no limit of its own. */
static uint32_t device_window(const struct device *d)
{
    uint32_t packet = (128u << d->path_mtu) + WINDOW_OVERHEAD, n = d->io->caps.room / packet;
    if (d->io->caps.room == 0 || n >= REQ_WINDOW_DEFAULT)
        return 0;
    return n < REQ_WINDOW_MIN ? REQ_WINDOW_MIN : n;
}

/* At most half of its channel's ring, so that answers find room, too. */
static uint32_t channel_window(uint32_t slots)
{
    return slots / 2;
}

void device_share_window(struct device *d, uint32_t slots)
{
    engine_set_window(d->engine, channel_window(slots));
}

static int device_make_engine(struct device *d, char *err)
{
    const struct context_ops *contexts = d->worker->context_ops;
    struct engine_params p = {
        .programs = true,
        .hooks = {.cq_push = contexts->cq_push,
                  .event = contexts->object_event,
                  .gsi_rx = device_on_gsi,
                  .comm_est = device_on_comm_est,
                  .sq_room = contexts->sq_room,
                  .recv_wanted = contexts->recv_wanted,
                  .copies = device_rx_copies,
                  .guess = device_on_guess},
        .hook_arg = d,
        .max_qp = LIMIT_QP,
        .max_cq = LIMIT_CQ,
        .max_srq = LIMIT_SRQ,
        .mem = {.max_pd = LIMIT_PD, .max_mr = LIMIT_MR, .max_mw = LIMIT_MW},
        .vlan = d->conf->vlan,
        .mtu = d->path_mtu,
        .line_rate = d->io->caps.rate_bps,
        .worker = (uint8_t)d->member,
        .worker_bits = (uint8_t)d->team->bits,
        .cc = d->conf->cc,
        .loopback = d->conf->loopback || d->io->caps.loopback,
        .sport = d->io->caps.udp_sport,
        .window = device_window(d),
        .read_window = device_window(d),
        .strict_resp = d->conf->strict_resp,
        .nak_confirm = d->conf->nak_confirm,
        .rnr_on_rd_res = d->conf->rnr_on_rd_res,
    };
    memcpy(p.mac, d->mac, 6);
    if (d->uplink) {
        p.block = 1 + d->uplink->block;
        p.max_qp = DEVICE_BLOCK_QP;
        if (d->io == d->uplink->channel)
            p.window = p.read_window = channel_window(channel_slots(d->uplink->channel));
    }
    if (getrandom(p.key, sizeof(p.key), 0) != (ssize_t)sizeof(p.key) ||
        getrandom(p.mem.key, sizeof(p.mem.key), 0) != (ssize_t)sizeof(p.mem.key)) {
        snprintf(err, CONFIG_ERR, "device %s: no random numbers: %s", d->name, strerror(errno));
        return -errno;
    }
    if (d->uplink)
        memcpy(p.key, d->uplink->key, sizeof(p.key));
    d->engine = engine_create(&p, clock_now());
    snprintf(err, CONFIG_ERR, "device %s: out of memory", d->name);
    d->neigh = d->engine ? neigh_create(d, err) : NULL;
    d->path = datapath_new();
    return d->neigh && d->path ? 0 : -ENOMEM;
}

/* Needs the open port: tap makes its interface when it is opened. */
static void device_find_interface(struct device *d)
{
    char name[IF_NAMESIZE];
    d->ifindex = d->io->caps.ifindex;
    if (d->ifindex == 0 && settings_iface(d->conf, name, sizeof(name)))
        d->ifindex = if_nametoindex(name);
}

/* Check settings that the kernel decides on this port, because it sends the packets. */
static int device_check_kernel_ip(const struct device *d, char *err)
{
    const struct config_device *c = d->conf;
    const char *key = c->vlan ? "vlan" : c->ngw ? "gw" : c->kernel_if[0] ? "neigh" : NULL;
    if (!d->io->caps.kernel_ip || !key)
        return 0;
    snprintf(err, CONFIG_ERR,
             "device %s: %s=: port %s sends by the kernel's own sockets, so this is set in the "
             "kernel: leave it out%s",
             c->name, key, c->port,
             c->vlan ? ", and give the port the VLAN's interface, for example udp:eth0.5" : "");
    return -EINVAL;
}

static int device_addresses(struct device *d, char *err)
{
    if (d->io->caps.kernel_ip || d->uplink) {
        device_addr_follow(d);
        return 0;
    }
    const struct config_addr local = {.ip = d->gids.pair[0].addr, .prefix = 64};
    int rc = engine_addr_add(d->engine, &local.ip);

    if (rc == 0)
        rc = neigh_addr_add(d->neigh, &local);
    for (unsigned i = 0; rc == 0 && i < d->conf->naddr; i++) {
        rc = device_addr_add(d, &d->conf->addr[i]);
        if (rc < 0) {
            char text[64];
            snprintf(err, CONFIG_ERR, "device %s: addr=%s: %s", d->name,
                     wire_addr_str(&d->conf->addr[i].ip, text, sizeof(text)), strerror(-rc));
        }
    }
    if (rc == 0)
        device_claim(d);
    return rc;
}

/* A claim of member k has news. */
static void device_wake_claims(void *team, unsigned member)
{
    team_wake(team, member);
}

static int device_make_team(struct device *d, char *err)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        snprintf(err, CONFIG_ERR, "device %s: no random numbers: %s", d->name, strerror(errno));
        return -errno;
    }
    d->team = team_new(d->conf->workers ? d->conf->workers : 1);
    if (!d->team)
        return -ENOMEM;
    claims_init(&d->team->claims, seed);
    if (d->team->n > 1) {
        d->team->claims.wake = device_wake_claims;
        d->team->claims.wake_arg = d->team;
    }
    return 0;
}

/* A member that has neither team nor port. */
static struct device *device_new(const struct config_device *conf, unsigned index,
                                 struct worker *worker, char *err)
{
    struct device *d = calloc(1, sizeof(*d));
    snprintf(err, CONFIG_ERR, "device %s: out of memory", conf->name);
    if (!d)
        return NULL;
    d->conf = conf;
    d->index = index;
    d->worker = worker;
    d->gsi = &gsi_none;
    d->tx_want = DEVICE_TX_WANT;
    memcpy(d->name, conf->name, sizeof(d->name));
    return d;
}

/* Log a driver's line, within a limit of its own. */
static void device_driver_log(enum io_log_level level, const char *subsystem, const char *text)
{
    static const enum log_level as[] = {
        [IO_LOG_ERROR] = LOG_ERROR, [IO_LOG_WARN] = LOG_WARN, [IO_LOG_INFO] = LOG_INFO};
    if (as[level] <= log_get_level())
        log_write(NULL, as[level], subsystem, "%s", text);
}

static int device_open_port(struct device *d, uint64_t seed, char *err)
{
    const struct config_device *conf = d->conf;
    struct io_open_params params = {
        .seed = seed, .vlan = conf->vlan, .log = device_driver_log, .queues = d->team->n};
    struct io_addr only[CONFIG_ADDRS];
    char why[CONFIG_ERR] = "";
    memcpy(params.mac, conf->mac, 6);
    for (unsigned i = 0; i < conf->naddr; i++)
        memcpy(only[i].b, conf->addr[i].ip.b, sizeof(only[i].b));
    params.only = only;
    params.nonly = conf->naddr;
    if (conf->mtu)
        params.frame_max = conf->mtu + DEVICE_HDR;

    int rc = io_open(conf->port, &params, &d->io, why, sizeof(why));
    if (rc < 0)
        snprintf(err, CONFIG_ERR, "device %s: port=%.120s: %.360s", conf->name, conf->port,
                 why[0] ? why : strerror(-rc));
    return rc;
}

/* Set up the parts of a device whose port is open. */
static int device_set_up(struct device *d, char *err)
{
    int rc = device_check_kernel_ip(d, err);
    if (rc == 0)
        rc = device_choose_mtu(d, err);
    if (rc < 0)
        return rc;
    device_find_interface(d);
    device_choose_mac(d);
    if (d->io->caps.kernel_ip || d->uplink)
        gid_init_empty(&d->gids);
    else
        gid_init(&d->gids, d->mac);
    rc = device_make_engine(d, err);
    return rc < 0 ? rc : device_addresses(d, err);
}

static void device_begin(struct device *d)
{
    d->io->ops->link(d->io, &d->link);
    device_watch(d);
    d->team->member[d->member] = d;
    d->worker->device[d->worker->ndevice++] = d;
    if (d->member == 0)
        team_publish(d);
}

static void device_free(struct device *d)
{
    d->gsi->ops->destroy(d->gsi); /* frees connections that have outlived their ids, too */
    device_switch_stop(d);
    if (d->neigh)
        neigh_destroy(d->neigh);
    if (d->engine)
        engine_destroy(d->engine);
    if (d->io)
        d->io->ops->close(d->io);
    loop_free(d->loop);
    datapath_free(d->path);
    free(d);
}

/* Open the first member. A program's device already has its port. */
static int device_open_first(struct device **out, struct device *d, uint64_t seed, char *err)
{
    int rc = device_make_team(d, err);
    if (rc == 0 && !d->io)
        rc = device_open_port(d, seed, err);
    if (rc == 0) {
        d->shared = d->team->n > 1;
        rc = device_set_up(d, err);
    }
    if (rc < 0) {
        struct team *t = d->team;
        device_free(d);
        team_free(t);
        return rc;
    }
    device_begin(d);
    *out = d;
    return 0;
}

int device_open(struct device **out, const struct config_device *conf, unsigned index,
                struct worker *worker, uint64_t seed, char *err)
{
    struct device *d = device_new(conf, index, worker, err);
    return d ? device_open_first(out, d, seed, err) : -ENOMEM;
}

int device_open_uplink(struct device **out, const struct config_device *conf, struct worker *worker,
                       struct uplink *b, char *err)
{
    struct device *d = device_new(conf, 0, worker, err);
    if (!d) {
        b->io->ops->close(b->io);
        return -ENOMEM;
    }
    d->io = b->io;
    d->uplink = b;
    return device_open_first(out, d, 0, err);
}

/* A port of the kernel's has a socket for each worker. On another port the peer may have fewer
 * queues. */
static int device_open_queue(struct device *first, struct device *d)
{
    struct io_port *port = first->io, *queue = NULL;
    int rc = 0;
    if (port->ops->queue)
        rc = port->ops->queue(port, d->member, d->team->n, &queue);
    if (rc == 0 && !(queue && port->caps.kernel_ip))
        return lane_open(d, queue, &d->io);
    d->io = queue;
    return rc;
}

int device_open_member(struct device *first, struct worker *worker, char *err)
{
    struct team *t = first->team;
    unsigned member = 1;
    while (member < t->n && t->member[member])
        member++;
    struct device *d = device_new(first->conf, first->index, worker, err);
    if (!d)
        return -ENOMEM;
    d->team = t;
    d->member = member;
    d->shared = true;
    memcpy(d->mac, first->mac, 6);
    int rc = device_open_queue(first, d);
    if (rc < 0)
        snprintf(err, CONFIG_ERR, "device %s: port=%.120s: queue %u of %u: %s", first->name,
                 first->conf->port, member, t->n, strerror(-rc));
    else
        rc = device_set_up(d, err);
    if (rc < 0) {
        device_free(d);
        return rc;
    }
    device_begin(d);
    return 0;
}

void device_close(struct device *d)
{
    if (!d)
        return;
    struct team *t = d->team;
    for (unsigned k = t->n; k-- > 0;) {
        if (t->member[k])
            device_free(t->member[k]);
    }
    team_free(t);
}

/* ---- changes ---- */

static void device_look_at_link(struct device *d, uint64_t now)
{
    struct io_link link;
    d->io->ops->link(d->io, &link);
    bool changed = link.changes != d->link.changes || link.up != d->link.up;
    if (link.why && strcmp(link.why, d->no_link) != 0 && !changed && d->member == 0)
        log_info("port", "%s: no link: %s", d->name, link.why);
    snprintf(d->no_link, sizeof(d->no_link), "%s", link.why ? link.why : "");
    if (!changed)
        return;
    /* A link that went down and up again between two looks is reported, too: the peer was away. */
    bool blinked = link.up && d->link.up;
    d->stats.link_changes++;
    if (d->member == 0)
        log_info("port", "%s: link is %s%s%s", d->name, link.up ? "up" : "down",
                 !link.up && link.why ? ": " : "", !link.up && link.why ? link.why : "");
    if (!link.up || blinked)
        d->worker->context_ops->event(d, EVT_PORT_ERR);
    if (link.up) {
        neigh_link_up(d->neigh, now);
        device_watch(d); /* the descriptor may have been taken out when the link was lost */
        d->worker->context_ops->event(d, EVT_PORT_ACTIVE);
    }
    d->link = link;
}

static void device_tell(struct device *d)
{
    char text[256];
    while (d->io->ops->news && d->io->ops->news(d->io, text, sizeof(text)))
        log_info("port", "%s: %s", d->name, text);
}

/* Most ICMP errors that programs are told of in one look, every few milliseconds. */
#define ICMP_TOLD 4u

static void device_record_icmp(struct device *d)
{
    struct wire_addr to;
    uint64_t looks = engine_qp_looks(d->engine);
    memcpy(to.b, d->icmp.to.b, sizeof(to.b));
    d->icmp_at = engine_icmp(d->engine, &to, d->icmp.error, d->icmp_at, budget_of[BUDGET_icmp]);
    budget_spend(d->stats.job, BUDGET_icmp, engine_qp_looks(d->engine) - looks);
    if (d->icmp_at)
        budget_over(d->stats.job, BUDGET_icmp);
}

/* An ICMP error ends connections that are being made, on any member, and is noted in the flight
 * recorders of queue pairs. Recorders don't note errors that come meanwhile. The kernel may give an
 * error to any socket of an address, also to a program's: so programs tell the daemon, and the
 * daemon tells the programs. Errors can be forged, so it wakes them only a few times. */
static void device_hear_icmp(struct device *d)
{
    struct io_icmp heard;
    struct wire_addr to;
    bool busy = d->icmp_at != 0;
    unsigned told = 0;
    while (d->io->ops->icmp && d->io->ops->icmp(d->io, &heard)) {
        if (d->uplink)
            uplink_icmp(d->uplink, &heard);
        else
            team_icmp_heard(d->team, &heard);
    }
    if (busy)
        device_record_icmp(d);
    while ((d->io->caps.kernel_ip || d->uplink) && team_icmp_next(d->team, &d->icmp_seen, &heard)) {
        memcpy(to.b, heard.to.b, sizeof(to.b));
        if (heard.error != EMSGSIZE)
            d->gsi->ops->refused(d->gsi, &to);
        if (d->sw && told++ < ICMP_TOLD)
            switch_news_icmp(d->sw, &heard);
        if (busy)
            continue;
        d->icmp = heard;
        device_record_icmp(d);
        busy = d->icmp_at != 0;
    }
}

void device_service(struct device *d, uint64_t now)
{
    if (d->io->ops->service)
        d->io->ops->service(d->io, now);
    device_tell(d);
    device_hear_icmp(d);
    if (d->uplink)
        uplink_follow(d, now);
    device_follow(d, now);
    if (d->io->caps.kernel_ip || d->uplink)
        device_addr_follow(d);
    device_look_at_link(d, now);
    device_addr_service(d, now);
    neigh_service(d->neigh, now);
    d->gsi->ops->service(d->gsi);
    if (d->member == 0)
        team_publish(d);
    facts_follow(d);
}

uint8_t device_tclass(const struct device *d, uint8_t wanted)
{
    return wanted ? wanted : (uint8_t)(d->conf->dscp << 2);
}

uint32_t device_list(struct device *d, uint32_t at, bool (*fn)(void *arg, struct qp *qp), void *arg)
{
    uint64_t looks = engine_qp_looks(d->engine);
    uint32_t next = engine_qp_walk(d->engine, at, budget_of[BUDGET_list], fn, arg);
    looks = engine_qp_looks(d->engine) - looks;
    budget_spend(d->stats.job, BUDGET_list, looks);
    if (next && looks == budget_of[BUDGET_list])
        budget_over(d->stats.job, BUDGET_list);
    return next;
}
