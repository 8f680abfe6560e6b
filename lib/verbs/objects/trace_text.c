/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of bits and numbers.
 */
#include "trace_text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

/* Append to the text. */
static void add(char buf[UV_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char buf[UV_TEXT], const char *format, ...)
{
    size_t n = strlen(buf);
    va_list args;
    va_start(args, format);
    vsnprintf(buf + n, UV_TEXT - n, format, args);
    va_end(args);
}

static const struct bit {
    unsigned bit;
    const char *name;
} accesses[] = {
    {IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
    {IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
    {IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
    {IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
    {IBV_ACCESS_MW_BIND, "MW_BIND"},
    {IBV_ACCESS_ZERO_BASED, "ZERO_BASED"},
    {IBV_ACCESS_ON_DEMAND, "ON_DEMAND"},
    {IBV_ACCESS_HUGETLB, "HUGETLB"},
    {URNIC_ACCESS_FLUSH_GLOBAL, "FLUSH_GLOBAL"},
    {1u << 9, "FLUSH_PERSISTENT"},
    {IBV_ACCESS_RELAXED_ORDERING, "RELAXED_ORDERING"},
};
static const struct bit flags[] = {
    {IBV_SEND_FENCE, "FENCE"},
    {IBV_SEND_SIGNALED, "SIGNALED"},
    {IBV_SEND_SOLICITED, "SOLICITED"},
    {IBV_SEND_INLINE, "INLINE"},
};

static void add_bits(char buf[UV_TEXT], unsigned value, const struct bit *bits, size_t n)
{
    const char *between = "";
    for (size_t i = 0; i < n; i++) {
        if (!(value & bits[i].bit))
            continue;
        add(buf, "%s%s", between, bits[i].name);
        between = "|";
        value &= ~bits[i].bit;
    }
    if (value != 0 || *between == '\0')
        add(buf, value != 0 ? "%s0x%x" : "%s%u", between, value);
}

const char *uv_text_access(unsigned access, char buf[UV_TEXT])
{
    buf[0] = '\0';
    add_bits(buf, access, accesses, sizeof(accesses) / sizeof(accesses[0]));
    return buf;
}

const char *uv_text_state(unsigned state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *uv_text_type(unsigned type)
{
    return type == IBV_QPT_RC         ? "RC"
           : type == IBV_QPT_UC       ? "UC"
           : type == IBV_QPT_UD       ? "UD"
           : type == IBV_QPT_XRC_SEND ? "XRC_SEND"
           : type == IBV_QPT_XRC_RECV ? "XRC_RECV"
                                      : "?";
}

const char *uv_text_gid(const uint8_t gid[16], char buf[UV_TEXT])
{
    static const uint8_t v4_mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    bool ip4 = memcmp(gid, v4_mapped, sizeof(v4_mapped)) == 0;
    if (inet_ntop(ip4 ? AF_INET : AF_INET6, ip4 ? gid + 12 : gid, buf, UV_TEXT) == NULL)
        buf[0] = '\0';
    return buf;
}

const char *uv_text_qp_attr(const struct ibv_qp_attr *a, unsigned mask, char buf[UV_TEXT])
{
    static const struct {
        unsigned bit;
        const char *name;
        size_t at, size;
        bool hex;
    } rows[] = {
#define FIELD(bit, field, hex)                                                                     \
    {bit, #field, offsetof(struct ibv_qp_attr, field), sizeof(((struct ibv_qp_attr *)0)->field),   \
     hex}
        FIELD(IBV_QP_PKEY_INDEX, pkey_index, false),
        FIELD(IBV_QP_PORT, port_num, false),
        FIELD(IBV_QP_QKEY, qkey, true),
        FIELD(IBV_QP_DEST_QPN, dest_qp_num, true),
        FIELD(IBV_QP_RQ_PSN, rq_psn, true),
        FIELD(IBV_QP_SQ_PSN, sq_psn, true),
        FIELD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, false),
        FIELD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, false),
        FIELD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, false),
        FIELD(IBV_QP_TIMEOUT, timeout, false),
        FIELD(IBV_QP_RETRY_CNT, retry_cnt, false),
        FIELD(IBV_QP_RNR_RETRY, rnr_retry, false),
        FIELD(IBV_QP_RATE_LIMIT, rate_limit, false),
#undef FIELD
    };
    char text[UV_TEXT];
    strcpy(buf, "{"); // NOLINT: it fits
    if (mask & IBV_QP_STATE)
        add(buf, " state %s", uv_text_state(a->qp_state));
    if (mask & IBV_QP_CUR_STATE)
        add(buf, " cur_state %s", uv_text_state(a->cur_qp_state));
    if (mask & IBV_QP_ACCESS_FLAGS)
        add(buf, " access %s", uv_text_access(a->qp_access_flags, text));
    if (mask & IBV_QP_PATH_MTU)
        add(buf, " path_mtu %u", 128u << a->path_mtu);
    if (mask & IBV_QP_AV)
        add(buf, " dgid %s sgid_index %u", uv_text_gid(a->ah_attr.grh.dgid.raw, text),
            a->ah_attr.grh.sgid_index);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint8_t *at = (const uint8_t *)a + rows[i].at;
        uint32_t v = 0;
        if (!(mask & rows[i].bit))
            continue;
        memcpy(&v, at, rows[i].size); /* little-endian hosts only */
        add(buf, rows[i].hex ? " %s 0x%x" : " %s %u", rows[i].name, v);
    }
    add(buf, " }");
    return buf;
}

static uint64_t octets(const struct ibv_sge *sge, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += sge[i].length;
    return sum;
}

static void add_more(char buf[UV_TEXT], unsigned more)
{
    if (more > 0)
        add(buf, " and %u more", more);
}

const char *uv_text_send(const struct ibv_send_wr *wr, char buf[UV_TEXT])
{
    unsigned more = 0;
    strcpy(buf, "NULL"); // NOLINT: it fits
    if (wr == NULL)
        return buf;
    snprintf(buf, UV_TEXT, "{wr_id 0x%llx %s %llu octets", (unsigned long long)wr->wr_id,
             ibv_wr_opcode_str(wr->opcode), (unsigned long long)octets(wr->sg_list, wr->num_sge));
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
        add(buf, " remote 0x%llx rkey 0x%x", (unsigned long long)wr->wr.rdma.remote_addr,
            wr->wr.rdma.rkey);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        add(buf, " remote 0x%llx rkey 0x%x", (unsigned long long)wr->wr.atomic.remote_addr,
            wr->wr.atomic.rkey);
        break;
    default:
        break;
    }
    add(buf, " ");
    add_bits(buf, wr->send_flags, flags, sizeof(flags) / sizeof(flags[0]));
    add(buf, "}");
    for (wr = wr->next; wr != NULL; wr = wr->next)
        more++;
    add_more(buf, more);
    return buf;
}

const char *uv_text_recv(const struct ibv_recv_wr *wr, char buf[UV_TEXT])
{
    unsigned more = 0;
    strcpy(buf, "NULL"); // NOLINT: it fits
    if (wr == NULL)
        return buf;
    snprintf(buf, UV_TEXT, "{wr_id 0x%llx %llu octets}", (unsigned long long)wr->wr_id,
             (unsigned long long)octets(wr->sg_list, wr->num_sge));
    for (wr = wr->next; wr != NULL; wr = wr->next)
        more++;
    add_more(buf, more);
    return buf;
}

const char *uv_text_wc(const struct ibv_wc *wc, int n, char buf[UV_TEXT])
{
    buf[0] = '\0';
    for (int i = 0; i < n && i < 4; i++) {
        add(buf, "{wr_id 0x%llx %s", (unsigned long long)wc[i].wr_id,
            ibv_wc_status_str(wc[i].status));
        if (wc[i].status == IBV_WC_SUCCESS)
            add(buf, " %u octets", wc[i].byte_len);
        add(buf, " qp 0x%x}", wc[i].qp_num);
    }
    if (n > 4)
        add_more(buf, (unsigned)n - 4);
    return buf;
}
