/* SPDX-License-Identifier: BSD-3-Clause
 *
 * async_watch: prints the asynchronous events of all devices as ibv_get_async_event tells them,
 * "DEVICE EVENT PORT" a line, until all devices are no more. */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>

#define DEVICES 8

int main(void)
{
    struct ibv_context *ctx[DEVICES];
    struct pollfd fds[DEVICES];
    int count = 0, n = 0, gone = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; list && n < count && n < DEVICES; n++) {
        ctx[n] = ibv_open_device(list[n]);
        if (!ctx[n])
            return 1;
        fds[n] = (struct pollfd){.fd = ctx[n]->async_fd, .events = POLLIN};
    }
    printf("watching %d\n", n);
    while (poll(fds, (nfds_t)n, 60000) > 0) {
        for (int i = 0; i < n; i++) {
            struct ibv_async_event ev;
            if (!fds[i].revents)
                continue;
            if (ibv_get_async_event(ctx[i], &ev))
                return 1;
            printf("%s %d %d\n", ibv_get_device_name(ctx[i]->device), (int)ev.event_type,
                   ev.element.port_num);
            ibv_ack_async_event(&ev);
            if (ev.event_type != IBV_EVENT_DEVICE_FATAL)
                continue;
            fds[i].fd = -1;
            if (++gone == n)
                return 0;
        }
    }
    return 1;
}
