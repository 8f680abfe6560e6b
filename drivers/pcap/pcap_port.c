/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port on capture files. libpcap reads, lib/capture writes. Frames are read ahead into a ring of
 * buffers, because libpcap's own buffer is valid for one packet only.
 */
#include "pcap_port.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io_arg.h"
#include "pcapng_file.h"

#define RING 256u /* a power of two, at least two bursts */

struct read_frame {
    uint64_t due; /* ns after the first frame of the file */
    uint32_t len;
    uint8_t *data;
};

struct pcap_port {
    struct io_port io;
    pcap_t *in;
    struct pcapng *out;
    int out_if;
    bool eof, paced, started;
    uint64_t first_ns; /* time stamp of the file's first frame */
    uint64_t start;    /* `now` of the first rx_peek */
    struct read_frame ring[RING];
    /* Frames head .. head + lent are with the caller, those up to tail wait. */
    uint64_t head, lent, tail;
    struct io_stats stats;
    struct io_link link;
    uint8_t *rx_arena, *tx_arena;
};

static struct pcap_port *port_of(struct io_port *io)
{
    return (struct pcap_port *)(void *)io;
}

static void link_down(struct pcap_port *p)
{
    if (p->link.up) {
        p->link.up = false;
        p->link.changes++;
    }
}

