/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The emulated rdma_cm under arbitrary commands: whatever a program writes, the answer is an error
 * or lies where the program asked, a used id is alive, and poll() reports existing events. liburnic
 * is a fake (fake_urnic_cm.h).
 *
 * The input is a list of steps. A step: its kind; flags; two octets of hdr.in (0xFFFF = as long as
 * the body), two of hdr.out (0xFFFF = 4096), two of the body's length, the body. Kinds below 32 are
 * commands, of which the target fills in the address of the answer and, from small numbers, ids.
 * Flags: 1 = on the second file; 2, 4, 8 = where the answer is to go; 16 = the id as it is; 32 = on
 * a copy of the descriptor.
 * Kinds from 32 on do something else: see other().
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_urnic_cm.h"

#define COMMANDS 32u
#define IDS      64u
#define PAGE     4096u
#define HEADER   8u

/* The record of a removed device is never freed: the thread may be reading it. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:dev_of";
}

/* Offsets of a command's fields. -1 = no such field. */
#define OFF(type, field) (int)offsetof(struct type, field)
static const struct row {
    int response, id, file;
} rows[] = {
    [RDMA_USER_CM_CMD_CREATE_ID] = {OFF(rdma_ucm_create_id, response), -1, -1},
    [RDMA_USER_CM_CMD_DESTROY_ID] = {OFF(rdma_ucm_destroy_id, response),
                                     OFF(rdma_ucm_destroy_id, id), -1},
    [RDMA_USER_CM_CMD_BIND_IP] = {-1, OFF(rdma_ucm_bind_ip, id), -1},
    [RDMA_USER_CM_CMD_RESOLVE_IP] = {-1, OFF(rdma_ucm_resolve_ip, id), -1},
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {-1, OFF(rdma_ucm_resolve_route, id), -1},
    [RDMA_USER_CM_CMD_QUERY_ROUTE] = {OFF(rdma_ucm_query, response), OFF(rdma_ucm_query, id), -1},
    [RDMA_USER_CM_CMD_CONNECT] = {-1, OFF(rdma_ucm_connect, id), -1},
    [RDMA_USER_CM_CMD_LISTEN] = {-1, OFF(rdma_ucm_listen, id), -1},
    [RDMA_USER_CM_CMD_ACCEPT] = {-1, OFF(rdma_ucm_accept, id), -1},
    [RDMA_USER_CM_CMD_REJECT] = {-1, OFF(rdma_ucm_reject, id), -1},
    [RDMA_USER_CM_CMD_DISCONNECT] = {-1, OFF(rdma_ucm_disconnect, id), -1},
    [RDMA_USER_CM_CMD_INIT_QP_ATTR] = {OFF(rdma_ucm_init_qp_attr, response),
                                       OFF(rdma_ucm_init_qp_attr, id), -1},
    [RDMA_USER_CM_CMD_GET_EVENT] = {OFF(rdma_ucm_get_event, response), -1, -1},
    [RDMA_USER_CM_CMD_GET_OPTION] = {-1, -1, -1},
    [RDMA_USER_CM_CMD_SET_OPTION] = {OFF(rdma_ucm_set_option, optval), OFF(rdma_ucm_set_option, id),
                                     -1},
    [RDMA_USER_CM_CMD_NOTIFY] = {-1, OFF(rdma_ucm_notify, id), -1},
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {OFF(rdma_ucm_join_ip_mcast, response),
                                        OFF(rdma_ucm_join_ip_mcast, id), -1},
    [RDMA_USER_CM_CMD_LEAVE_MCAST] = {OFF(rdma_ucm_destroy_id, response),
                                      OFF(rdma_ucm_destroy_id, id), -1},
    [RDMA_USER_CM_CMD_MIGRATE_ID] = {OFF(rdma_ucm_migrate_id, response),
                                     OFF(rdma_ucm_migrate_id, id), OFF(rdma_ucm_migrate_id, fd)},
    [RDMA_USER_CM_CMD_QUERY] = {OFF(rdma_ucm_query, response), OFF(rdma_ucm_query, id), -1},
    [RDMA_USER_CM_CMD_BIND] = {-1, OFF(rdma_ucm_bind, id), -1},
    [RDMA_USER_CM_CMD_RESOLVE_ADDR] = {-1, OFF(rdma_ucm_resolve_addr, id), -1},
    [RDMA_USER_CM_CMD_JOIN_MCAST] = {OFF(rdma_ucm_join_mcast, response),
                                     OFF(rdma_ucm_join_mcast, id), -1},
};
static const struct row unknown = {-1, -1, -1};

