/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_rate: 8-octet inline RDMA WRITEs per second through libibverbs, posted as `urnic perf`
 * posts them: lists of 64, each with one completion, up to 1,024 at a time. ib_write_bw sends
 * inline only on devices that it knows by their vendor's numbers. The two ends exchange their
 * addresses by TCP.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define DEPTH  1024u
#define LIST   64u
#define OCTETS 8u
#define MEMORY (DEPTH * OCTETS)
#define GIDS   16

struct end {
    uint32_t qpn, rkey;
    uint64_t addr;
    union ibv_gid gid;
};

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static int gid_index;

static void die(const char *what)
{
    fprintf(stderr, "verbs_rate: %s\n", what);
    exit(1);
}

/* The GID of an IPv4 address. */
static union ibv_gid find_gid(void)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    union ibv_gid gid;
    for (gid_index = 0; gid_index < GIDS; gid_index++) {
        if (ibv_query_gid(ctx, 1, gid_index, &gid) == 0 && memcmp(gid.raw, mapped, 12) == 0)
            return gid;
    }
    die("no IPv4 address");
    return gid;
}

static struct end open_end(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = ctx != NULL ? ibv_alloc_pd(ctx) : NULL;
    cq = pd != NULL ? ibv_create_cq(ctx, DEPTH, NULL, NULL, 0) : NULL;
    if (cq == NULL)
        die("no device");
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = OCTETS},
    };
    qp = ibv_create_qp(pd, &init);
    void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr =
        qp != NULL && memory != MAP_FAILED
            ? ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
            : NULL;
    if (mr == NULL)
        die("no queue pair or memory");
    return (struct end){qp->qp_num, mr->rkey, (uintptr_t)memory, find_gid()};
}

static void connect_to(const struct end *peer)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int err =
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_4096,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}},
    };
    if (err == 0)
        err = ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    if (err == 0)
        err = ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (err != 0)
        die("the queue pair can't be connected");
}

/* The connected TCP socket. */
static int meet(const char *host, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = inet_addr(host != NULL ? host : "127.0.0.1")};
    const int one = 1;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (host != NULL)
        return connect(s, (struct sockaddr *)&at, sizeof(at)) == 0 ? s : -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 1) < 0)
        return -1;
    return accept(s, NULL, NULL);
}

/* Messages in `ns`. */
static uint64_t write_for(uint64_t ns, const struct end *peer)
{
    static struct ibv_send_wr wr[LIST];
    static struct ibv_sge sge[LIST];
    static uint64_t data[LIST];
    uint64_t began = clock_ns(), done = 0;
    uint32_t under_way = 0, next = 0;
    for (unsigned i = 0; i < LIST; i++) {
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)&data[i], .length = OCTETS};
        wr[i] = (struct ibv_send_wr){
            .next = i + 1 < LIST ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_INLINE | (i + 1 < LIST ? 0 : (unsigned)IBV_SEND_SIGNALED),
            .wr.rdma.rkey = peer->rkey,
        };
    }
    bool more = true;
    while (more || under_way > 0) {
        struct ibv_send_wr *bad;
        struct ibv_wc wc[LIST];
        while (more && under_way + LIST <= DEPTH) {
            for (unsigned i = 0; i < LIST; i++)
                wr[i].wr.rdma.remote_addr = peer->addr + (next++ % DEPTH) * OCTETS;
            if (ibv_post_send(qp, wr, &bad) != 0)
                die("posting failed");
            under_way += LIST;
        }
        int n = ibv_poll_cq(cq, LIST, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                die(ibv_wc_status_str(wc[i].status));
        }
        under_way -= (uint32_t)n * LIST;
        done += (uint32_t)n * LIST;
        more = clock_ns() - began < ns;
    }
    return done * 1000000000 / (clock_ns() - began);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: verbs_rate PORT [HOST SECONDS]\n");
        return 2;
    }
    struct end own = open_end(), peer;
    int s = meet(argc == 4 ? argv[2] : NULL, atoi(argv[1]));
    if (s < 0 || write(s, &own, sizeof(own)) != sizeof(own) ||
        recv(s, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
        die("the other end can't be reached");
    connect_to(&peer);
    char byte = 0; /* both are connected; or the client has ended */
    if (write(s, &byte, 1) != 1 || read(s, &byte, 1) != 1)
        die("the other end has gone");
    if (argc == 2)
        return read(s, &byte, 1) < 0;
    printf("{\"name\":\"verbs_rate\",\"value\":%llu}\n",
           (unsigned long long)write_for((uint64_t)(atof(argv[3]) * 1e9), &peer));
    return 0;
}
