/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices, memory, queues, posting and polling. Conventions: urnic/urnic.h.
 */
#ifndef URNIC_VERBS_H
#define URNIC_VERBS_H

#include "urnic/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */

/* The devices of the running daemon: an array for urnic_free_device_list, *n entries. No daemon is
 * an empty list, not an error. -ENOMEM; -EPROTONOSUPPORT: a daemon of another major version;
 * -EPROTO: what answers is no urnicd; -EACCES: the socket is for others; -ENAMETOOLONG: its path is
 * longer than a socket's may be; -EDQUOT: the daemon takes no more connections, of which it has
 * 1,024, and 64 for root and its own user: a user gets half of what others leave, then an eighth.
 */
URNIC_API int urnic_get_device_list(struct urnic_device **list, int *n);
/* Free the array; NULL is fine. */
URNIC_API void urnic_free_device_list(struct urnic_device *list);

/* From now on the process' connections to daemons, their events and their connection channels get
 * descriptors from `fd` up, as far as the limit of descriptors lets them; 0 = as the kernel gives
 * them, the default. For programs that need the low numbers themselves. Completion channels stay
 * as the kernel gives them. */
URNIC_API void urnic_set_first_fd(int fd);
/* Open a device by name, NULL = the first one. -ENODEV: no daemon, or no such device; -ENOMEM,
 * -EPROTONOSUPPORT, -EPROTO, -EACCES, -ENAMETOOLONG and -EDQUOT as above. */
URNIC_API int urnic_open(const char *device, struct urnic_context **ctx);
/* The same on the daemon at this socket (NULL = as urnic_open), and on one of its workers,
 * below 0 = any. -EINVAL: another worker serves the device. */
URNIC_API int urnic_open_at(const char *socket_path, const char *device, int worker,
                            struct urnic_context **ctx);
/* -EBUSY: objects of the context still exist. */
URNIC_API int urnic_close(struct urnic_context *ctx);
/* End the context in the daemon, which forgets all its objects at once: their peers see them gone,
 * and calls give -ENODEV from now on. Objects can still be destroyed, and the context closed. */
URNIC_API void urnic_hang_up(struct urnic_context *ctx);

/* What the device can do, and the state of its port. max_qp, max_cq, max_srq, max_mr, max_pd and
 * max_mw are what one context may have of each, 131,071 objects in all; of regions registered from
 * descriptors and of urnic_alloc 8,192 together. */
URNIC_API int urnic_query_device(struct urnic_context *ctx, struct urnic_device_attr *attr);
URNIC_API int urnic_query_port(struct urnic_context *ctx, struct urnic_port_attr *attr);
/* One entry of the GID table. -ENOENT: it is empty. */
URNIC_API int urnic_query_gid(struct urnic_context *ctx, uint32_t index, struct urnic_gid *gid);
/* Up to max entries that aren't empty. Returns how many there were, or -errno. */
URNIC_API int urnic_query_gid_table(struct urnic_context *ctx, struct urnic_gid *gids, int max);

/* ---- memory ---- */

/* A protection domain: queue pairs reach only regions of their own one. -ENOMEM, -EDQUOT. */
URNIC_API int urnic_alloc_pd(struct urnic_context *ctx, struct urnic_pd **pd);
URNIC_API int urnic_dealloc_pd(struct urnic_pd *pd); /* -EBUSY: in use */

/* Memory that the daemon reaches without a copy between processes: zeroed, page-aligned, shared.
 * 2 MiB and more get huge pages where the kernel has any: the first 256 MiB of it at once, which
 * takes a millisecond per 2 MiB or more.
 * -ENOMEM, -EDQUOT (more than the daemon lets one application have), -EINVAL (0 octets), -EFBIG
 * (more than the limit on the size of files, ulimit -f, that the daemon was started with). */
URNIC_API int urnic_alloc(struct urnic_context *ctx, size_t size, void **addr);
/* addr as urnic_alloc gave it; NULL is fine. -EBUSY: regions lie in it; -EINVAL. */
URNIC_API int urnic_free(struct urnic_context *ctx, void *addr);

