/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inside of the emulated link: shared by the files of this folder only. mem_link.c moves frames
 * between ports, mem_queue.c keeps those in flight, mem_port.c is the driver.
 *
 * A frame lives in one buffer from tx_reserve to rx_release. The buffer belongs to the pool of the
 * port that sent it; only its pointer moves. The link's lock covers everything here except where a
 * field says otherwise; it is taken once a burst.
 */
#ifndef URNIC_MEM_INTERNAL_H
#define URNIC_MEM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fault_dice.h"
#include "mem_fault.h"
#include "mem_link.h"

#define MEM_WIRE_OVERHEAD 24u         /* preamble 8, FCS 4, gap 12 */
#define MEM_NIC_BACKLOG   (64u << 10) /* most octets that wait in a port without a queue limit */
#define MEM_HELD_MAX      16u         /* reordered frames under way to one port */
#define MEM_RULES_PATH    256u
#define MEM_TX_CACHE      (2u * IO_BURST_MAX)
#define MEM_MACS          256u /* entries of the switch's address table, a power of two */

struct mem_link_config {
    struct mem_link_faults faults;
    uint64_t seed, frame, slots, log;
    char rules[MEM_RULES_PATH]; /* file, "" = none */
};

struct mem_buf {
    _Alignas(64) uint32_t owner; /* index of the port whose pool has it */
    uint32_t len;
    uint32_t gap;  /* > 0: held until so many frames have overtaken it */
    uint64_t flow; /* flow of the frames that count for `gap`; 0 = any */
    uint8_t data[] __attribute__((aligned(64)));
};

struct mem_entry {
    uint64_t at; /* arrival; 0 = at once */
    struct mem_buf *buf;
};

/* A place for a port on a link. Outlives the port, because frames in flight do. */
struct mem_socket {
    bool open;
    bool plugged;   /* mem_link_up */
    atomic_bool up; /* read without the lock */
    atomic_uint_fast64_t changes;
    uint32_t frame_max;
    uint8_t mac[6];

    /* sending */
    uint8_t *arena;        /* slots buffers of link->stride octets */
    struct mem_buf **pool; /* free ones, the warmest on top */
    uint32_t pool_n;
    bool wants_room;  /* tx_reserve gave less than it was asked for */
    uint64_t room_at; /* earliest time of more room; UINT64_MAX = when a receiver releases */
    bool paused;
    uint64_t rng;
    struct mem_link_faults faults;
    struct mem_link_stats stats;

    /* the queue towards this port: ring[head..tail), sorted by arrival. The receiver holds the
     * first `lent`; arrived_bytes counts the first `arrived` */
    struct mem_entry *ring;
    uint64_t head, tail, mask;
    uint64_t lent, arrived, arrived_bytes;
    atomic_uint_fast64_t waiting; /* tail - head - lent, read without the lock */
    uint64_t busy_until;          /* time when the last frame's last bit leaves the queue */
    uint64_t busy_rem;            /* its fraction of a ns: bits * 1e9 modulo rate */
    struct mem_buf *held[MEM_HELD_MAX];
    unsigned held_n;
    bool over_xoff;
    uint64_t rx_oversize;

    /* wake-up */
    int fd;
    bool armed;
};

struct mem_link {
    pthread_mutex_t lock;
    char name[MEM_LINK_NAME];
    struct mem_link *next; /* registry */
    unsigned refs;         /* registry's lock */
    struct mem_link_config cfg;
    struct mem_link_faults later; /* faults of ports opened later */
    size_t stride;
    unsigned opened; /* ports now */
    bool deserted;   /* one of several ports is left */
    unsigned top;    /* sockets ever used: [0, top) */
    struct mem_socket *sockets[MEM_LINK_PORTS];
    uint64_t last_now;
    struct fault *faults; /* rules in the language of lib/fault; NULL = none */
    mem_link_rule rule;
    void *rule_ctx;
    struct mem_link_drop *drops; /* ring of cfg.log, allocated at the first drop */
    uint64_t drop_n;
    struct {
        uint8_t mac[6];
        bool used;
        uint8_t port;
    } macs[MEM_MACS];
};

/* The port that a driver's user holds. */
struct mem_port {
    struct io_port io;
    struct mem_link *link;
    struct mem_socket *sock;
    unsigned index;
    struct mem_buf *cache[MEM_TX_CACHE]; /* free buffers at hand, the port's thread only */
    unsigned cache_n;
    struct mem_buf *reserved[IO_BURST_MAX];
    unsigned reserved_n;
    bool may_be_full;      /* a rate or PFC limits each reservation */
    struct io_stats stats; /* the port's thread only */
};

