/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where received octets go: scatter over the SGEs of a receive work request, or of a READ or
 * ATOMIC, or into the range that a WRITE was checked for. Rules: RSP-13, RSP-17, RD-15, UD-05.
 */
#ifndef URNIC_PLACE_H
#define URNIC_PLACE_H

#include "record.h"
#include "srq.h"

struct swqe;

/* Most records that one packet needs: one for each SGE, and one for its action. */
#define PLACE_RECORDS (ENGINE_SGE_MAX + 1)

/* Octets to place: several pieces, because a datagram has its header area before its payload. */
struct place_span {
    const uint8_t *p;
    uint32_t len;
};

/* Scatter the spans into the receive work request, beginning at its octet `off`. The caller has
 * checked that they fit, and that enough records are free. *last: the record of the last range,
 * which is the rest of its SGE and begins at octet `va` of the message; NULL = none. 0, or -EACCES:
 * a buffer isn't writable (octets before it may be written already). */
int place_recv(struct rx *rx, struct qp *qp, const struct rwqe *w, uint64_t off,
               const struct place_span *spans, unsigned n, struct record **last);

/* Place the packet's payload at octet `off` of the checked range. *last, errors: as place_recv. */
int place_write(struct rx *rx, struct qp *qp, const struct mem_ref *ref, uint64_t off,
                struct record **last);

/* Place the packet's payload at octet `off` of the READ w, or the old value of the atomic w. The
 * caller has ensured that there are records. Returns the record of the last range, NULL = none; its
 * status says if the range isn't writable any more. A record's `arg` is the start of its range
 * within the READ. */
struct record *place_read(struct rx *rx, struct qp *qp, struct swqe *w, uint32_t off);
struct record *place_atomic(struct rx *rx, struct qp *qp, struct swqe *w);
/* The packet's payload to octet `off` of the range of a record that was made here for an earlier
 * packet of its message. 0, or -EACCES: not all of it goes there, or it isn't ours to write any
 * more. */
int place_more(struct rx *rx, struct record *rec, uint64_t off);

#endif
