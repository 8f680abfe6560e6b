/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small HTTP server that knows nothing of RDMA: accept() and poll() in one thread, nonblocking
 * sockets. It runs over librspreload, for curl to talk to.
 *
 *     poll_server PORT FILE COUNT
 *
 * GET answers with the file. The server ends with status 0 after COUNT answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 2 /* at once; see doc/programs.md: librdmacm 44 is good for three */

struct connection {
    int fd; /* -1 = free */
    char request[4096];
    size_t got, sent;
    bool answering;
};

static char *answer;
static size_t answer_len;
static int answers;

static int load(const char *path)
{
    FILE *f = fopen(path, "rb");
    long size;
    if (f == NULL || fseek(f, 0, SEEK_END) < 0 || (size = ftell(f)) < 0)
        return -1;
    rewind(f);
    answer = malloc((size_t)size + 200);
    if (answer == NULL)
        return -1;
    int head = sprintf(answer,
                       "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                       "Content-Type: application/octet-stream\r\nContent-Length: %ld\r\n\r\n",
                       size);
    answer_len = (size_t)head + fread(answer + head, 1, (size_t)size, f);
    fclose(f);
    return answer_len == (size_t)head + (size_t)size ? 0 : -1;
}

static int listen_at(uint16_t port)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 8) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    return fd;
}

static void end(struct connection *c)
{
    close(c->fd);
    memset(c, 0, sizeof(*c));
    c->fd = -1;
}

/* Read until the empty line that ends the request. */
static void take(struct connection *c)
{
    ssize_t n = read(c->fd, c->request + c->got, sizeof(c->request) - 1 - c->got);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end(c);
        return;
    }
    c->got += (size_t)n;
    if (strstr(c->request, "\r\n\r\n") != NULL)
        c->answering = true;
    else if (c->got == sizeof(c->request) - 1)
        end(c);
}

static void give(struct connection *c)
{
    ssize_t n = write(c->fd, answer + c->sent, answer_len - c->sent);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        end(c);
        return;
    }
    c->sent += (size_t)n;
    if (c->sent == answer_len) {
        shutdown(c->fd, SHUT_RDWR);
        end(c);
        answers++;
    }
}

static void welcome(int listener, struct connection *c)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    c->fd = fd;
}

int main(int argc, char *argv[])
{
    struct connection conns[CONNECTIONS];
    int listener = argc == 4 && load(argv[2]) == 0 ? listen_at((uint16_t)atoi(argv[1])) : -1;
    if (listener < 0) {
        fprintf(stderr, "usage: poll_server PORT FILE COUNT: %s\n", strerror(errno));
        return 2;
    }
    memset(conns, 0, sizeof(conns));
    for (int i = 0; i < CONNECTIONS; i++)
        conns[i].fd = -1;
    while (answers < atoi(argv[3])) {
        struct pollfd fds[CONNECTIONS + 1];
        struct connection *of[CONNECTIONS + 1], *none = NULL;
        nfds_t n = 1;

        for (int i = 0; i < CONNECTIONS; i++) {
            if (conns[i].fd < 0) {
                none = &conns[i];
                continue;
            }
            fds[n] =
                (struct pollfd){.fd = conns[i].fd, .events = conns[i].answering ? POLLOUT : POLLIN};
            of[n++] = &conns[i];
        }
        fds[0] = (struct pollfd){.fd = listener, .events = none != NULL ? POLLIN : 0};
        if (poll(fds, n, -1) < 0) { /* a time limit ends early with librdmacm 44 */
            fprintf(stderr, "poll_server: poll: %s\n", strerror(errno));
            return 1;
        }
        for (nfds_t i = 1; i < n; i++) {
            if (fds[i].revents != 0 && of[i]->answering)
                give(of[i]);
            else if (fds[i].revents != 0)
                take(of[i]);
        }
        if ((fds[0].revents & POLLIN) && none != NULL)
            welcome(listener, none);
    }
    return 0;
}
