/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Protection domains, memory regions, memory windows and keys: checks of access to memory.
 *
 * lib/mem never touches the memory itself. A region is a list of segments. A segment names a range
 * of a backing object, which only the caller understands. A check turns (key, address, length) into
 * pieces of such objects; the caller resolves them when it copies.
 *
 * One struct mem belongs to one engine (one device on one worker) and is used by one thread.
 * Rules: MR, MW, SEC-12, SEC-13, RSP-14, RSP-17.
 */
#ifndef URNIC_MEM_H
#define URNIC_MEM_H

#include <stdbool.h>
#include <stdint.h>

/* Access rights: the numbers of verbs (MR-02). */
#define MEM_LOCAL_WRITE   0x01u
#define MEM_REMOTE_WRITE  0x02u
#define MEM_REMOTE_READ   0x04u
#define MEM_REMOTE_ATOMIC 0x08u
#define MEM_MW_BIND       0x10u
#define MEM_ZERO_BASED    0x20u
#define MEM_REMOTE_ANY    (MEM_REMOTE_WRITE | MEM_REMOTE_READ | MEM_REMOTE_ATOMIC)
/* FLUSH: the region's octets may be made visible to all, or be made to last. */
#define MEM_FLUSH_GLOBAL     0x100u
#define MEM_FLUSH_PERSISTENT 0x200u
#define MEM_FLUSH_ANY        (MEM_FLUSH_GLOBAL | MEM_FLUSH_PERSISTENT)

/* Segments are at least this long, but for a region's first and last one. */
#define MEM_SEG_MIN 4096u

#define MEM_WITHIN_SEGS 16u /* of a region by mem_fr_alloc_in, at most */

/* A range of a backing object. `obj` is the caller's (a mapping, a process ...). */
struct mem_seg {
    void *obj;
    uint64_t off; /* where the range begins inside obj */
    uint64_t len;
};

/* A contiguous run of octets of one backing object. */
struct mem_piece {
    void *obj;
    uint64_t off;
    uint32_t len;
};

/* The outcome of a check, kept by multi-packet operations and revalidated per packet (RSP-17). */
struct mem_ref {
    uint32_t slot; /* of the region or window */
    uint32_t gen;
    uint32_t mr; /* slot of the region below, which a hold keeps even when the window changes */
    uint64_t va; /* start of the checked range */
    uint64_t len;
};

struct mem;

struct mem_params {
    uint32_t max_pd, max_mr, max_mw; /* limits (MR-15); tables grow on demand up to these */
    uint64_t key[2];                 /* secret seed: keys must be unguessable (SEC-12) */
    /* Data copied to a region survive a loss of power, so MEM_FLUSH_PERSISTENT is granted (ATM-13).
     * Only the caller can know. */
    bool persistent;
};

/* Empty tables; `params` are copied. NULL when out of memory. mem_destroy(NULL) does nothing. */
struct mem *mem_create(const struct mem_params *params);
void mem_destroy(struct mem *m);

/* A new protection domain: *pd, never 0. -ENOSPC (max_pd), -ENOMEM. */
int mem_pd_alloc(struct mem *m, uint32_t *pd);
/* -EBUSY while regions, windows or users (mem_pd_hold) remain; -EINVAL: unknown domain. */
int mem_pd_free(struct mem *m, uint32_t pd);
/* Something else, a queue pair for example, uses the domain / no longer does. -EINVAL: unknown
 * domain. */
int mem_pd_hold(struct mem *m, uint32_t pd);
void mem_pd_drop(struct mem *m, uint32_t pd);

/* Register [iova, iova+len): segments in address order, copied; their lengths sum to len. `owner`
 * comes back from mem_drop. Errors: -EINVAL (rights, wrap, segments), -ENOMEM, -ENOSPC (max_mr).
 * *rkey is 0 when no remote right was asked for (MR-03). Zero length is legal. Optional rights of
 * verbs (bits 20..29: hints) are accepted, other unknown ones are -EOPNOTSUPP (MR-13). A zero-based
 * region ignores iova: its first octet has address 0 (MR-14). */
int mem_mr_reg(struct mem *m, uint32_t pd, uint64_t iova, uint64_t len, unsigned access,
               const struct mem_seg *segs, unsigned nsegs, void *owner, uint32_t *lkey,
               uint32_t *rkey);

/* Deregister. From this call on no check succeeds. Returns 0 when nothing uses the region any more;
 * -EINPROGRESS while copies hold it (mem_hold): it is freed by the last mem_drop, which reports it;
 * -EBUSY: windows are bound (MR-06); -EINVAL: unknown key. */
int mem_mr_dereg(struct mem *m, uint32_t lkey);

