/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices, memory, queues, posting and polling. Conventions: urnic/urnic.h.
 */
#ifndef URNIC_VERBS_H
#define URNIC_VERBS_H

#include <signal.h>

#include "urnic/types.h"

struct sigaction; /* <signal.h> keeps it from strict C99 */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---- */

/* The devices of the running daemon: an array of *n entries; free it with urnic_free_device_list.
 * Without a daemon the list is empty; that is no error. -ENOMEM. -EPROTONOSUPPORT: a daemon of
 * another major version. -EPROTO: another program answers. -EACCES: this user may not open the
 * socket. -ENAMETOOLONG: the socket's path is too long. -EDQUOT: the daemon takes no more
 * connections of this user. The daemon has 1,024 connections, and 64 more for root and its own
 * user. A user gets half of the connections that other users leave. Once seven eighths are taken, a
 * user gets an eighth. */
URNIC_API int urnic_get_device_list(struct urnic_device **list, int *n);
/* Free the array; NULL is fine. */
URNIC_API void urnic_free_device_list(struct urnic_device *list);

/* From now on, descriptors of connections to daemons, of their events and of connection channels
 * are `fd` or higher, if the limit of descriptors allows it; 0 = the kernel chooses, the default.
 * For programs that need the low numbers themselves. The kernel chooses those of completion
 * channels. */
URNIC_API void urnic_set_first_fd(int fd);
/* Open a device by name, NULL = the first one. -ENODEV: no daemon, or no such device; -ENOMEM,
 * -EPROTONOSUPPORT, -EPROTO, -EACCES, -ENAMETOOLONG and -EDQUOT as above.
 *
 * With URNIC_ENGINE=application in the environment the engine runs in this program (doc/ports.md).
 * Progress, threads, signals, a stopped program and fork are then as in urnic_open_port; if the
 * daemon ends, the program gets DEVICE_FATAL, as ever. -ENOTSUP: the daemon is older; -EDQUOT: the
 * user has its share of channels or memory; -ENOSYS: the engine library was not found; -EINVAL:
 * URNIC_ENGINE has another value than application and daemon. */
URNIC_API int urnic_open(const char *device, struct urnic_context **ctx);
/* The same for the daemon at this socket (NULL = as urnic_open) and for one of its workers (< 0 =
 * any). -EINVAL: another worker serves the device. */
URNIC_API int urnic_open_at(const char *socket_path, const char *device, int worker,
                            struct urnic_context **ctx);
/* The same, but without an engine in this program, whatever URNIC_ENGINE says. Its connections may
 * have queue pairs of other contexts of this process, also of those with an engine here. For
 * contexts that are used for connections only. */
URNIC_API int urnic_open_daemon(const char *device, struct urnic_context **ctx);
/* As urnic_open with URNIC_ENGINE=application, even if the environment says daemon, or nothing.
 * Keys in that variable are used. For a program that registers memory of its own. */
URNIC_API int urnic_open_application(const char *device, struct urnic_context **ctx);
/* For a library that defines its own sigaction, in front of libc's. `fn` is the next definition,
 * usually libc's. An engine in this program calls it. Call this before the first device is opened.
 */
URNIC_API void urnic_sigaction_next(int (*fn)(int sig, const struct sigaction *act,
                                              struct sigaction *old));
/* The first step of such a library's sigaction, for SIGSEGV and SIGBUS. With an engine in this
 * program the engine's handler stays in front. The program's gets all faults but those of the
 * engine's requests, and the program sees its own actions, as if the engine's were not there. True:
 * this is done, and *result is the value for sigaction to return. False: no engine is loaded; call
 * the next definition. Any thread; also in a signal handler. */
URNIC_API bool urnic_sigaction(int sig, const struct sigaction *act, struct sigaction *old,
                               int *result);
