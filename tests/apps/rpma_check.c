// SPDX-License-Identifier: BSD-3-Clause
// A program on librpma: it writes, flushes, reads and sends, with every octet checked.
//
//   rpma_check serve ADDRESS PORT    waits for one client
//   rpma_check call ADDRESS PORT     is that client
//
// Exit status 0 when all data was right, 1 otherwise.
#include <arpa/inet.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE = 1 << 20, // of each side's memory
    MESSAGE = 64,   // the first octets are for messages
    ROUNDS = 20,
    IMM = 0x12345678,
};

#define DO(call)                                                                                   \
    do {                                                                                           \
        int did = (call);                                                                          \
        if (did != 0) {                                                                            \
            fprintf(stderr, "rpma_check: line %d: %s\n", __LINE__, rpma_err_2str(did));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define IS(truth)                                                                                  \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, "rpma_check: line %d: not true: %s\n", __LINE__, #truth);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/// The server's message to the client while they connect.
struct hello {
    uint8_t mr_size, cfg_size;
    uint8_t bytes[48];
};

struct side {
    struct rpma_peer *peer;
    struct rpma_conn_cfg *cfg;
    struct rpma_conn *conn;
    struct rpma_mr_local *mr;
    struct rpma_cq *cq;
    uint8_t *memory;
};

static void pattern(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static bool is_pattern(const uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
            return false;
    return true;
}

static void set_up(struct side *s, const char *address, enum rpma_util_ibv_context_type type)
{
    struct ibv_context *context;
    DO(rpma_utils_get_ibv_context(address, type, &context));
    DO(rpma_peer_new(context, &s->peer));
    DO(rpma_conn_cfg_new(&s->cfg));
    DO(rpma_conn_cfg_set_timeout(s->cfg, 5000));
    s->memory = aligned_alloc(4096, SIZE);
    IS(s->memory);
    memset(s->memory, 0, SIZE);
    DO(rpma_mr_reg(s->peer, s->memory, SIZE,
                   RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                       RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
                       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
                   &s->mr));
}

static void expect_event(struct side *s, enum rpma_conn_event wanted)
{
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    DO(rpma_conn_next_event(s->conn, &event));
    if (event != wanted)
        fprintf(stderr, "rpma_check: %s\n", rpma_utils_conn_event_2str(event));
    IS(event == wanted);
}

/// The next completion, which must be a success of this kind.
static struct ibv_wc expect_wc(struct side *s, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    int did;
    while ((did = rpma_cq_get_wc(s->cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
        DO(rpma_cq_wait(s->cq));
    DO(did);
    if (wc.status != IBV_WC_SUCCESS || wc.opcode != opcode)
        fprintf(stderr, "rpma_check: completion %s, opcode %d, not %d\n",
                ibv_wc_status_str(wc.status), (int)wc.opcode, (int)opcode);
    IS(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode);
    return wc;
}

static void tear_down(struct side *s)
{
    DO(rpma_conn_disconnect(s->conn));
    expect_event(s, RPMA_CONN_CLOSED);
    DO(rpma_conn_delete(&s->conn));
    DO(rpma_mr_dereg(&s->mr));
    DO(rpma_conn_cfg_delete(&s->cfg));
    DO(rpma_peer_delete(&s->peer));
    free(s->memory);
}

static void say(struct side *s, unsigned number)
{
    memcpy(s->memory, &number, sizeof(number));
    DO(rpma_send(s->conn, s->mr, 0, MESSAGE / 2, RPMA_F_COMPLETION_ALWAYS, NULL));
    expect_wc(s, IBV_WC_SEND);
}

static void serve(const char *address, const char *port)
{
    struct side s = {0};
    struct rpma_ep *ep;
    struct rpma_conn_req *request;
    struct rpma_peer_cfg *peer_cfg;
    struct hello hello = {0};
    struct rpma_conn_private_data data = {&hello, sizeof(hello)};
    size_t mr_size, cfg_size;
    set_up(&s, address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    DO(rpma_peer_cfg_new(&peer_cfg));
    DO(rpma_peer_cfg_set_direct_write_to_pmem(peer_cfg, true));
    DO(rpma_mr_get_descriptor_size(s.mr, &mr_size));
    DO(rpma_peer_cfg_get_descriptor_size(peer_cfg, &cfg_size));
    IS(mr_size + cfg_size <= sizeof(hello.bytes));
    DO(rpma_mr_get_descriptor(s.mr, hello.bytes));
    DO(rpma_peer_cfg_get_descriptor(peer_cfg, hello.bytes + mr_size));
    hello.mr_size = (uint8_t)mr_size;
    hello.cfg_size = (uint8_t)cfg_size;

    DO(rpma_ep_listen(s.peer, address, port, &ep));
    DO(rpma_ep_next_conn_req(ep, s.cfg, &request));
    DO(rpma_conn_req_recv(request, s.mr, MESSAGE / 2, MESSAGE / 2, NULL));
    DO(rpma_conn_req_connect(&request, &data, &s.conn));
    expect_event(&s, RPMA_CONN_ESTABLISHED);
    DO(rpma_conn_get_cq(s.conn, &s.cq));
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned number;
        struct ibv_wc wc = expect_wc(&s, IBV_WC_RECV);

        IS(wc.byte_len == MESSAGE / 2);
        memcpy(&number, s.memory + MESSAGE / 2, sizeof(number));
        IS(number == round);
        IS(is_pattern(s.memory + MESSAGE, SIZE - MESSAGE, round));
        pattern(s.memory + MESSAGE, SIZE - MESSAGE, round + 1000);
        DO(rpma_recv(s.conn, s.mr, MESSAGE / 2, MESSAGE / 2, NULL));
        say(&s, round);
    }
    struct ibv_wc wc = expect_wc(&s, IBV_WC_RECV_RDMA_WITH_IMM);

    IS((wc.wc_flags & IBV_WC_WITH_IMM) && ntohl(wc.imm_data) == IMM);
    IS(is_pattern(s.memory + MESSAGE, 4096, 2000));
    IS(memcmp(s.memory + 8192, "8 octets", 8) == 0);
    tear_down(&s);
    DO(rpma_ep_shutdown(&ep));
    DO(rpma_peer_cfg_delete(&peer_cfg));
}

static void call(const char *address, const char *port)
{
    struct side s = {0};
    struct rpma_conn_req *request;
    struct rpma_conn_private_data data;
    struct rpma_mr_remote *remote;
    struct rpma_peer_cfg *peer_cfg;
    struct hello hello;
    size_t size;
    set_up(&s, address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    DO(rpma_conn_req_new(s.peer, address, port, s.cfg, &request));
    DO(rpma_conn_req_connect(&request, NULL, &s.conn));
    expect_event(&s, RPMA_CONN_ESTABLISHED);
    DO(rpma_conn_get_private_data(s.conn, &data));
    IS(data.len >= sizeof(hello));
    memcpy(&hello, data.ptr, sizeof(hello));
    DO(rpma_mr_remote_from_descriptor(hello.bytes, hello.mr_size, &remote));
    DO(rpma_peer_cfg_from_descriptor(hello.bytes + hello.mr_size, hello.cfg_size, &peer_cfg));
    DO(rpma_conn_apply_remote_peer_cfg(s.conn, peer_cfg));
    DO(rpma_mr_remote_get_size(remote, &size));
    IS(size == SIZE);
    DO(rpma_conn_get_cq(s.conn, &s.cq));

    for (unsigned round = 0; round < ROUNDS; round++) {
        enum rpma_flush_type type =
            round % 2 ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;

        DO(rpma_recv(s.conn, s.mr, MESSAGE / 2, MESSAGE / 2, NULL));
        pattern(s.memory + MESSAGE, SIZE - MESSAGE, round);
        DO(rpma_write(s.conn, remote, MESSAGE, s.mr, MESSAGE, SIZE - MESSAGE,
                      RPMA_F_COMPLETION_ON_ERROR, NULL));
        DO(rpma_flush(s.conn, remote, MESSAGE, SIZE - MESSAGE, type, RPMA_F_COMPLETION_ALWAYS,
                      NULL));
        expect_wc(&s, IBV_WC_RDMA_READ); // that is how librpma flushes
        say(&s, round);
        expect_wc(&s, IBV_WC_RECV);
        DO(rpma_read(s.conn, s.mr, MESSAGE, remote, MESSAGE, SIZE - MESSAGE,
                     RPMA_F_COMPLETION_ALWAYS, NULL));
        expect_wc(&s, IBV_WC_RDMA_READ);
        IS(is_pattern(s.memory + MESSAGE, SIZE - MESSAGE, round + 1000));
    }
    DO(rpma_atomic_write(s.conn, remote, 8192, "8 octets", RPMA_F_COMPLETION_ALWAYS, NULL));
    expect_wc(&s, IBV_WC_RDMA_WRITE);
    pattern(s.memory + MESSAGE, 4096, 2000);
    DO(rpma_write_with_imm(s.conn, remote, MESSAGE, s.mr, MESSAGE, 4096, RPMA_F_COMPLETION_ALWAYS,
                           IMM, NULL));
    expect_wc(&s, IBV_WC_RDMA_WRITE);
    expect_event(&s, RPMA_CONN_CLOSED);
    DO(rpma_conn_disconnect(s.conn));
    DO(rpma_conn_delete(&s.conn));
    DO(rpma_mr_remote_delete(&remote));
    DO(rpma_peer_cfg_delete(&peer_cfg));
    DO(rpma_mr_dereg(&s.mr));
    DO(rpma_conn_cfg_delete(&s.cfg));
    DO(rpma_peer_delete(&s.peer));
    free(s.memory);
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "serve") != 0 && strcmp(argv[1], "call") != 0)) {
        fprintf(stderr, "usage: rpma_check serve|call ADDRESS PORT\n");
        return 2;
    }
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
    if (argv[1][0] == 's')
        serve(argv[2], argv[3]);
    else
        call(argv[2], argv[3]);
    printf("rpma_check: all data is right\n");
    return 0;
}