/* Register [addr, addr+length): any memory of a program that runs as the daemon's user, from
 * urnic_alloc, malloc, the stack, a file mapping. access: URNIC_ACCESS_*. With length 0 it has
 * keys, but room only for requests of 0 octets, which need no region anyway. What is from
 * urnic_alloc, or of 4 KiB and more in one MAP_SHARED mapping of a memfd, of a file on tmpfs or
 * hugetlbfs or of a SysV segment that the program can open again, the daemon maps. All other memory
 * it copies to and from through the kernel: slower, and an atomic on it is one against other
 * requests of the device, not against instructions of the program. Pages that are not there yet
 * come now; those that the program unmaps or protects later fail requests with a protection or
 * access error. After exec, as after its end, peers get no answer.
 * -EINVAL rights that need LOCAL_WRITE beside them, or a range beyond the end of memory;
 * -EOPNOTSUPP unknown rights, or an older daemon; -EFAULT a hole in the range, or read-only memory
 * with LOCAL_WRITE; -EPERM the daemon may not reach the memory of this program, which is another
 * user's (use urnic_alloc or urnic_reg_mr_fd); -ENOMEM; -EDQUOT. */
URNIC_API int urnic_reg_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned access,
                           struct urnic_mr **mr);
/* The same with another address for work requests and peers. Atomics need 8 octets that are aligned
 * there and in memory. -EINVAL, too: iova + length is 2^64 or more. */
URNIC_API int urnic_reg_mr_iova(struct urnic_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access, struct urnic_mr **mr);
/* Register `length` octets at `offset` of a shared object: a memfd, a file in /dev/shm or on
 * hugetlbfs. The descriptor may be closed afterwards. If the object is truncated later, work
 * requests that touch the hole fail with a protection or access error, and from then on all that
 * touch the region: it has to be registered anew. -EINVAL: length is 0 or above max_mr_size, or
 * rights and addresses as above; -EBADF; -EOPNOTSUPP: other kinds of file, or unknown rights;
 * -EACCES: the file may not be written, and LOCAL_WRITE is wanted; -EPERM: the daemon is another
 * user's, and the object isn't sealed as urnicd(8) wants it (SHM-10), section SECURITY; -EFAULT:
 * the object ends before; -ENOMEM; -EDQUOT. */
URNIC_API int urnic_reg_mr_fd(struct urnic_pd *pd, int fd, uint64_t offset, size_t length,
                              uint64_t iova, unsigned access, struct urnic_mr **mr);
/* Give the region other rights or another domain (NULL = its own): its addresses and keys stay.
 * Requests that use it meanwhile may fail. -EINVAL: rights as above, or URNIC_ACCESS_ZERO_BASED
 * changes; a region of urnic_alloc_mr; -EBUSY: windows are bound; -EACCES: the mapping may not be
 * written; -EOPNOTSUPP: unknown rights, an object that is registered for reading only is to be
 * written, or an older daemon: register the memory anew. */
URNIC_API int urnic_rereg_mr(struct urnic_mr *mr, struct urnic_pd *pd, unsigned access);
/* After return nobody touches the memory through this region. -EBUSY: windows are bound. */
URNIC_API int urnic_dereg_mr(struct urnic_mr *mr);

/* A region for work requests to register: parts of [addr, addr+length), which is inside one
 * urnic_alloc, at most max_segs (1..16) at a time. URNIC_WR_REG_MR makes those of its sg_list one
 * stretch of addresses with a key, URNIC_WR_LOCAL_INV or a peer's SEND_WITH_INV ends that;
 * registering costs no round trip to the daemon. Segments but the first and the last have 4096
 * octets or more. A request that names memory outside of it, or a region that is registered
 * already, completes with LOC_QP_OP_ERR, and so does a LOCAL_INV of a key that is invalid already:
 * after a peer's SEND_WITH_INV none is needed. -EINVAL; -EOPNOTSUPP memory from elsewhere, or an
 * older daemon; -ENOMEM. */
URNIC_API int urnic_alloc_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned max_segs,
                             struct urnic_mr **mr);

/* Windows of type 1 or 2; bound by URNIC_WR_BIND_MW to a region with URNIC_ACCESS_MW_BIND, with a
 * new key that the application chooses: urnic_inc_rkey of the one before. -EINVAL type; -ENOMEM. */
URNIC_API int urnic_alloc_mw(struct urnic_pd *pd, int type, struct urnic_mw **mw);
/* Unbinds it: peers lose their rights. */
URNIC_API int urnic_dealloc_mw(struct urnic_mw *mw);

/* A key's next variant: the same object, another low octet. */
static inline uint32_t urnic_inc_rkey(uint32_t rkey)
{
    return (rkey & ~0xFFu) | ((rkey + 1) & 0xFFu);
}

/* ---- completion queues ---- */

