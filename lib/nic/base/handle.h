/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client's handles: numbers for its objects. 0 is never one. A freed number is used again only
 * after all other free ones, so that a stale handle is an error and rarely names another object.
 */
#ifndef NIC_HANDLE_H
#define NIC_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "share.h"

enum handle_kind {
    HANDLE_FREE,
    HANDLE_PD,
    HANDLE_SLAB,
    HANDLE_MR,
    HANDLE_MW,
    HANDLE_CHANNEL,
    HANDLE_CQ,
    HANDLE_SRQ,
    HANDLE_QP,
    HANDLE_CM_CHANNEL,
    HANDLE_CM_ID,
    HANDLE_KINDS
};

struct handle_entry {
    void *object;
    uint32_t next; /* next free entry */
    uint32_t kind; /* enum handle_kind */
};

struct handle_table {
    struct handle_entry *entry;
    uint32_t size, used;
    uint32_t first_free, last_free; /* 0 = none */
    uint32_t count[HANDLE_KINDS];
    /* the shares that objects count against: of the device, of the daemon; NULL = none */
    struct share *of_device, *of_daemon;
};

/* An empty table; nothing is allocated yet. */
void handle_init(struct handle_table *t);
/* Frees the table; the objects are the caller's. */
void handle_fini(struct handle_table *t);
/* Has the client reached its quota of this kind? Ask before making anything expensive. */
bool handle_full(const struct handle_table *t, enum handle_kind kind);
/* A new handle in *out for the object. -ENOMEM, -EDQUOT (QUOTA_HANDLES, the quota of the kind, the
 * user's share of it). */
int handle_add(struct handle_table *t, enum handle_kind kind, void *object, uint32_t *out);
/* NULL = no such handle of this kind. */
void *handle_get(const struct handle_table *t, enum handle_kind kind, uint32_t handle);
/* Delete a handle, which must exist; the object is the caller's. */
void handle_del(struct handle_table *t, uint32_t handle);
/* Walk the objects of a kind. *handle begins as 0, and becomes the handle of the returned object.
 * NULL = no more; or, if *budget is 0, that many entries were looked at: call again later with the
 * same *handle. The returned object may be deleted during the walk. */
void *handle_each(const struct handle_table *t, enum handle_kind kind, uint32_t *handle,
                  unsigned *budget);

#endif