/* Open a port of this program's own, without a daemon. The engine and its connection manager, the
 * same as the daemon's, run in this process. The context serves all functions of this library.
 *
 * spec: the port as in urnicd's --port, then keys of --device but for workers=, for example
 *
 *     memif:/run/a.sock,role=server,addr=10.0.0.1/24
 *     udp:lo,addr=127.0.0.1
 *     mem:LINK,addr=10.0.0.1/24                       (all ports of the link are in this process)
 *
 * and two keys of its own: progress=auto|thread|poll (below; default auto), and
 * log-level=error|warn|info|debug for lines on standard error (default error).
 *
 * ctx: the context; urnic_close ends it, after its objects. why, size: room for a sentence that
 * says why the call failed, always ended by 0; size 0 = not wanted.
 *
 * -EINVAL: the specification is wrong; `why` has a right one. -ENOSYS: the engine library,
 * liburnic-engine.so, or a driver is not installed. -EPROTONOSUPPORT: it is of another release.
 * -ENOMEM. Other errors are the port's, such as -EACCES, -EADDRINUSE, -ENODEV.
 *
 * Memory: any memory of the process can be registered. Atomics are atomic against the program's own
 * instructions, too. Memory that was unmapped, protected or truncated meanwhile costs the request
 * that needs it. For that the library handles SIGSEGV and SIGBUS, and passes on all other
 * faults; doc/architecture.md, 4.2, has the rules for a program's own handlers.
 *
 * Progress: with progress=auto, threads that post and poll do the engine's work in these calls. The
 * library has one thread for each port. After 250 us, and later every millisecond, it looks whether
 * they go on, and takes over when they don't. So a program that computes or sleeps still serves its
 * peers. If a program posts and polls in turn within a millisecond, a post may wait for the next
 * poll or post, or up to 2 ms for that thread: poll before the program ends. With progress=thread
 * the library's thread does all the work. With progress=poll there is no such thread. The engine,
 * its timers and answers to peers included, then stands still while no thread posts, polls or waits
 * in another function. Sleeping in poll(2) on a channel's descriptor makes no progress.
 *
 * Threads: any number of threads may post and poll; none waits for another. A signal handler may
 * call urnic_poll_cq; if it interrupted a call for the same context, that returns 0. A thread may
 * be cancelled anywhere. The library's thread blocks all signals but those that an instruction
 * causes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) and SIGABRT. Don't leave a function of
 * the library by longjmp or by an exception. The library stays loaded until the process ends.
 *
 * A stopped program (SIGSTOP, a debugger) stands still with its engine; peers may run into their
 * time-outs. Fork: the parent goes on. In the child all calls for the context return -ENODEV,
 * nothing reaches the port, and memory is the child's own copy. A program that goes to the
 * background opens its port afterwards. exec closes all. */
URNIC_API int urnic_open_port(const char *spec, struct urnic_context **ctx, char *why, size_t size);
/* -EBUSY: objects of the context still exist. */
URNIC_API int urnic_close(struct urnic_context *ctx);
/* End the context in the daemon, and with it all its objects: peers get no more answers, and calls
 * return -ENODEV. Objects can still be destroyed, and the context closed. */
URNIC_API void urnic_hang_up(struct urnic_context *ctx);

/* The device's limits and abilities. max_qp, max_cq, max_srq, max_mr, max_pd and max_mw are limits
 * of one context, which may have 131,071 objects in all, and of these 8,192 regions from
 * descriptors and from urnic_alloc. */
URNIC_API int urnic_query_device(struct urnic_context *ctx, struct urnic_device_attr *attr);
/* The state of its port. */
URNIC_API int urnic_query_port(struct urnic_context *ctx, struct urnic_port_attr *attr);
/* One entry of the GID table. -ENOENT: it is empty. */
URNIC_API int urnic_query_gid(struct urnic_context *ctx, uint32_t index, struct urnic_gid *gid);
/* Up to max entries that aren't empty. Returns how many there were, or -errno. */
URNIC_API int urnic_query_gid_table(struct urnic_context *ctx, struct urnic_gid *gids, int max);

/* ---- memory ---- */

/* A protection domain: a queue pair reaches only regions of its own domain. -ENOMEM, -EDQUOT. */
URNIC_API int urnic_alloc_pd(struct urnic_context *ctx, struct urnic_pd **pd);
URNIC_API int urnic_dealloc_pd(struct urnic_pd *pd); /* -EBUSY: in use */

/* Memory that the daemon shares, so that its engine can use it: zeroed, page-aligned. From 2 MiB on
 * it gets huge pages where the kernel has any. The first 256 MiB of these are allocated at once, at
 * a millisecond or more per 2 MiB. -ENOMEM. -EDQUOT: more than an application may have. -EINVAL: 0
 * octets. -EFBIG: more than the daemon's limit on the size of files (ulimit -f). */