/* Read ahead until the ring is full or the file ends. */
static void read_ahead(struct pcap_port *p)
{
    struct pcap_pkthdr *h;
    const u_char *data;

    while (!p->eof && p->tail - p->head < RING) {
        int rc = pcap_next_ex(p->in, &h, &data);
        if (rc != 1) { /* -2 end of file, -1 damaged: the rest can't be read */
            p->stats.rx_drop += rc == -1;
            p->eof = true;
            return;
        }
        if (h->len > p->io.caps.frame_max) {
            p->stats.rx_oversize++;
            continue;
        }
        if (h->caplen < h->len || h->len == 0) {
            p->stats.rx_drop++;
            continue;
        }
        /* Opened with nanosecond precision: tv_usec holds ns. */
        uint64_t ns = (uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec;
        if (!p->started) {
            p->started = true;
            p->first_ns = ns;
        }
        struct read_frame *f = &p->ring[p->tail++ % RING];
        f->due = ns > p->first_ns ? ns - p->first_ns : 0;
        f->len = h->len;
        memcpy(f->data, data, h->len);
    }
}

static unsigned port_rx_peek(struct io_port *io, struct io_frame *frames, unsigned max,
                             uint64_t now)
{
    struct pcap_port *p = port_of(io);
    unsigned n = 0;
    if (p->start == UINT64_MAX)
        p->start = now;
    if (p->tail - p->head - p->lent < max)
        read_ahead(p);
    while (n < max && p->head + p->lent != p->tail) {
        const struct read_frame *f = &p->ring[(p->head + p->lent) % RING];
        if (p->paced && f->due > now - p->start)
            break;
        frames[n++] = (struct io_frame){.data = f->data, .len = f->len};
        p->stats.rx_bytes += f->len;
        p->lent++;
    }
    p->stats.rx_frames += n;
    if (p->eof && p->head == p->tail)
        link_down(p);
    return n;
}

static void port_rx_release(struct io_port *io, unsigned n)
{
    struct pcap_port *p = port_of(io);
    p->head += n;
    p->lent -= n;
    if (p->eof && p->head == p->tail)
        link_down(p);
}

static unsigned port_tx_reserve(struct io_port *io, struct io_slot *slots, unsigned max,
                                uint64_t now)
{
    struct pcap_port *p = port_of(io);
    (void)now;
    for (unsigned i = 0; i < max; i++)
        slots[i] = (struct io_slot){.data = p->tx_arena + (size_t)i * IO_FRAME_MAX,
                                    .cap = io->caps.frame_max};
    return max;
}

static void port_tx_commit(struct io_port *io, const struct io_slot *slots, unsigned n,
                           uint64_t now)
{
    struct pcap_port *p = port_of(io);
    for (unsigned i = 0; i < n; i++) {
        uint32_t len = slots[i].len;
        if (len == 0)
            continue;
        if (!p->out || len > io->caps.frame_max ||
            !pcapng_packet(p->out, p->out_if, now, CAPTURE_OUT, slots[i].data, len, NULL)) {
            p->stats.tx_drop++;
            continue;
        }
        p->stats.tx_frames++;
        p->stats.tx_bytes += len;
    }
}

static uint64_t port_deadline(struct io_port *io)
{
    struct pcap_port *p = port_of(io);
    if (p->in)
        read_ahead(p);
    if (p->head + p->lent == p->tail)
        return UINT64_MAX;
    if (!p->paced || p->start == UINT64_MAX)
        return 0;
    return p->start + p->ring[(p->head + p->lent) % RING].due;
}

/* Flush it for a reader of the growing file. */
static void port_service(struct io_port *io, uint64_t now)
{
    (void)now;
    if (port_of(io)->out)
        pcapng_flush(port_of(io)->out);
}

static void port_link(struct io_port *io, struct io_link *out)
{
    *out = port_of(io)->link;
}

static void port_stats(struct io_port *io, struct io_stats *out)
{
    *out = port_of(io)->stats;
}

static void port_close(struct io_port *io)
{
    struct pcap_port *p = port_of(io);
    if (p->in)
        pcap_close(p->in);
    if (p->out)
        pcapng_close(p->out);
    free(p->rx_arena);
    free(p->tx_arena);
    free(p);
}

static const struct io_ops pcap_ops = {
    .name = "pcap",
    .rx_peek = port_rx_peek,
    .rx_release = port_rx_release,
    .tx_reserve = port_tx_reserve,
    .tx_commit = port_tx_commit,
    .deadline = port_deadline,
    .service = port_service,
    .link = port_link,
    .stats = port_stats,
    .close = port_close,
};

static int open_in(struct pcap_port *p, const char *path, char *err, size_t err_size)
{
    char why[PCAP_ERRBUF_SIZE];
    p->in = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
    if (!p->in)
        return io_fail(err, err_size, -ENOENT, "pcap: can't read '%s': %s", path, why);
    if (pcap_datalink(p->in) != DLT_EN10MB)
        return io_fail(err, err_size, -EINVAL, "pcap: '%s' holds %s, not Ethernet frames", path,
                       pcap_datalink_val_to_description(pcap_datalink(p->in)));
    return 0;
}

/* Refuse to read the file that is written: it is truncated first, and reading it would never end.
 */
static bool same_file(const char *in, const char *out)
{
    struct stat a, b;
    return stat(in, &a) == 0 && stat(out, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int open_out(struct pcap_port *p, const char *path, char *err, size_t err_size)
{
    int rc = pcapng_create(path, PCAPNG_DROPS, NULL, &p->out);
    if (rc)
        return io_fail(err, err_size, rc, "pcap: can't write '%s': %s", path, strerror(-rc));
    p->out_if = pcapng_interface(p->out, path, "urnic pcap port", 0);
    return 0;
}

/* The positional items before the first KEY=VALUE: two file names. */
static int split(const char *args, char in[IO_SPEC_MAX], char out[IO_SPEC_MAX])
{
    char *names[2] = {in, out};
    in[0] = out[0] = '\0';
    for (int i = 0; i < 3 && *args; i++) {
        size_t item = strcspn(args, ",");
        if (memchr(args, '=', item))
            return io_arg_bare(args, &item) ? -EINVAL : 0;
        if (i == 2 || item >= IO_SPEC_MAX)
            return -EINVAL;
        memcpy(names[i], args, item);
        names[i][item] = '\0';
        args += item;
        args += *args == ',';
    }
    return 0;
}

static int parse(const char *args, char in[IO_SPEC_MAX], char out[IO_SPEC_MAX], bool *paced,
                 char *err, size_t err_size)
{
    static const char *const keys[] = {"paced", NULL};
    char value[16] = "";
    if (io_arg_unknown(args, keys, value, sizeof(value)))
        return io_fail(err, err_size, -EINVAL,
                       "pcap: key '%s' is unknown or given twice (key: paced=on)", value);
    if (split(args, in, out) || (!in[0] && !out[0]))
        return io_fail(err, err_size, -EINVAL, "pcap: want pcap:IN,OUT; one of them may be empty");
    int rc = io_arg(args, "paced", value, sizeof(value));
    if (rc && (rc < 0 || io_parse_bool(value, paced)))
        return io_fail(err, err_size, -EINVAL, "pcap: paced=%s: want on or off", value);
    return 0;
}

int io_pcap_check(const char *args, char *err, size_t err_size)
{
    char in[IO_SPEC_MAX], out[IO_SPEC_MAX];
    bool paced;
    return parse(args, in, out, &paced, err, err_size);
}

int io_pcap_open(const char *args, const struct io_open_params *params, struct io_port **out,
                 char *err, size_t err_size)
{
    char in[IO_SPEC_MAX] = "", to[IO_SPEC_MAX] = "";
    bool paced = false;
    struct pcap_port *p;
    int rc = parse(args, in, to, &paced, err, err_size);
    if (rc)
        return rc;
    p = calloc(1, sizeof(*p));
    if (!p)
        return io_fail(err, err_size, -ENOMEM, "pcap: no memory");
    p->paced = paced;
    p->io.ops = &pcap_ops;
    p->io.caps.frame_max = IO_FRAME_MAX;
    if (params->frame_max && params->frame_max < IO_FRAME_MAX)
        p->io.caps.frame_max = params->frame_max;
    p->io.caps.rx_fd = -1;
    memcpy(p->io.caps.mac, params->mac, 6);
    p->start = UINT64_MAX;
    p->eof = !in[0];
    p->link.up = true;
    p->rx_arena = malloc((size_t)RING * IO_FRAME_MAX);
    p->tx_arena = malloc((size_t)IO_BURST_MAX * IO_FRAME_MAX);
    if (!p->rx_arena || !p->tx_arena) {
        rc = io_fail(err, err_size, -ENOMEM, "pcap: no memory");
        goto fail;
    }
    for (size_t i = 0; i < RING; i++)
        p->ring[i].data = p->rx_arena + i * IO_FRAME_MAX;
    if (in[0] && to[0] && same_file(in, to)) {
        rc = io_fail(err, err_size, -EINVAL, "pcap: IN and OUT are the same file, '%s'", to);
        goto fail;
    }
    rc = in[0] ? open_in(p, in, err, err_size) : 0;
    if (rc == 0 && to[0])
        rc = open_out(p, to, err, err_size);
    if (rc)
        goto fail;
    *out = &p->io;
    return 0;
fail:
    port_close(&p->io);
    return rc;
}
