/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pcapng, the writing half: section header, interface description, enhanced packet and interface
 * statistics blocks, in the machine's byte order (the format's magic tells readers which).
 */
#include "pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TSRESOL_NS 9u /* 10^-9 s */

#define BUFFER_DEFAULT (256u << 10)
#define BUFFER_MIN     (64u << 10)
#define FRAME_MOST     (32u << 10)
#define TEXT_MOST      256u

struct pcapng {
    struct pcapng_sink sink;
    bool dead; /* the file is incomplete: nothing is added */
    uint8_t *buf;
    size_t size;
    size_t used;  /* octets to be written: buf[0..used) */
    size_t block; /* start of the block being assembled */
    int first_error;
    uint64_t epoch, limit;
    uint32_t snaplen;
    int interfaces;
    uint64_t if_packets[PCAPNG_INTERFACES], if_drops[PCAPNG_INTERFACES], last_ns;
    struct pcapng_stats stats;
};

/* ---- assembling a block at buf[used..) ---- */

static void put(struct pcapng *w, const void *data, size_t len)
{
    static const uint8_t zero[4];
    memcpy(w->buf + w->used, data, len);
    w->used += len;
    size_t pad = -len & 3;
    memcpy(w->buf + w->used, zero, pad);
    w->used += pad;
}

static void put32(struct pcapng *w, uint32_t v)
{
    put(w, &v, sizeof(v));
}

static void put_option(struct pcapng *w, uint16_t code, const void *data, size_t len)
{
    uint16_t head[2] = {code, (uint16_t)len};
    put(w, head, sizeof(head));
    put(w, data, len);
}

static void put_text(struct pcapng *w, uint16_t code, const char *text, size_t most)
{
    if (text && *text)
        put_option(w, code, text, strnlen(text, most));
}

static void block_begin(struct pcapng *w, uint32_t type)
{
    w->block = w->used;
    put32(w, type);
    put32(w, 0); /* the length comes at the end */
}

static void block_end(struct pcapng *w)
{
    put_option(w, OPT_END, "", 0);
    uint32_t len = (uint32_t)(w->used - w->block + 4);
    memcpy(w->buf + w->block + 4, &len, sizeof(len));
    put32(w, len);
}

static void put_time(struct pcapng *w, uint64_t ns)
{
    put32(w, (uint32_t)(ns >> 32));
    put32(w, (uint32_t)ns);
}

/* ---- getting rid of it ---- */

int pcapng_flush(struct pcapng *w)
{
    size_t done = 0;
    int rc = 0;
    while (!w->dead && done < w->used) {
        ssize_t n = w->sink.write(w->sink.arg, w->buf + done, w->used - done);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        rc = (int)n;
        if (rc == -EAGAIN)
            break;
        w->stats.errors++;
        w->stats.last_error = -rc;
        if (!w->first_error)
            w->first_error = rc;
        /* A partial block in the file can't be repaired, and readers would not find later blocks.
         */
        w->dead = true;
    }
    w->stats.file_bytes += done;
    memmove(w->buf, w->buf + done, w->used - done);
    w->used -= done;
    return w->dead ? w->first_error : rc;
}

/* Room for a block of `len` octets? Flushes if need be. */
static bool room(struct pcapng *w, size_t len)
{
    if (!w->dead && w->size - w->used < len)
        pcapng_flush(w);
    return !w->dead && w->size - w->used >= len &&
           (!w->limit || w->stats.file_bytes + w->used + len <= w->limit);
}

/* ---- the contract ---- */

static void section_header(struct pcapng *w, const char *application)
{
    int64_t unknown = -1;
    const uint16_t version[2] = {1, 0}; /* major, minor */
    block_begin(w, BLOCK_SECTION);
    put32(w, PCAPNG_ORDER_MAGIC);
    put(w, version, sizeof(version));
    put(w, &unknown, sizeof(unknown));
    put_text(w, OPT_SECTION_APPLICATION, application ? application : "urnic", TEXT_MOST);
    block_end(w);
}

