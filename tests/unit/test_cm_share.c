/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users' shares of a device's connection manager (SEC-22): a device without a thread, a client of a
 * user with a share of sixteen, and a peer that asks for its datagram service.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "cmgr_priv.h"
#include "cmid.h"
#include "cmid_addr.h"
#include "cmid_channel.h"
#include "contexts.h"
#include "control.h"
#include "memory.h"
#include "request.h"
#include "team.h"
#include "unit.h"

#define PLACES 16u
#define SHARE  14u /* seven eighths */
#define PORT   7000u

static struct urnicd d;
static struct device *dev;
static struct client *c;
static struct cm *peer;
static struct cm_channel *channel;
static struct cm_id *listener;
static int sock[2];
static uint64_t now;

static struct cm_id *new_id(void)
{
    struct cm_id *id = calloc(1, sizeof(*id));
    *id = (struct cm_id){.client = c, .device = dev, .channel = channel, .ps = IPC_PS_UDP};
    cmgr_id_init(id);
    ck_assert_int_eq(handle_add(&c->handles, HANDLE_CM_ID, id, &id->handle), 0);
    channel->users++;
    return id;
}

static void free_id(struct cm_id *id)
{
    uint32_t h = id->handle;
    cmgr_id_free(id, now);
    handle_del(&c->handles, h);
}

static void open_client(void)
{
    int theirs;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
    c = client_new(&d.nic.clients, sock[0]);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(client_open(c, dev), 0);
    c->of_device->all = false; /* also if an administrator runs this */
    channel = calloc(1, sizeof(*channel));
    channel->last = &channel->first;
    ck_assert_int_eq(socket_pair(SOCK_SEQPACKET, &channel->fd, &theirs), 0);
    close(theirs);
    cmgr_channel_add(cmgr_of(dev), channel);
    listener = new_id();
    listener->src.port = PORT;
    ck_assert_int_eq(cmgr_bind(listener, &(struct ipc_sockaddr){.port = PORT}), 0);
    ck_assert_int_eq(cmgr_listen(listener, 0, 0), 0);
}

static void setup(void)
{
    char err[CONFIG_ERR];
    const struct cm_params far = {.key = {1}, .ca_guid = 1};
    memset(&d, 0, sizeof(d));
    now = clock_now();
    d.epfd = d.listen_fd = d.signal_fd = d.nic.clients.captures_fd = -1;
    ck_assert_int_eq(memory_init(), 0);
    ck_assert_int_eq(worker_init(&d.nic.worker[0], 0, -1, IDLE_AUTO, &context_ops), 0);
    config_device_init(&d.conf.dev[0]);
    ck_assert_int_eq(
        config_device_parse(&d.conf.dev[0], "name=urn0,port=mem:cm_share,addr=10.0.0.1/24", err),
        0);
    ck_assert_int_eq(device_open(&dev, &d.conf.dev[0], 0, &d.nic.worker[0], 1, err), 0);
    ck_assert_ptr_nonnull(cmgr_create(dev));
    dev->team->share.limit[SHARE_CONN] = PLACES;
    peer = cm_create(&far);
    open_client();
}

static void close_client(void)
{
    if (listener)
        free_id(listener);
    listener = NULL;
    cmgr_channel_free(channel);
    control_end(&d, c);
    close(sock[1]);
}

static void teardown(void)
{
    close_client();
    cm_destroy(peer);
    device_close(dev);
    worker_fini(&d.nic.worker[0]);
}

/* Time passes without a message. */
static void later(uint64_t ns)
{
    now += ns;
    dev->gsi->ops->run(dev->gsi, now);
}

/* The peer asks; returns the event. NULL = none: there was no room. */
static struct cm_id *ask(void)
{
    unsigned budget = UINT_MAX;
    const struct wire_addr us = wire_addr_v4(0x0A000001), them = wire_addr_v4(0x0A000002);
    const struct cm_path path = {.local = them, .remote = us};
    struct cm *cm = cmgr_of(dev)->cm;
    uint32_t h = 0, last = 0, live = cm_live(cm), ids = c->handles.count[HANDLE_CM_ID];
    struct cm_conn *conn;
    struct cm_out out;
    void *o, *id = NULL;
    ck_assert_int_eq(cm_sidr_request(peer, &path, 1, PORT, NULL, 0, NULL, now, &conn), 0);
    while (cm_tx(peer, &out))
        cm_rx(cm, out.mad, sizeof(out.mad), &out.src, &out.dst, 1, 0xFFFF, now);
    cm_release(peer, conn, now);
    ck_assert_uint_eq(cm_live(cm), live + 1);
    cmgr_of(dev)->dirty = true;
    dev->gsi->ops->run(dev->gsi, now);
    if (c->handles.count[HANDLE_CM_ID] == ids) {
        ck_assert_uint_eq(cm_live(cm), live);
        return NULL;
    }
    while ((o = handle_each(&c->handles, HANDLE_CM_ID, &h, &budget)) != NULL) {
        if (o != listener && h > last) {
            last = h;
            id = o;
        }
    }
    return id;
}