URNIC_API int urnic_alloc(struct urnic_context *ctx, size_t size, void **addr);
/* addr from urnic_alloc; NULL is fine. -EBUSY: regions lie in it. -EINVAL. */
URNIC_API int urnic_free(struct urnic_context *ctx, void *addr);

/* Register [addr, addr+length). access: URNIC_ACCESS_*. Length 0 is allowed; such a region serves
 * requests of 0 octets only.
 *
 * With the engine in this program (URNIC_ENGINE=application, urnic_open_application,
 * urnic_open_port) it may be any memory: from urnic_alloc, malloc, the stack, a file mapping. The
 * daemon's engine takes only what the daemon can map: memory from urnic_alloc, and a range in one
 * MAP_SHARED mapping of a memfd, of a file on tmpfs or hugetlbfs, or of a SysV segment, if the
 * program can open that again.
 *
 * Missing pages are allocated now; with the engine in this program, on use. If pages are unmapped
 * or protected later, requests that need them fail by a protection or access error. exec: peers get
 * no answer.
 *
 * -EINVAL: rights that need LOCAL_WRITE as well, or a range that wraps. -EOPNOTSUPP: unknown
 * rights; or memory that the daemon can't map (use urnic_alloc, or have the engine in this
 * program). -EFAULT: a hole in the range, or read-only memory with LOCAL_WRITE. -EPERM: the daemon
 * is another user's, and the object lacks seals, as of urnic_reg_mr_fd. -ENOMEM. -EDQUOT. */
URNIC_API int urnic_reg_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned access,
                           struct urnic_mr **mr);
/* The same with another address, iova, for work requests and peers. The 8 octets of an atomic must
 * be aligned at both addresses. -EINVAL also: iova + length is 2^64 or more. */
URNIC_API int urnic_reg_mr_iova(struct urnic_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access, struct urnic_mr **mr);
/* Register `length` octets at `offset` of a shared object: a memfd, a file in /dev/shm or on
 * hugetlbfs. The descriptor may be closed afterwards. If the object is truncated later, the first
 * work request that touches the hole fails with a protection or access error, and so do all later
 * ones that use the region: register it again.
 * -EINVAL: length is 0 or above max_mr_size; or as above. -EBADF. -EOPNOTSUPP: another kind of
 * file, or unknown rights. -EACCES: LOCAL_WRITE for a read-only descriptor. -EPERM: the daemon is
 * another user's and the object lacks seals (urnicd(8), SECURITY; SHM-10). -EFAULT: the object is
 * shorter. -ENOMEM. -EDQUOT. */
URNIC_API int urnic_reg_mr_fd(struct urnic_pd *pd, int fd, uint64_t offset, size_t length,
                              uint64_t iova, unsigned access, struct urnic_mr **mr);
/* Give the region other rights or another domain (NULL = keep it). Its addresses and keys stay.
 * Requests that use it meanwhile may fail. -EINVAL: rights as above; URNIC_ACCESS_ZERO_BASED would
 * change; or a region of urnic_alloc_mr. -EBUSY: windows are bound. -EACCES: LOCAL_WRITE for a
 * read-only mapping. -EOPNOTSUPP: unknown rights, LOCAL_WRITE for an object registered without it,
 * or an older daemon: register the memory again. */
URNIC_API int urnic_rereg_mr(struct urnic_mr *mr, struct urnic_pd *pd, unsigned access);
/* After return no request uses the memory through this region. -EBUSY: windows are bound. */
URNIC_API int urnic_dereg_mr(struct urnic_mr *mr);

/* A region that work requests register, without a round trip to the daemon. URNIC_WR_REG_MR turns
 * the segments of its sg_list, at most max_segs (1..16), into one range of addresses with a key;
 * URNIC_WR_LOCAL_INV or a peer's SEND_WITH_INV invalidates it. All segments lie in
 * [addr, addr+length), within one urnic_alloc; all but the first and the last have at least 4096
 * octets. These complete with LOC_QP_OP_ERR: a segment outside that range; a REG_MR of a region
 * that is registered; a LOCAL_INV of a key that is invalid, also after a peer's SEND_WITH_INV.
 * -EINVAL. -EOPNOTSUPP: memory not from urnic_alloc, or an older daemon. -ENOMEM. */
URNIC_API int urnic_alloc_mr(struct urnic_pd *pd, void *addr, size_t length, unsigned max_segs,
                             struct urnic_mr **mr);