/* Register it again in place, with another domain or other rights. Its addresses and keys stay;
 * *rkey is as of mem_mr_reg. Accesses checked before are checked anew. -EINVAL: unknown key or
 * domain, rights, or MEM_ZERO_BASED changes; -EBUSY: windows are bound; -EOPNOTSUPP as there
 * (MR-07). */
int mem_mr_rereg(struct mem *m, uint32_t lkey, uint32_t pd, unsigned access, uint32_t *rkey);

/* A fast-register region (MR-08) of up to max_segs segments: Free until mem_fr_reg, and again after
 * mem_invalidate. -EINVAL (domain, max_segs 0), -ENOSPC (max_mr), -ENOMEM. */
int mem_fr_alloc(struct mem *m, uint32_t pd, uint32_t max_segs, uint32_t *lkey, uint32_t *rkey);
/* The same for segments that all lie in `within`, which outlives the region. Offsets in mem_fr_reg
 * count from within->off, and its objects are ignored. So the program that names the segments need
 * not be trusted, and may have ended when they are used. max_segs: at most MEM_WITHIN_SEGS. */
int mem_fr_alloc_in(struct mem *m, uint32_t pd, uint32_t max_segs, const struct mem_seg *within,
                    uint32_t *lkey, uint32_t *rkey);
/* Make it Valid, as the work request says. The low octet of `key` is the consumer's choice and
 * becomes part of both keys. -EINVAL: not such a region of this domain, not Free, too many
 * segments; otherwise as mem_mr_reg. */
int mem_fr_reg(struct mem *m, uint32_t pd, uint32_t key, uint64_t iova, uint64_t len,
               unsigned access, const struct mem_seg *segs, unsigned nsegs);

/* A window of type 1 or 2 (2B), bound to nothing. -EINVAL (domain, type), -ENOSPC (max_mw),
 * -ENOMEM. */
int mem_mw_alloc(struct mem *m, uint32_t pd, unsigned type, uint32_t *rkey);
/* Bind the window mw_rkey, named by its index, any variant octet, to [va, va+len) of a region.
 * Type 1: *rkey is a new key, chosen here when new_rkey is 0 (the client library may choose a
 * variant octet instead); length 0 unbinds. Type 2: `new_rkey` has the consumer's variant octet,
 * and only queue pair `qpn` may use the window. -EINVAL: MW_BIND_ERR material (MW-03, MW-04). */
int mem_mw_bind(struct mem *m, uint32_t pd, uint32_t qpn, uint32_t mw_rkey, uint32_t new_rkey,
                uint32_t mr_lkey, uint64_t va, uint64_t len, unsigned access, uint32_t *rkey);
/* Free the window, bound or not; named as for mem_mw_bind. -EINVAL: unknown window. */
int mem_mw_dealloc(struct mem *m, uint32_t rkey);

/* Invalidate by key: a type 2 window (2B: of this qpn) or a fast-register region of this PD.
 * remote = from SEND with invalidate (RSP-19). -EINVAL otherwise. */
int mem_invalidate(struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, bool remote);

/* Check that `key` gives `need` (MEM_*; 0 = local read) for the whole of [va, va+len) to a queue
 * pair `qpn` of domain `pd`. Same answer, -EACCES, for every failure (SEC-13). O(1).
 * local: the key is an L_Key of a region; otherwise an R_Key of a region or window. */
int mem_check(const struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, uint64_t va,
              uint64_t len, unsigned need, bool local, struct mem_ref *out);

/* Does the R_Key `key` give `need` for all that it names? 0, -EACCES as above. */
int mem_check_key(const struct mem *m, uint32_t pd, uint32_t qpn, uint32_t key, unsigned need);

/* Pieces of [ref->va + off, + len). Rechecks. Returns the number of pieces written; -EACCES when no
 * longer valid; -E2BIG if `max` does not hold them (up to MEM_SEG_MIN octets need at most 2). */
int mem_pieces(const struct mem *m, const struct mem_ref *ref, uint64_t off, uint32_t len,
               struct mem_piece *out, unsigned max);

/* Hold a region while a copy is under way; release it. mem_drop returns the region's owner if this
 * was the last hold of a deregistered region (the caller then finishes the deregistration), else
 * NULL. */
void mem_hold(struct mem *m, const struct mem_ref *ref);
void *mem_drop(struct mem *m, const struct mem_ref *ref);

/* A hint: the region or window in slot `slot` (mem_ref.slot, mem_ref.mr) will be used soon. */
void mem_prefetch(const struct mem *m, uint32_t slot);

/* Registered regions, windows, octets; for statistics and leak tests. */
struct mem_usage {
    uint32_t pds, mrs, mws;
    uint64_t octets;
};
void mem_usage(const struct mem *m, struct mem_usage *out);

#endif
