/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg_mr: ibv_reg_mr of 1,000 regions of 64 KiB of touched heap memory, ns each.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define REGIONS 1000u
#define OCTETS  65536u

int main(void)
{
    static struct ibv_mr *mr[REGIONS];
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    char *memory = malloc((size_t)REGIONS * OCTETS);
    if (!pd || !memory) {
        fprintf(stderr, "reg_mr: no device\n");
        free(memory);
        return 1;
    }
    memset(memory, 1, (size_t)REGIONS * OCTETS);
    uint64_t began = clock_ns();
    for (unsigned i = 0; i < REGIONS; i++) {
        mr[i] = ibv_reg_mr(pd, memory + (size_t)i * OCTETS, OCTETS,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (!mr[i]) {
            perror("reg_mr");
            return 1;
        }
    }
    uint64_t took = clock_ns() - began;
    for (unsigned i = 0; i < REGIONS; i++)
        ibv_dereg_mr(mr[i]);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    ibv_free_device_list(list);
    free(memory);
    printf("{\"name\":\"reg_mr\",\"value\":%.0f}\n", (double)took / REGIONS);
    return 0;
}