/* A channel is where events of CQs arrive. Its descriptor is readable when an event waits, or when
 * the daemon has gone; it may be set non-blocking and polled. -ENOMEM; -EDQUOT: a context has 256
 * at most. */
URNIC_API int urnic_create_channel(struct urnic_context *ctx, struct urnic_channel **channel);
URNIC_API int urnic_destroy_channel(struct urnic_channel *channel); /* -EBUSY: CQs use it */
/* The descriptor stays the channel's: don't read from it, don't close it. */
URNIC_API int urnic_channel_fd(const struct urnic_channel *channel);

/* A queue of at least `cqe` entries. cq_context comes back with its events. channel may be NULL:
 * without events. -EINVAL: cqe is below 1 or above max_cqe, or the channel is another context's;
 * -ENOMEM, -EDQUOT. A completion that finds no room ends the queue for good: event CQ_ERR, and
 * every queue pair that would complete there goes to ERR. What it holds can be polled. */
URNIC_API int urnic_create_cq(struct urnic_context *ctx, int cqe, void *cq_context,
                              struct urnic_channel *channel, struct urnic_cq **cq);
/* -EBUSY: queue pairs use it. Waits until each event got from it has been acknowledged. */
URNIC_API int urnic_destroy_cq(struct urnic_cq *cq);
/* Give it at least `cqe` entries; what it holds stays, and it never gets shorter. Other threads
 * that poll meanwhile wait for the daemon's answer. -EINVAL: cqe is below 1 or above max_cqe, or
 * more completions wait than that; -EOPNOTSUPP: an older daemon; -ENOMEM, -EMFILE, -EDQUOT. */
URNIC_API int urnic_resize_cq(struct urnic_cq *cq, int cqe);
/* Entries that it has; and the cq_context it was made with. */
URNIC_API int urnic_cq_size(const struct urnic_cq *cq);
URNIC_API void *urnic_cq_context(const struct urnic_cq *cq);

/* Up to n completions. Returns how many (0 = none now); -ENODEV the daemon has gone and all that it
 * completed has been polled; -EOVERFLOW the queue has ended for want of room, likewise. Never
 * blocks, never yields. */
URNIC_API int urnic_poll_cq(struct urnic_cq *cq, int n, struct urnic_wc *wc);

/* Moderation: an event waits for `count` completions, or until the first of them is period_us old;
 * 0, 0 = it doesn't wait. Completions never wait. */
URNIC_API int urnic_modify_cq(struct urnic_cq *cq, uint16_t count, uint16_t period_us);
/* Ask for one event: for the next completion, or only for the next solicited one or error. A
 * completion that came before doesn't count: poll once more after this, or it may wait there for
 * ever. -EINVAL: the queue has no channel; -EOVERFLOW: it has ended for want of room, of which it
 * tells by an event if it was armed; -ENODEV. */
URNIC_API int urnic_req_notify_cq(struct urnic_cq *cq, bool solicited_only);
/* Wait for an event (don't wait when the descriptor is non-blocking, or poll() has called it
 * readable: -EAGAIN; urnic.h, event loops). Signals don't end the wait. cq_context may be NULL.
 * -ENODEV: daemon gone. Each event must be acknowledged. */
URNIC_API int urnic_get_cq_event(struct urnic_channel *channel, struct urnic_cq **cq,
                                 void **cq_context);
/* The same, but a signal ends the wait: -EINTR, unless its handler was set with SA_RESTART. */
URNIC_API int urnic_get_cq_event_intr(struct urnic_channel *channel, struct urnic_cq **cq,
                                      void **cq_context);
/* Acknowledge n events of this CQ. */
URNIC_API void urnic_ack_cq_events(struct urnic_cq *cq, unsigned n);

/* ---- shared receive queues ---- */

/* A receive queue for several queue pairs. attr: in wanted, out granted. -EINVAL: max_wr is 0, a
 * size is above the device's, or srq_limit above max_wr; -ENOMEM, -EDQUOT. */
URNIC_API int urnic_create_srq(struct urnic_pd *pd, struct urnic_srq_attr *attr, void *srq_context,
                               struct urnic_srq **srq);
/* The same for queue pairs of XRC: xrcd is the domain, one that urnic_alloc_pd made and that no
 * memory needs; every URNIC_QPT_XRC_RECV queue pair of that domain serves the queue, by the number
 * that the peer's requests name. Receives complete in cq. Rights to memory are those of pd.
 * -EINVAL also: an object of another context. -ENOTSUP: the daemon is older than protocol 1.13.
 * Rules XRC-01, XRC-02. */