/* mem_spec.c: read "LINK[,KEY=VALUE...]". `have` is NULL for a new link, else its values: every key
 * given must agree. Returns 0 or -EINVAL with the reason in err. */
int mem_spec_parse(const char *args, const struct mem_link_config *have, uint64_t seed, char *name,
                   struct mem_link_config *cfg, char *err, size_t err_size);

/* FNV-1a. Runs of a link depend on its results for MAC addresses and names. */
static inline uint32_t mem_hash(const void *data, size_t len)
{
    const uint8_t *octet = data;
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ octet[i]) * 16777619u;
    return h;
}

/* Three ports or more make the link a switch. */
static inline bool mem_link_is_switch(const struct mem_link *link)
{
    return link->opened > 2;
}

/* mem_queue.c, all under the link's lock. */
/* Entry number i of the queue towards a port, from s->head on. */
static inline struct mem_entry *mem_queue_at(const struct mem_socket *s, uint64_t i)
{
    return &s->ring[i & s->mask];
}
/* Insert by arrival time, after equals, and never before frames that have arrived or are lent.
 * False: no memory. */
bool mem_queue_put(struct mem_socket *s, struct mem_buf *buf, uint64_t at, uint64_t now);
/* Remove entry number `pos`; the buffer becomes the caller's. */
void mem_queue_remove(struct mem_socket *s, uint64_t pos);
/* A frame of `flow` was sent, to arrive at `at`. Release the held frames that enough frames have
 * overtaken now. */
void mem_queue_passed(struct mem_socket *s, uint64_t flow, uint64_t at, uint64_t now);
/* A frame is no longer held. */
void mem_queue_unhold(struct mem_socket *s, struct mem_buf *buf);
/* Count the octets that have arrived and are not released by the receiver. */
void mem_queue_arrive(struct mem_socket *s, uint64_t now);
/* After every change: publish, for the receiver without the lock, how much waits. */
void mem_queue_tell(struct mem_socket *s);

/* mem_link.c, all under the link's lock. `dir` is the number of the port that sends. */
/* Octets that wait to be serialized towards a port: at the line rate, the time until its queue is
 * empty. */
uint64_t mem_socket_backlog(const struct mem_socket *dst, uint64_t rate, uint64_t now);
/* Send a frame. Its buffer belongs to the link from now on. */
void mem_socket_send(struct mem_link *link, unsigned dir, struct mem_buf *buf, uint64_t now);
/* Lose the frames in flight from port `index` that have not arrived by `now`, and those in flight
 * to it: with `all`, every frame that isn't borrowed. */
void mem_socket_flush(struct mem_link *link, unsigned index, bool all, uint64_t now);
/* May port `dir` send now? Otherwise sets its room_at. */
bool mem_socket_may_send(struct mem_link *link, unsigned dir, uint64_t now);
/* Return a buffer to the pool of its port, and tell the port if it waits for room. */
void mem_buf_free(struct mem_link *link, struct mem_buf *buf);
/* A port was opened, closed, plugged or unplugged: set which links are up. */
void mem_links_update(struct mem_link *link);

/* A frame from port `from` to port `to`, or to where its MAC address says. */
void mem_socket_deliver(struct mem_link *link, unsigned from, unsigned to, struct mem_buf *buf,
                        uint64_t now);
void mem_socket_forward(struct mem_link *link, unsigned from, struct mem_buf *buf, uint64_t now);
/* A buffer of port `from`'s; NULL = it has none left. */
struct mem_buf *mem_buf_take(struct mem_link *link, unsigned from);

/* mem_mac.c, under the link's lock. */
/* A frame from this address arrived at `port`. Multicast addresses belong to no port. */
void mem_mac_learn(struct mem_link *link, const uint8_t mac[6], unsigned port);
/* The open port with a MAC address, or MEM_LINK_ALL. */
unsigned mem_mac_find(const struct mem_link *link, const uint8_t mac[6]);

/* mem_rules.c, under the link's lock: apply the rules to a frame, which they may change. */
void mem_rules_apply(struct mem_link *link, unsigned dir, struct mem_buf *buf, uint64_t now,
                     struct mem_link_verdict *v);
/* Read the rules that cfg names. Returns 0 and the rules (NULL: it names none), or -errno with the
 * reason in err. */
int mem_rules_open(const struct mem_link_config *cfg, struct fault **out, char *err,
                   size_t err_size);

/* mem_registry.c: attach a port to the link that args name, and make the link if it does not exist.
 * Returns 0 and a reference to the link and the port's place, or -errno. */
int mem_registry_attach(const char *args, const struct io_open_params *params,
                        struct mem_link **link, unsigned *index, char *err, size_t err_size);

#endif