int pcapng_open(const struct pcapng_sink *sink, const struct pcapng_options *opt,
                struct pcapng **out)
{
    static const struct pcapng_options defaults;
    struct pcapng *w = calloc(1, sizeof(*w));
    if (!opt)
        opt = &defaults;
    if (!w)
        goto no_memory;
    w->size = opt->buffer ? opt->buffer : BUFFER_DEFAULT;
    if (w->size < BUFFER_MIN)
        w->size = BUFFER_MIN;
    w->buf = malloc(w->size);
    if (!w->buf)
        goto no_memory;
    w->sink = *sink;
    w->epoch = opt->epoch;
    w->limit = opt->limit;
    w->snaplen = opt->snaplen ? opt->snaplen : FRAME_MOST;
    if (w->snaplen > FRAME_MOST)
        w->snaplen = FRAME_MOST;
    section_header(w, opt->application);
    *out = w;
    return 0;
no_memory:
    free(w);
    if (sink->close)
        sink->close(sink->arg);
    return -ENOMEM;
}

int pcapng_interface(struct pcapng *w, const char *name, const char *description, uint64_t speed)
{
    uint8_t resolution = TSRESOL_NS;
    uint16_t link[2] = {CAPTURE_ETHERNET, 0};
    if (w->interfaces == (int)PCAPNG_INTERFACES || !room(w, 2 * TEXT_MOST + 64))
        return -ENOSPC;
    block_begin(w, BLOCK_INTERFACE);
    put(w, link, sizeof(link));
    put32(w, w->snaplen);
    put_text(w, OPT_INTERFACE_NAME, name, TEXT_MOST);
    put_text(w, OPT_INTERFACE_DESCRIPTION, description, TEXT_MOST);
    if (speed)
        put_option(w, OPT_INTERFACE_SPEED, &speed, sizeof(speed));
    put_option(w, OPT_INTERFACE_TSRESOL, &resolution, 1);
    block_end(w);
    return w->interfaces++;
}

bool pcapng_packet(struct pcapng *w, int interface, uint64_t ns, enum capture_dir dir,
                   const uint8_t *frame, uint32_t len, const char *comment)
{
    uint32_t kept = len < w->snaplen ? len : w->snaplen;
    uint32_t flags = dir; /* bits 1..0: 01 inbound, 10 outbound */
    if (interface < 0 || interface >= w->interfaces)
        return false;
    if (!room(w, kept + PCAPNG_COMMENT_MAX + 64)) {
        w->stats.drops++;
        w->if_drops[interface]++;
        return false;
    }
    w->last_ns = ns + w->epoch;
    block_begin(w, BLOCK_PACKET);
    put32(w, (uint32_t)interface);
    put_time(w, w->last_ns);
    put32(w, kept);
    put32(w, len);
    put(w, frame, kept);
    if (dir != CAPTURE_NO_DIR)
        put_option(w, OPT_PACKET_FLAGS, &flags, sizeof(flags));
    put_text(w, OPT_COMMENT, comment, PCAPNG_COMMENT_MAX);
    block_end(w);
    w->if_packets[interface]++;
    w->stats.packets++;
    w->stats.bytes += len;
    return true;
}

void pcapng_stats(const struct pcapng *w, struct pcapng_stats *out)
{
    *out = w->stats;
}

static void interface_statistics(struct pcapng *w, int interface)
{
    if (w->dead || w->size - w->used < 64)
        return;
    block_begin(w, BLOCK_STATISTICS);
    put32(w, (uint32_t)interface);
    put_time(w, w->last_ns);
    put_option(w, OPT_STATISTICS_RECEIVED, &w->if_packets[interface], sizeof(uint64_t));
    put_option(w, OPT_STATISTICS_DROPS, &w->if_drops[interface], sizeof(uint64_t));
    block_end(w);
}

int pcapng_close(struct pcapng *w)
{
    pcapng_flush(w);
    for (int i = 0; i < w->interfaces; i++)
        interface_statistics(w, i);
    int rc = pcapng_flush(w);
    int closed = w->sink.close ? w->sink.close(w->sink.arg) : 0;
    if (rc == 0)
        rc = closed;
    free(w->buf);
    free(w);
    return rc;
}
