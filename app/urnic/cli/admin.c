/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control connection for tools.
 */
#include "admin.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 10

/* A daemon that refuses this client has closed the socket already: its answer follows the error. */
static int hello_answer(int sock)
{
    struct ipc_hello theirs;
    ssize_t n = ipc_recv(sock, &theirs, sizeof(theirs), NULL, NULL, 0);
    if (n == -ECONNRESET)
        n = ipc_recv(sock, &theirs, sizeof(theirs), NULL, NULL, 0);
    if (n == -EAGAIN)
        return -ETIMEDOUT;
    if (n < 0)
        return n == -EMSGSIZE || n == -ECONNRESET ? -EPROTO : (int)n;
    if ((size_t)n >= sizeof(theirs.hdr) && theirs.hdr.type == IPC_HELLO && theirs.hdr.status < 0)
        return theirs.hdr.status;
    return n != sizeof(theirs) ? -EPROTO : ipc_hello_check(&theirs);
}

/* The same errors as in liburnic, but -ETIMEDOUT when the daemon has no time for us. */
static int not_connected(int err)
{
    if (err == EAGAIN)
        return -ETIMEDOUT; /* the queue of connections is full */
    return err == ENOENT || err == ECONNREFUSED ? -ENODEV : -err;
}

int admin_open(struct admin *a)
{
    return admin_open_within(a, PATIENCE_S);
}

int admin_open_within(struct admin *a, unsigned seconds)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct ipc_hello hello;
    *a = (struct admin){.sock = -1};
    int rc = ipc_socket_path(NULL, addr.sun_path, sizeof(addr.sun_path));
    if (rc < 0)
        return rc;
    a->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (a->sock < 0)
        return -errno;
    struct timeval timeout = {.tv_sec = seconds};
    setsockopt(a->sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(a->sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(a->sock, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        rc = not_connected(errno);
        admin_close(a);
        return rc;
    }
    ipc_hello_fill(&hello, 0);
    rc = ipc_send(a->sock, &hello, sizeof(hello), NULL, 0, 0);
    if (rc == 0 || rc == -EPIPE)
        rc = hello_answer(a->sock);
    if (rc < 0)
        admin_close(a);
    return rc;
}

void admin_close(struct admin *a)
{
    if (a->sock >= 0)
        close(a->sock);
    a->sock = -1;
}

int admin_ask(struct admin *a, void *request, size_t len, int fd)
{
    struct ipc_hdr *hdr = request;
    hdr->id = ++a->id;
    hdr->flags = 0;
    hdr->status = 0;
    int rc = ipc_send(a->sock, request, len, &fd, fd >= 0, 0);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

ssize_t admin_answer(struct admin *a, void *reply, size_t cap)
{
    for (;;) {
        unsigned nfds = 0;
        ssize_t n = ipc_recv(a->sock, reply, cap, NULL, &nfds, 0);
        const struct ipc_hdr *answer = reply;
        if (n < 0)
            return n == -EAGAIN ? -ETIMEDOUT : n;
        if (n == 0)
            return -ENODEV;
        if ((size_t)n < sizeof(*answer))
            return -EPROTO;
        if (answer->id != a->id)
            continue; /* answer to an earlier request that timed out */
        return answer->status < 0 ? answer->status : n;
    }
}

ssize_t admin_call(struct admin *a, void *request, size_t len, int fd, void *reply, size_t cap)
{
    int rc = admin_ask(a, request, len, fd);
    return rc < 0 ? rc : admin_answer(a, reply, cap);
}

void admin_set_device(char dst[IPC_NAME_MAX], const char *name)
{
    size_t len = strnlen(name, IPC_NAME_MAX - 1);
    memset(dst, 0, IPC_NAME_MAX);
    memcpy(dst, name, len);
}

int admin_devices(struct admin *a, struct ipc_device *dev, unsigned max)
{
    static union {
        struct ipc_device_list list;
        uint8_t octets[IPC_MSG_MAX];
    } reply;
    struct ipc_hdr request = {.type = IPC_DEVICE_LIST};
    ssize_t n = admin_call(a, &request, sizeof(request), -1, &reply, sizeof(reply));
    if (n < 0)
        return (int)n;
    if ((size_t)n < sizeof(reply.list) ||
        (size_t)n < sizeof(reply.list) + reply.list.count * sizeof(*dev))
        return -EPROTO;
    unsigned count = reply.list.count < max ? reply.list.count : max;
    memcpy(dev, reply.list.dev, count * sizeof(*dev));
    return (int)count;
}

int admin_json(struct admin *a, json_t *object, char **text)
{
    static union {
        struct ipc_text text;
        uint8_t octets[IPC_MSG_MAX + 1];
    } request, reply;
    const size_t room = IPC_MSG_MAX - sizeof(request.text);
    size_t len = json_dumpb(object, request.text.text, room, JSON_COMPACT);
    json_decref(object);
    if (len > room)
        return -EMSGSIZE;
    request.text.hdr.type = IPC_ADMIN;
    request.text.len = (uint32_t)len;
    ssize_t n = admin_call(a, &request, sizeof(request.text) + len, -1, &reply, IPC_MSG_MAX);
    if (n < 0)
        return (int)n;
    reply.octets[n] = 0;
    *text = reply.text.text;
    return (size_t)n < sizeof(reply.text) ? -EPROTO : 0;
}

int admin_cc(struct admin *a, const char *device, char *text, size_t size)
{
    char *answer;
    int rc = admin_json(a, json_pack("{s:s,s:s*}", "cmd", "cc", "device", device), &answer);
    if (rc < 0)
        return rc;
    json_t *o = json_loads(answer, JSON_DISABLE_EOF_CHECK, NULL); /* a line for each device */
    const char *cc = json_string_value(json_object_get(o, "cc"));
    int k = cc ? snprintf(text, size, "%s", cc) : -1;
    json_decref(o);
    return k < 0 || (size_t)k >= size ? -EPROTO : 0;
}