URNIC_API int urnic_create_xrc_srq(struct urnic_pd *pd, struct urnic_pd *xrcd, struct urnic_cq *cq,
                                   struct urnic_srq_attr *attr, void *srq_context,
                                   struct urnic_srq **srq);
/* The number by which peers name it (urnic_send_wr.xrc.srqn); 0: it is of no XRC domain. */
URNIC_API uint32_t urnic_srq_num(const struct urnic_srq *srq);
/* Set the limit below which SRQ_LIMIT_REACHED is raised once; 0 = off. -EINVAL: above max_wr. */
URNIC_API int urnic_modify_srq_limit(struct urnic_srq *srq, uint32_t limit);
/* Make it hold max_wr receives or more. It never gets smaller: with less it stays as it is. Other
 * threads may post meanwhile, and wait. -EINVAL: above the device's max_srq_wr, or fewer than are
 * posted; -EOPNOTSUPP an older daemon; -ENOMEM, -EDQUOT; then nothing has changed. */
URNIC_API int urnic_resize_srq(struct urnic_srq *srq, uint32_t max_wr);
/* Its sizes, and the limit as it is now: 0 once it has been reached. */
URNIC_API int urnic_query_srq(struct urnic_srq *srq, struct urnic_srq_attr *attr);
URNIC_API int urnic_destroy_srq(struct urnic_srq *srq); /* -EBUSY: queue pairs use it */
/* As urnic_post_recv. */
URNIC_API int urnic_post_srq_recv(struct urnic_srq *srq, const struct urnic_recv_wr *wr,
                                  const struct urnic_recv_wr **bad_wr);
/* The srq_context it was made with. */
URNIC_API void *urnic_srq_context(const struct urnic_srq *srq);

/* ---- queue pairs ---- */

/* A queue pair in RESET. attr->cap: in wanted (0 requests or SGEs = 1), out granted. -EINVAL: type,
 * limits, congestion control (the daemon's log says what is wrong with it), or an object that is
 * missing or another context's; -ENOMEM, -EDQUOT. */
URNIC_API int urnic_create_qp(struct urnic_pd *pd, struct urnic_qp_init_attr *attr,
                              struct urnic_qp **qp);
/* All or nothing. mask: enum urnic_qp_attr_mask; which attributes each transition needs or allows
 * is as in verbs, and what the mask doesn't name isn't looked at. Moving to RESET drops this queue
 * pair's completions that weren't polled. -EINVAL: no such transition, one attribute too many or
 * too few, or a value out of range; -EBUSY: in SQD, and not drained yet; -EHOSTUNREACH: nobody
 * answers at the peer's address, asked for 3 s; -EADDRINUSE: the peer's queue pair belongs to a
 * connection of another user (SEC-33); -EPERM: a Q_Key with bit 31 set is for root and the daemon's
 * own user; -EOPNOTSUPP: alternate paths (bits 14 and 18). RESET goes to INIT or stays: to
 * ERR from any other state. */
URNIC_API int urnic_modify_qp(struct urnic_qp *qp, const struct urnic_qp_attr *attr, unsigned mask);
/* All attributes as the daemon has them; rq_psn and sq_psn are those that it began with.
 * ah_attr.sgid_index is 0 while its address is gone. */
URNIC_API int urnic_query_qp(struct urnic_qp *qp, struct urnic_qp_attr *attr);
/* What is posted to it doesn't complete any more; its completions that weren't polled are dropped.
 * -EBUSY: attached to multicast groups. */
URNIC_API int urnic_destroy_qp(struct urnic_qp *qp);
/* Its number on the wire, 24 bits; and the qp_context it was made with. */
URNIC_API uint32_t urnic_qp_num(const struct urnic_qp *qp);
URNIC_API void *urnic_qp_context(const struct urnic_qp *qp);

/* Post a list of work requests. On an error *bad_wr (NULL: nobody asks) is the first one that was
 * not taken; those before it were. -EINVAL state, opcode, flags, too many SGEs or inline octets, a
 * datagram that is longer than the port's active_mtu, has no address handle or a queue pair number
 * of more than 24 bits; -ENOMEM the queue is full: a place becomes free when its completion, or a
 * later one of the same queue, has been polled, so now and then one has to be signalled; -ENODEV.
 *
 * What is taken and can't be done completes with an error: LOC_LEN_ERR where a message is longer
 * than the port's max_msg_sz, or the segment of an atomic shorter than 8 octets. A peer that
 * refuses a request (REM_..._ERR) says so once: if a network loses that, it is silent then, and
 * here it is RETRY_EXC_ERR.
 *
 * A SEND_WITH_INV whose key the peer can't invalidate arrives all the same: the peer's receive
 * completes with REM_INV_REQ_ERR, and its queue pair is in the error state. RoCE has no answer that
 * says so: here it looks as if the peer were gone, RETRY_EXC_ERR when the retries are used up, or,
 * with peers that acknowledge what has arrived, like success. */
