/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state shared by all objects of one simulation: the clock, the random numbers, the frames, and
 * the caller's hooks. One thread at a time uses a world; worlds share nothing.
 */
#ifndef URNIC_SIM_WORLD_H
#define URNIC_SIM_WORLD_H

#include "sim_pkt.h"
#include "sim_rng.h"
#include "sim_window.h"

struct sim_node;
struct sim_fault;
struct sim_noise;
struct sim_port;

enum sim_dir { SIM_IN, SIM_OUT };
enum sim_fate { SIM_PASS, SIM_DROP, SIM_HELD };

struct sim_hooks {
    void *arg;
    /* Each frame that comes to or leaves a node with `watched` set, per node in order of time.
     * frame[0..len) is whole; skipped payload reads as zeros. `note` is the reason for a drop, else
     * NULL. */
    void (*frame)(void *arg, const struct sim_node *node, enum sim_dir dir, const uint8_t *frame,
                  uint32_t len, const char *note, uint64_t now);
    /* A frame reaches the end of the wire between two ports. The hook may change it, drop it (the
     * caller frees it), or hold it and give it to sim_port_arrive later. */
    enum sim_fate (*fault)(void *arg, struct sim_port *to, struct sim_pkt *p, uint64_t now);
};

struct sim_world {
    uint64_t now;       /* ns: time of the running event */
    uint64_t lookahead; /* ns in which nodes can't affect each other, 1 .. SIM_WINDOW_MAX; 0 = they
                           can at any time, and all events run in one order */
    uint64_t window;    /* ns: the longest window, 1 .. lookahead */
    struct sim_heap calls;
    struct sim_rng rng;
    struct sim_pool pool;
    struct sim_hooks hooks;
    struct sim_noise *noise; /* NULL = none */
    struct sim_fault *fault; /* NULL = none */
    bool skip_payload;
    bool failed;    /* out of memory: the run must end */
    uint64_t hops;  /* frames that have reached the end of a wire */
    uint64_t trace; /* a digest of all of them: time, place, packet */
    struct sim_wheel wheel;
    struct sim_turn turn;
};

#define SIM_CONTAINER(ptr, type, member)                                                           \
    ((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

#endif