/* A window of type 1 or 2. URNIC_WR_BIND_MW binds it to a region with URNIC_ACCESS_MW_BIND; the
 * application chooses the new key, urnic_inc_rkey of the last one. -EINVAL: type. -ENOMEM. */
URNIC_API int urnic_alloc_mw(struct urnic_pd *pd, int type, struct urnic_mw **mw);
/* Unbinds it: peers lose their rights. */
URNIC_API int urnic_dealloc_mw(struct urnic_mw *mw);

/* A key's next variant: the same object, another low octet. */
static inline uint32_t urnic_inc_rkey(uint32_t rkey)
{
    return (rkey & ~0xFFu) | ((rkey + 1) & 0xFFu);
}

/* ---- completion queues ---- */

/* A channel, where events of CQs arrive. Its descriptor is readable when an event waits, or when
 * the daemon has gone. The application may set it non-blocking and poll it. -ENOMEM. -EDQUOT: the
 * context has 256, the maximum. */
URNIC_API int urnic_create_channel(struct urnic_context *ctx, struct urnic_channel **channel);
URNIC_API int urnic_destroy_channel(struct urnic_channel *channel); /* -EBUSY: CQs use it */
/* The descriptor stays the channel's: don't read from it, don't close it. */
URNIC_API int urnic_channel_fd(const struct urnic_channel *channel);

/* A queue of at least `cqe` entries. cq_context comes back with its events. channel NULL: no
 * events. -EINVAL: cqe is below 1 or above max_cqe, or the channel is another context's. -ENOMEM.
 * -EDQUOT. When a completion finds no room, the queue has ended: event CQ_ERR comes, and each queue
 * pair that would complete there goes to ERR. Its completions can still be polled. */
URNIC_API int urnic_create_cq(struct urnic_context *ctx, int cqe, void *cq_context,
                              struct urnic_channel *channel, struct urnic_cq **cq);
/* -EBUSY: queue pairs use it. Waits until each event got from it has been acknowledged. */
URNIC_API int urnic_destroy_cq(struct urnic_cq *cq);
/* Give it at least `cqe` entries. It keeps its completions and never gets shorter. Threads that
 * poll it meanwhile wait for the daemon's answer. -EINVAL: cqe is below 1 or above max_cqe, or
 * below the number of waiting completions. -EOPNOTSUPP: an older daemon. -ENOMEM. -EMFILE. -EDQUOT.
 */
URNIC_API int urnic_resize_cq(struct urnic_cq *cq, int cqe);
/* Its number of entries. */
URNIC_API int urnic_cq_size(const struct urnic_cq *cq);
/* The cq_context of urnic_create_cq. */
URNIC_API void *urnic_cq_context(const struct urnic_cq *cq);

/* Up to n completions. Returns how many; 0 = none now. When all completions are polled: -ENODEV if
 * the daemon has gone, -EOVERFLOW if the queue has ended because it was full. Never blocks or
 * yields.
 */
URNIC_API int urnic_poll_cq(struct urnic_cq *cq, int n, struct urnic_wc *wc);

/* Moderation: delay an event until `count` completions have come, or the first of them is period_us
 * old; 0, 0 = no delay. Completions are never delayed. */
URNIC_API int urnic_modify_cq(struct urnic_cq *cq, uint16_t count, uint16_t period_us);
/* Ask for one event: for the next completion, or (solicited_only) for the next solicited completion
 * or error. Completions that came before give no event, so poll once more after this call. -EINVAL:
 * the queue has no channel. -EOVERFLOW: the queue has ended because it was full. (If an event was
 * asked for before, it comes when the queue ends.) -ENODEV. */
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
 * size is above the device's limit, or srq_limit above max_wr. -ENOMEM. -EDQUOT. */
URNIC_API int urnic_create_srq(struct urnic_pd *pd, struct urnic_srq_attr *attr, void *srq_context,
                               struct urnic_srq **srq);
/* The same for XRC. xrcd is the XRC domain, from urnic_alloc_pd. Each URNIC_QPT_XRC_RECV queue pair
 * of that domain serves the queue; the peer's requests name it by its number. Receives complete in
 * cq, and rights to memory are those of pd. -EINVAL also: an object of another context. -ENOTSUP:
 * the daemon is older than protocol 1.13. Rules XRC-01, XRC-02. */