URNIC_API int urnic_post_send(struct urnic_qp *qp, const struct urnic_send_wr *wr,
                              const struct urnic_send_wr **bad_wr);
/* The same, all requests of the list or none of them: after an error none was taken. */
URNIC_API int urnic_post_send_all(struct urnic_qp *qp, const struct urnic_send_wr *wr);
URNIC_API int urnic_post_recv(struct urnic_qp *qp, const struct urnic_recv_wr *wr,
                              const struct urnic_recv_wr **bad_wr);

/* Multicast: UD queue pairs. The group is an IPv6 multicast address, or ::ffff: and an IPv4 one.
 * Attaching twice is attaching once. -EINVAL: another type of queue pair, no group, or not
 * attached; -ENOMEM; -ENOSPC: the port is in as many groups as it can be. */
URNIC_API int urnic_attach_mcast(struct urnic_qp *qp, const uint8_t gid[16]);
URNIC_API int urnic_detach_mcast(struct urnic_qp *qp, const uint8_t gid[16]);

/* Where a datagram goes. Resolves the neighbour's MAC address: may take a while, -EHOSTUNREACH.
 * -EINVAL: no local address at sgid_index, or one of another family (IPv4, IPv6) than dgid; a dgid
 * that no host can have (`::`, 0.0.0.0, 255.255.255.255); sl or flow_label out of range. Queue
 * pairs of all domains may use it, and it doesn't keep its own one busy. */
URNIC_API int urnic_create_ah(struct urnic_pd *pd, const struct urnic_ah_attr *attr,
                              struct urnic_ah **ah);
/* Only the neighbour's MAC address that packets to it carry; the errors are those of
 * urnic_create_ah. */
URNIC_API int urnic_resolve_mac(struct urnic_context *ctx, const struct urnic_ah_attr *attr,
                                uint8_t mac[6]);
/* The way back: to the sender of a received datagram, whose 40 octets of IP header are at `grh`.
 * sgid_index: which of our addresses to answer from. The traffic class is the datagram's without
 * its ECN bits. -EINVAL: the completion is of no datagram; and as urnic_create_ah. */
URNIC_API int urnic_create_ah_from_wc(struct urnic_pd *pd, const struct urnic_wc *wc,
                                      const void *grh, uint16_t sgid_index, struct urnic_ah **ah);
/* Work requests that were posted with it keep their own copy. */
URNIC_API int urnic_destroy_ah(struct urnic_ah *ah);

/* ---- asynchronous events ---- */

/* Readable when an event waits. */
URNIC_API int urnic_async_fd(const struct urnic_context *ctx);
/* Wait for an event (don't wait when the descriptor is non-blocking, or poll() has called it
 * readable: -EAGAIN; urnic.h, event loops). When the daemon goes away: one
 * URNIC_EVENT_DEVICE_FATAL, then -ENODEV. Each event must be acknowledged before its object is
 * destroyed: destroying waits for it. */
URNIC_API int urnic_get_async_event(struct urnic_context *ctx, struct urnic_async_event *event);
/* The same, but a signal ends the wait: -EINTR, unless its handler was set with SA_RESTART. */
URNIC_API int urnic_get_async_event_intr(struct urnic_context *ctx,
                                         struct urnic_async_event *event);
/* Acknowledge it. */
URNIC_API void urnic_ack_async_event(struct urnic_async_event *event);

/* ---- names ---- */

/* In words, for people; constant strings. */
URNIC_API const char *urnic_wc_status_str(enum urnic_wc_status status);
/* The area of the rule that a completion's vendor_err names, "RSP"; "" = of none. */
URNIC_API const char *urnic_rule_area(uint32_t vendor_err);
URNIC_API const char *urnic_event_type_str(enum urnic_event_type event);
URNIC_API const char *urnic_qp_state_str(enum urnic_qp_state state);
/* "0.1.0": of the library. */
URNIC_API const char *urnic_version(void);

#ifdef __cplusplus
}
#endif
#endif