/* The peer asks and gets an answer, which is kept for a while though the id is gone. */
static bool ask_and_answer(void)
{
    const struct ipc_cm_conn no = {.reason = 0};
    struct cm_id *id = ask();
    if (!id)
        return false;
    ck_assert_int_eq(cmgr_reject(id, &no, now), 0);
    free_id(id);
    return true;
}

/* SEC-22: a place in the table is the user's until it is free, also after the end of the id. A
 * request to a user without places left is dropped, and takes no place either. */
START_TEST(share_of_what_is_over)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SHARE; i++)
            ck_assert(ask_and_answer());
        ck_assert_uint_eq(c->handles.count[HANDLE_CM_ID], 1);
        ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], SHARE);
        for (unsigned i = 0; i < 3; i++)
            ck_assert(!ask_and_answer());
        ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], SHARE);
        later(11 * CLOCK_SEC); /* longer than an answer is kept */
        ck_assert_uint_eq(cmgr_live(cmgr_of(dev)), 0);
        ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], 0);
    }
}
END_TEST

/* The user's own questions count, too, until they are given up. */
START_TEST(share_of_what_is_asked)
{
    const struct ipc_cm_conn req = {0};
    struct cm_id *id[SHARE + 1];
    for (unsigned i = 0; i <= SHARE; i++) {
        id[i] = new_id();
        id[i]->state = CM_ID_RESOLVED;
        ck_assert_int_eq(cmgr_connect(id[i], &req, now), i < SHARE ? 0 : -EDQUOT);
    }
    free_id(id[0]);
    ck_assert_int_eq(cmgr_connect(id[SHARE], &req, now), 0);
    for (unsigned i = 1; i <= SHARE; i++)
        free_id(id[i]);
    ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], 0);
    ck_assert_uint_eq(c->of_device->members, 1);
}
END_TEST

/* The user stays in the table after its last client has gone, as long as it holds anything; others
 * get the rest. */
START_TEST(share_of_the_dead)
{
    for (unsigned i = 0; i < SHARE; i++)
        ck_assert(ask_and_answer());
    close_client();
    ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], SHARE);
    open_client();
    ck_assert(!ask_and_answer());
    later(11 * CLOCK_SEC);
    ck_assert_uint_eq(dev->team->share.used[SHARE_CONN], 0);
    ck_assert_uint_eq(c->of_device->members, 1);
    ck_assert(ask_and_answer()); /* and this one is there when the device goes */
}
END_TEST

/* Events that their user leaves unread are kept, up to the user's share; afterwards all is given
 * back. */
START_TEST(share_of_unread_events)
{
    struct ipc_cm_event ev = {.event = IPC_CM_ADDR_RESOLVED};
    struct cm_channel *quiet = calloc(1, sizeof(*quiet));
    struct cm_id *id = new_id();
    int theirs;
    unsigned n = 0;
    dev->team->share.limit[SHARE_EVENT] = PLACES;
    quiet->last = &quiet->first;
    ck_assert_int_eq(socket_pair(SOCK_SEQPACKET, &quiet->fd, &theirs), 0);
    cmgr_channel_add(cmgr_of(dev), quiet);
    id->channel = quiet;
    while (n < 100000 && cmid_event(id, &ev))
        n++;
    ck_assert_uint_eq(dev->team->share.used[SHARE_EVENT], SHARE);
    ck_assert_uint_eq(dev->team->share.refused[SHARE_EVENT], 1);
    ck_assert(!cmid_hears(id));
    ck_assert_uint_eq(dev->stats.cm_lost, 2);
    while (recv(theirs, &ev, sizeof(ev), MSG_DONTWAIT) > 0)
        n--;
    ck_assert_uint_eq(n, SHARE);
    ck_assert(cmid_hears(id)); /* there is room again, and the kept answer is sent */
    ck_assert_uint_eq(dev->team->share.used[SHARE_EVENT], 0);
    while (n < 100000 && cmid_event(id, &ev))
        n++;
    ck_assert_uint_eq(dev->team->share.used[SHARE_EVENT], SHARE);
    id->channel = channel;
    cmgr_channel_free(quiet);
    ck_assert_uint_eq(dev->team->share.used[SHARE_EVENT], 0);
    close(theirs);
    id->events = 0;
    free_id(id);
}
END_TEST

/* SHM-07: a client that is being torn down, a part at a time, gets no more requests: nothing would
 * end the resulting connections. */
START_TEST(dying_are_not_asked)
{
    struct cm_id *id = ask();
    ck_assert_ptr_nonnull(id);
    free_id(id);
    c->ctx.detached = true;
    ck_assert_ptr_null(ask());
    ck_assert_uint_eq(c->handles.count[HANDLE_CM_ID], 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shares of the connection manager");
    TCase *t = tcase_create("shares");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, share_of_what_is_over);
    tcase_add_test(t, share_of_what_is_asked);
    tcase_add_test(t, share_of_the_dead);
    tcase_add_test(t, share_of_unread_events);
    tcase_add_test(t, dying_are_not_asked);
    suite_add_tcase(s, t);
    return unit_run(s);
}