URNIC_API int urnic_create_xrc_srq(struct urnic_pd *pd, struct urnic_pd *xrcd, struct urnic_cq *cq,
                                   struct urnic_srq_attr *attr, void *srq_context,
                                   struct urnic_srq **srq);
/* The number by which peers name it (urnic_send_wr.xrc.srqn); 0 = it is not for XRC. */
URNIC_API uint32_t urnic_srq_num(const struct urnic_srq *srq);
/* Raise SRQ_LIMIT_REACHED once, when fewer receives than `limit` are left; 0 = off. -EINVAL: above
 * max_wr. */
URNIC_API int urnic_modify_srq_limit(struct urnic_srq *srq, uint32_t limit);
/* Make room for at least max_wr receives. The queue never gets smaller. Threads that post meanwhile
 * wait. -EINVAL: above the device's max_srq_wr, or below the number of posted receives.
 * -EOPNOTSUPP: an older daemon. -ENOMEM. -EDQUOT. */
URNIC_API int urnic_resize_srq(struct urnic_srq *srq, uint32_t max_wr);
/* Its sizes and its limit, which is 0 once it has been reached. */
URNIC_API int urnic_query_srq(struct urnic_srq *srq, struct urnic_srq_attr *attr);
URNIC_API int urnic_destroy_srq(struct urnic_srq *srq); /* -EBUSY: queue pairs use it */
/* As urnic_post_recv. */
URNIC_API int urnic_post_srq_recv(struct urnic_srq *srq, const struct urnic_recv_wr *wr,
                                  const struct urnic_recv_wr **bad_wr);
/* The srq_context of urnic_create_srq. */
URNIC_API void *urnic_srq_context(const struct urnic_srq *srq);

/* ---- queue pairs ---- */

/* A queue pair in RESET. attr->cap: in wanted (0 requests or SGEs = 1), out granted. -EINVAL: type,
 * limits, congestion control (the daemon's log says why), or an object that is missing or another
 * context's. -ENOMEM. -EDQUOT. */
URNIC_API int urnic_create_qp(struct urnic_pd *pd, struct urnic_qp_init_attr *attr,
                              struct urnic_qp **qp);
/* Change all attributes in mask, or on an error none. mask: enum urnic_qp_attr_mask. Transitions
 * need and allow the same attributes as in verbs; attributes outside the mask are ignored. A move
 * to RESET drops this queue pair's unpolled completions. From RESET it goes to INIT only; from any
 * other state also to ERR. -EINVAL: no such transition, an attribute missing or not allowed, or a
 * value out of range. -EBUSY: in SQD and not drained yet. -EHOSTUNREACH: no host answered for the
 * peer's address within 3 s. -EADDRINUSE: the peer's queue pair belongs to a connection of another
 * user (SEC-33). -EPERM: a Q_Key with bit 31 set is for root and the daemon's own user.
 * -EOPNOTSUPP: alternate paths (bits 14 and 18). */
URNIC_API int urnic_modify_qp(struct urnic_qp *qp, const struct urnic_qp_attr *attr, unsigned mask);
/* All attributes as the daemon has them. rq_psn and sq_psn are the first PSNs. ah_attr.sgid_index
 * is 0 while its address is gone. */
URNIC_API int urnic_query_qp(struct urnic_qp *qp, struct urnic_qp_attr *attr);
/* Its posted work requests don't complete; its unpolled completions are dropped. -EBUSY: attached
 * to multicast groups. */
URNIC_API int urnic_destroy_qp(struct urnic_qp *qp);
/* Its number on the wire, 24 bits. */
URNIC_API uint32_t urnic_qp_num(const struct urnic_qp *qp);
/* The qp_context of urnic_qp_init_attr. */
URNIC_API void *urnic_qp_context(const struct urnic_qp *qp);

/* Post a list of work requests. On an error the requests before *bad_wr are posted, the others are
 * not; bad_wr may be NULL. -EINVAL: state, opcode, flags, too many SGEs or inline octets; a
 * datagram longer than the port's active_mtu, without an address handle, or with a queue pair
 * number of more than 24 bits. -ENOMEM: the queue is full. A place becomes free when the request's
 * completion, or that of a later request of the same queue, has been polled; so some requests must
 * be signalled. -ENODEV.
 *
 * A posted request that is wrong completes with an error: LOC_LEN_ERR for a message longer than the
 * port's max_msg_sz, or for an atomic with a segment below 8 octets. A peer that refuses a request
 * (REM_..._ERR) says so only once. If the network loses that answer, the request completes with
 * RETRY_EXC_ERR.
 *
 * When the peer can't invalidate the key of a SEND_WITH_INV, its receive completes with
 * REM_INV_REQ_ERR and its queue pair goes to ERR. RoCE has no answer for this. The sender sees
 * RETRY_EXC_ERR, as if the peer were gone, or success, if the peer acknowledges first. */
