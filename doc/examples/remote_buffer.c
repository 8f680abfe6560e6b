/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Example 2: another machine's memory, used like a file with pwrite and pread.
 *
 *     remote_buffer -d urn0                  the server: offers 1 MiB, then takes no part any more
 *     remote_buffer -d urn1 10.0.0.1         the client: writes all of it, reads it back, compares
 *
 * What it shows: one-sided operations. The server tells the client its memory's address and key in
 * the private data of the connection, and from then on its processor has nothing to do.
 */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urnic/urnic.h>

#define SIZE  (1u << 20)
#define CHUNK (64u << 10)
#define PORT  7472

struct offer { /* the server's private data */
    uint64_t addr;
    uint32_t rkey;
    uint32_t size;
};

struct file { /* the client's view of it */
    struct urnic_qp *qp;
    struct urnic_cq *cq;
    struct urnic_mr *mr; /* bounce buffer of CHUNK octets */
    struct offer offer;
};

static void check(int err, const char *what)
{
    if (err < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-err));
        exit(1);
    }
}

/* One operation between the bounce buffer and the remote memory; waits for its completion. */
static void transfer(struct file *f, enum urnic_wr_opcode op, uint64_t off, uint32_t len)
{
    struct urnic_sge sge = {.addr = f->mr->iova, .length = len, .lkey = f->mr->lkey};
    struct urnic_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = op,
        .send_flags = URNIC_SEND_SIGNALED,
        .rdma = {.remote_addr = f->offer.addr + off, .rkey = f->offer.rkey},
    };
    struct urnic_wc wc;
    int n;
    check(urnic_post_send(f->qp, &wr, NULL), "post");
    while ((n = urnic_poll_cq(f->cq, 1, &wc)) == 0)
        sched_yield();
    check(n, "poll");
    if (wc.status != URNIC_WC_SUCCESS) {
        fprintf(stderr, "transfer: %s\n", urnic_wc_status_str(wc.status));
        exit(1);
    }
}

static void remote_pwrite(struct file *f, const void *data, uint64_t off, uint32_t len)
{
    memcpy(f->mr->addr, data, len);
    transfer(f, URNIC_WR_RDMA_WRITE, off, len);
}

static void remote_pread(struct file *f, void *data, uint64_t off, uint32_t len)
{
    transfer(f, URNIC_WR_RDMA_READ, off, len);
    memcpy(data, f->mr->addr, len);
}

static void use(struct file *f)
{
    uint8_t *sent = malloc(SIZE), *got = malloc(CHUNK);
    for (uint32_t i = 0; i < SIZE; i++)
        sent[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t off = 0; off < SIZE; off += CHUNK)
        remote_pwrite(f, sent + off, off, CHUNK);
    for (uint32_t off = 0; off < SIZE; off += CHUNK) {
        remote_pread(f, got, off, CHUNK);
        if (memcmp(sent + off, got, CHUNK) != 0) {
            fprintf(stderr, "octets differ in the chunk at %u\n", off);
            exit(1);
        }
    }
    remote_pwrite(f, "done", SIZE - 5, 5); /* any offset, any length */
    remote_pread(f, got, SIZE - 7, 7);
    printf("wrote and read back %u octets; the last word is \"%s\"\n", SIZE, (char *)got + 2);
    free(sent);
    free(got);
}

static void serve(struct urnic_context *ctx, struct urnic_conn_attr *attr,
                  const struct urnic_mr *mr)
{
    struct urnic_listener *listener;
    struct urnic_conn *conn;
    struct urnic_cm_event ev;
    struct offer offer = {.addr = mr->iova, .rkey = mr->rkey, .size = SIZE};
    attr->param.private_data = &offer;
    attr->param.private_data_len = sizeof(offer);
    attr->timeout_ms = -1;
    check(urnic_listen_addr(ctx, NULL, PORT, 1, &listener), "listen");
    printf("listening\n");
    fflush(stdout);
    check(urnic_accept_conn(listener, attr, NULL, NULL, &conn), "accept");
    do /* nothing to do until the client leaves */
        check(urnic_get_cm_event(conn->channel, &ev), "event");
    while (ev.event != URNIC_CM_DISCONNECTED);
    printf("the client left \"%s\" at the end\n", (char *)mr->addr + SIZE - 5);
    urnic_close_conn(conn);
    urnic_close_listener(listener);
}

static void open_file(struct urnic_context *ctx, struct urnic_conn_attr *attr, const char *server,
                      struct urnic_mr *mr)
{
    struct urnic_conn *conn;
    struct file f = {.cq = attr->qp.send_cq, .mr = mr};
    check(urnic_connect_addr(ctx, server, PORT, attr, NULL, NULL, &conn), "connect");
    if (conn->private_data_len < sizeof(f.offer)) {
        fprintf(stderr, "the server offers nothing\n");
        exit(1);
    }
    memcpy(&f.offer, conn->private_data, sizeof(f.offer));
    f.qp = conn->qp;
    use(&f);
    urnic_close_conn(conn);
}

int main(int argc, char **argv)
{
    const char *device = NULL;
    for (int opt; (opt = getopt(argc, argv, "d:")) != -1;) {
        if (opt != 'd')
            return 2;
        device = optarg;
    }
    bool server = optind >= argc;
    size_t size = server ? SIZE : CHUNK;
    struct urnic_context *ctx;
    struct urnic_conn_attr attr = {
        .qp = {.qp_type = URNIC_QPT_RC,
               .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}},
    };
    struct urnic_cq *cq;
    struct urnic_mr *mr;
    void *mem;
    check(urnic_open(device, &ctx), "open device");
    check(urnic_alloc_pd(ctx, &attr.pd), "protection domain");
    check(urnic_create_cq(ctx, 16, NULL, NULL, &cq), "completion queue");
    attr.qp.send_cq = attr.qp.recv_cq = cq;
    check(urnic_alloc(ctx, size, &mem), "memory");
    unsigned access = URNIC_ACCESS_LOCAL_WRITE;
    if (server)
        access |= URNIC_ACCESS_REMOTE_WRITE | URNIC_ACCESS_REMOTE_READ;
    check(urnic_reg_mr(attr.pd, mem, size, access, &mr), "register");

    if (server)
        serve(ctx, &attr, mr);
    else
        open_file(ctx, &attr, argv[optind], mr);

    urnic_dereg_mr(mr);
    urnic_free(ctx, mem);
    urnic_destroy_cq(cq);
    urnic_dealloc_pd(attr.pd);
    urnic_close(ctx);
    return 0;
}
