/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Many programs that do nothing: each is a process that has opened a device. Says "ready" when all
 * have, and ends them when it is ended.
 *
 *     idle_programs N [DEVICE]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urnic/urnic.h"

#define TOGETHER 32ul /* programs that open their device at the same time */

/* One of them, until its parent ends: a domain, a completion queue and a queue pair. */
static int program(const char *device, int out, pid_t parent)
{
    struct urnic_context *ctx;
    struct urnic_pd *pd;
    struct urnic_cq *cq;
    struct urnic_qp *qp;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int err = urnic_open(device, &ctx);
    if (err == 0)
        err = urnic_alloc_pd(ctx, &pd);
    if (err == 0)
        err = urnic_create_cq(ctx, 64, NULL, NULL, &cq);
    if (err == 0) {
        struct urnic_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = URNIC_QPT_RC,
            .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
        err = urnic_create_qp(pd, &init, &qp);
    }
    if (err < 0)
        fprintf(stderr, "idle_programs: %s\n", strerror(-err));
    if (write(out, err < 0 ? "e" : "o", 1) != 1 || err < 0)
        return 1;
    while (getppid() == parent)
        pause();
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = argc > 2 ? argv[2] : NULL;
    unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    const pid_t self = getpid();
    int out[2];
    char c;
    if (n == 0 || argc > 3 || pipe(out) < 0) {
        fprintf(stderr, "usage: idle_programs N [DEVICE]\n");
        return 2;
    }
    for (unsigned long i = 0, open = 0; open < n;) {
        for (; i < n && i < open + TOGETHER; i++) {
            pid_t pid = fork();
            if (pid < 0) {
                perror("idle_programs: fork");
                return 1;
            }
            if (pid == 0)
                _exit(program(device, out[1], self));
        }
        if (read(out[0], &c, 1) != 1 || c != 'o') {
            fprintf(stderr, "idle_programs: after %lu of %lu programs\n", open, n);
            return 1;
        }
        open++;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