/* Four pages: commands and answers may lie in the first, nothing in the second, answers not in the
 * third; the fourth is for good answers. */
static uint8_t *pages;
static uint32_t ids[IDS];
static unsigned nids;
static struct file {
    struct ucma_file *f;
    int fd, copy;
} files[2];

static void set_up(void)
{
    pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(pages != MAP_FAILED);
    FUZZ_CHECK(mprotect(pages + PAGE, PAGE, PROT_NONE) == 0);
    FUZZ_CHECK(mprotect(pages + 2 * PAGE, PAGE, PROT_READ) == 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fake.sock) == 0);
}

/* Where an answer is to go: the first two can be written, the second one for 8 octets only. */
static uint64_t place(unsigned which)
{
    const uint64_t base = (uintptr_t)pages;
    const uint64_t places[] = {
        base + 3 * PAGE, base + PAGE - 8, base + PAGE, base + 2 * PAGE, 0, 4095, 1, ~0ull << 47,
    };
    return places[which % 8];
}

/* ---- the program's descriptors ---- */

static void open_file(struct file *to)
{
    fake.failures = 0;
    to->copy = -1;
    to->fd = ucma_file_open(O_RDWR | O_CLOEXEC | O_NONBLOCK);
    FUZZ_CHECK(to->fd >= 0 || fake.devices == 0);
    to->f = to->fd < 0 ? NULL : ucma_fd(to->fd);
}

/* As the interposed close() does it. */
static void close_number(struct file *file, int *fd)
{
    if (*fd < 0)
        return;
    syscall(SYS_close, *fd);
    ucma_lock();
    ucma_fd_drop(*fd, file->f);
    if (file->f->numbers == 0)
        ucma_file_close(file->f);
    ucma_unlock();
    *fd = -1;
}

static void close_file(struct file *file)
{
    close_number(file, &file->copy);
    close_number(file, &file->fd);
    file->f = NULL;
}

static void copy_file(struct file *file)
{
    if (file->fd < 0 || file->copy >= 0)
        return;
    file->copy = (int)syscall(SYS_dup, file->fd);
    ucma_lock();
    ucma_fd_add(file->copy, file->f);
    ucma_unlock();
}

/* poll() agrees with the queue. */
static void check_poll(const struct file *file)
{
    struct pollfd p = {.fd = file->fd, .events = POLLIN};
    if (file->fd < 0)
        return;
    FUZZ_CHECK(poll(&p, 1, 0) >= 0);
    ucma_lock();
    FUZZ_CHECK(((p.revents & POLLIN) != 0) == !TAILQ_EMPTY(&file->f->events));
    ucma_unlock();
}

/* A listener listens: with every half that it has, and it has one. */
static void check_listeners(const struct file *file)
{
    const struct ucma_id *id;
    if (file->fd < 0)
        return;
    ucma_lock();
    LIST_FOREACH(id, &file->f->ids, next)
    {
        if (id->state != UCMA_LISTEN)
            continue;
        FUZZ_CHECK(id->leg.dev != NULL || id->nlegs > 0);
        FUZZ_CHECK(id->leg.dev == NULL || id->leg.cm->state == FAKE_LISTENING);
        for (unsigned i = 0; i < id->nlegs; i++)
            FUZZ_CHECK(id->legs[i].cm->state == FAKE_LISTENING);
    }
    ucma_unlock();
}

/* ---- steps ---- */

struct step {
    unsigned kind, flags, in, out, len;
    const uint8_t *body;
};

static void put(uint8_t *body, size_t len, int at, const void *value, size_t n)
{
    if (at >= 0 && (size_t)at + n <= len)
        memcpy(body + at, value, n);
}

static void remember(const struct step *s, const uint8_t *answer)
{
    bool has_id = s->kind == RDMA_USER_CM_CMD_CREATE_ID || s->kind == RDMA_USER_CM_CMD_JOIN_MCAST ||
                  s->kind == RDMA_USER_CM_CMD_JOIN_IP_MCAST;
    if (has_id && nids < IDS)
        memcpy(&ids[nids++], answer, sizeof(ids[0]));
    if (s->kind == RDMA_USER_CM_CMD_GET_EVENT && nids < IDS)
        memcpy(&ids[nids++], answer + offsetof(struct rdma_ucm_event_resp, id), sizeof(ids[0]));
}