URNIC_API int urnic_post_send(struct urnic_qp *qp, const struct urnic_send_wr *wr,
                              const struct urnic_send_wr **bad_wr);
/* The same, but after an error no request of the list is posted. */
URNIC_API int urnic_post_send_all(struct urnic_qp *qp, const struct urnic_send_wr *wr);
URNIC_API int urnic_post_recv(struct urnic_qp *qp, const struct urnic_recv_wr *wr,
                              const struct urnic_recv_wr **bad_wr);

/* Multicast: UD queue pairs. The group is an IPv6 multicast address, or ::ffff: and an IPv4 one.
 * Attaching twice is attaching once. -EINVAL: another type of queue pair, no group, or not
 * attached; -ENOMEM; -ENOSPC: the port is in as many groups as it can be. */
URNIC_API int urnic_attach_mcast(struct urnic_qp *qp, const uint8_t gid[16]);
URNIC_API int urnic_detach_mcast(struct urnic_qp *qp, const uint8_t gid[16]);

/* An address handle: the destination of a datagram. Resolves the neighbour's MAC address, which may
 * take up to 3 s. -EHOSTUNREACH: no answer. -EINVAL: no local address at sgid_index, or one of
 * another family (IPv4, IPv6) than dgid; a dgid that no host can have (`::`, 0.0.0.0,
 * 255.255.255.255); sl or flow_label out of range. Queue pairs of all domains may use it; pd can be
 * deallocated before it. */
URNIC_API int urnic_create_ah(struct urnic_pd *pd, const struct urnic_ah_attr *attr,
                              struct urnic_ah **ah);
/* Only the MAC address that packets to this address carry. Errors as urnic_create_ah. */
URNIC_API int urnic_resolve_mac(struct urnic_context *ctx, const struct urnic_ah_attr *attr,
                                uint8_t mac[6]);
/* An address handle to the sender of a received datagram. `grh`: the 40 octets of IP header before
 * the data. sgid_index: the local address to answer from. The traffic class is the datagram's
 * without its ECN bits. -EINVAL: not the completion of a datagram; or as urnic_create_ah. */
URNIC_API int urnic_create_ah_from_wc(struct urnic_pd *pd, const struct urnic_wc *wc,
                                      const void *grh, uint16_t sgid_index, struct urnic_ah **ah);
/* Posted work requests have their own copy. */
URNIC_API int urnic_destroy_ah(struct urnic_ah *ah);

/* ---- asynchronous events ---- */

/* Readable when an event waits. */
URNIC_API int urnic_async_fd(const struct urnic_context *ctx);
/* Wait for an event (don't wait when the descriptor is non-blocking, or poll() has called it
 * readable: -EAGAIN; urnic.h, event loops). When the daemon goes away: one
 * URNIC_EVENT_DEVICE_FATAL, then -ENODEV. Acknowledge each event: destroying its object waits for
 * that. */
URNIC_API int urnic_get_async_event(struct urnic_context *ctx, struct urnic_async_event *event);
/* The same, but a signal ends the wait: -EINTR, unless its handler was set with SA_RESTART. */
URNIC_API int urnic_get_async_event_intr(struct urnic_context *ctx,
                                         struct urnic_async_event *event);
/* Acknowledge it. */
URNIC_API void urnic_ack_async_event(struct urnic_async_event *event);

/* ---- names ---- */

/* In words, for people; constant strings. */
URNIC_API const char *urnic_wc_status_str(enum urnic_wc_status status);
/* The area of the rule in a completion's vendor_err, such as "RSP"; "" = no rule. */
URNIC_API const char *urnic_rule_area(uint32_t vendor_err);
URNIC_API const char *urnic_event_type_str(enum urnic_event_type event);
URNIC_API const char *urnic_qp_state_str(enum urnic_qp_state state);
/* The library's version, such as "0.1.0". */
URNIC_API const char *urnic_version(void);

#ifdef __cplusplus
}
#endif
#endif
