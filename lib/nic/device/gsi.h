/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pair 1 of a device, the general services interface. The connection manager (lib/nic/cm)
 * serves it; a device knows only this table of its functions.
 *
 * On the device's worker, but for `destroy`.
 */
#ifndef NIC_GSI_H
#define NIC_GSI_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "wire.h"

#define GSI_ALL (-2)

struct gsi;
struct stats_list;

struct gsi_ops {
    /* A datagram was received: its packet's headers, and its MAD of `len` octets. Valid for the
     * call only. */
    void (*rx)(struct gsi *g, const struct wire_pkt *pkt, const uint8_t *mad, uint32_t len);
    /* The member of the device's team that serves this MAD, received at the address `dip` and not
     * checked yet; -1 = unknown; GSI_ALL = every member has to look. */
    int (*member)(const struct gsi *g, const uint8_t *mad, uint32_t len,
                  const struct wire_addr *dip);
    /* A queue pair (its engine_qp_params.arg) got a packet in RTR. */
    void (*comm_est)(struct gsi *g, void *qp_arg);
    /* The same of a queue pair that a program's own engine has. */
    void (*program_comm_est)(struct gsi *g, uint32_t qpn);
    /* Is there a datagram to send, or work that `run` has to do first? */
    bool (*busy)(const struct gsi *g);
    /* Is there a datagram that may be sent? */
    bool (*tx_ready)(const struct gsi *g);
    /* Write the next datagram to the slot. False = there is none. */
    bool (*tx)(struct gsi *g, struct engine_slot *slot);
    /* Run due time-outs and events; `now` in ns. Returns the number done. */
    unsigned (*run)(struct gsi *g, uint64_t now);
    /* The time at which `run` has work, ns; UINT64_MAX = not known. */
    uint64_t (*deadline)(const struct gsi *g);
    /* Every few ms: retry failed sends of events. Are any left? */
    void (*service)(struct gsi *g);
    bool (*owes)(const struct gsi *g);
    /* The largest path MTU from now on, enum 1..5. */
    void (*set_mtu)(struct gsi *g, unsigned path_mtu);
    /* The network reports that there is no RoCE at this address. Any host can forge that. */
    void (*refused)(struct gsi *g, const struct wire_addr *addr);
    /* Add its counters (stats_add). */
    void (*counters)(const struct gsi *g, struct stats_list *list);
    /* Free it. The device closes, and its worker has ended. */
    void (*destroy)(struct gsi *g);
};

/* Embed it as the first member in the part that serves QP1. */
struct gsi {
    const struct gsi_ops *ops;
};

/* Serves nothing: for a device without a part that serves QP1. */
extern struct gsi gsi_none;

#endif