static void command(const struct step *s)
{
    const struct row *row = s->kind <= RDMA_USER_CM_CMD_JOIN_MCAST ? &rows[s->kind] : &unknown;
    struct file *file = &files[s->flags & 1], *other = &files[~s->flags & 1];
    struct rdma_ucm_cmd_hdr hdr = {.cmd = s->kind,
                                   .in = (uint16_t)(s->in == 0xFFFF ? s->len : s->in),
                                   .out = (uint16_t)(s->out == 0xFFFF ? PAGE : s->out)};
    unsigned where = s->flags >> 1 & 7;
    uint64_t to = place(where);
    size_t len = sizeof(hdr) + s->len;
    uint8_t *buf = pages + PAGE - len; /* no octet after it can be read */
    uint32_t number = 0;
    if (file->fd < 0 || len > PAGE / 2)
        return;
    memcpy(buf, &hdr, sizeof(hdr));
    memcpy(buf + sizeof(hdr), s->body, s->len);
    if (row->id >= 0 && (size_t)row->id + sizeof(number) <= s->len)
        memcpy(&number, s->body + row->id, sizeof(number));
    if (!(s->flags & 16) && nids > 0)
        put(buf + sizeof(hdr), s->len, row->id, &ids[number % nids], sizeof(number));
    put(buf + sizeof(hdr), s->len, row->file, &other->fd, sizeof(other->fd));
    put(buf + sizeof(hdr), s->len, row->response, &to, sizeof(to));
    errno = 0;
    ssize_t n =
        ucma_write(file->f, s->flags & 32 && file->copy >= 0 ? file->copy : file->fd, buf, len);
    FUZZ_CHECK(n == (ssize_t)len || (n == -1 && errno > 0 && errno < 200));
    FUZZ_CHECK(n == -1 || row->response < 0 || where < 2 || s->kind == RDMA_USER_CM_CMD_SET_OPTION);
    if (n == (ssize_t)len && where == 0)
        remember(s, pages + 3 * PAGE);
}

/* Events of every device are got, as the thread does it. */
static void pump(void)
{
    struct ucma_dev *devs[UCMA_DEVICES];
    fake.failures = 0;
    ucma_lock();
    int n = ucma_dev_scan(devs);
    for (int i = 0; i < n; i++)
        if (devs[i]->channel != NULL)
            ucma_event_pump(devs[i]);
    ucma_unlock();
    fake.gone = false;
}

static void other(const struct step *s)
{
    struct file *file = &files[s->flags & 1];
    uint8_t arg = s->len > 0 ? s->body[0] : 0;
    switch (s->kind % 8) {
    case 0: /* an event */
        fake_event(arg, s->in, (int)(int8_t)s->out);
        break;
    case 1:
        pump();
        break;
    case 2: /* the next calls of liburnic fail */
        fake.failures = s->out % 4;
        fake.fail = -(int)(1 + arg % 133);
        break;
    case 3:
        fake.gone = true;
        pump();
        break;
    case 4:
        close_file(file);
        open_file(file);
        break;
    case 5:
        copy_file(file);
        break;
    case 6:
        close_number(file, &file->copy);
        break;
    default:
        fake.devices = arg % 3;
        break;
    }
}

static bool take(struct step *s, const uint8_t **data, size_t *size)
{
    const uint8_t *d = *data;
    if (*size < HEADER)
        return false;
    *s = (struct step){d[0],      d[1], d[2] | d[3] << 8u, d[4] | d[5] << 8u, d[6] | d[7] << 8u,
                       d + HEADER};
    if (s->len > *size - HEADER)
        s->len = (unsigned)(*size - HEADER);
    *data += HEADER + s->len;
    *size -= HEADER + s->len;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct step s;
    if (pages == NULL)
        set_up();
    fake_reset();
    nids = 0;
    open_file(&files[0]);
    open_file(&files[1]);
    for (unsigned i = 0; i < 100 && take(&s, &data, &size); i++) {
        if (s.kind < COMMANDS)
            command(&s);
        else
            other(&s);
        for (unsigned f = 0; f < 2; f++) {
            check_poll(&files[f]);
            check_listeners(&files[f]);
        }
    }
    close_file(&files[0]);
    close_file(&files[1]);
    FUZZ_CHECK(fake.live == 0 && fake.nevents == 0);
    return 0;
}
