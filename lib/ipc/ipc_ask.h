/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Questions of the daemon to an engine in a program, and its answers. They let tools see all queue
 * pairs of a device in the same way. Questions and answers are frames in the channel
 * (drivers/channel) of a type that no network carries, so the thread that runs the engine's rounds
 * answers. An answer that is longer than a frame comes in parts, in order.
 *
 * The daemon doesn't trust an answer: it checks or replaces numbers, texts and owners.
 */
#ifndef URNIC_IPC_ASK_H
#define URNIC_IPC_ASK_H

#include "ipc_admin.h"

#define IPC_ASK_MAX 15360u       /* octets of an answer; with its header it fits into a message */
#define IPC_ASK_NS  100000000ull /* the daemon's longest wait for an answer */
#define IPC_ASK_CC  1024u        /* octets of congestion control as text, with its end */

enum ipc_ask_kind {
    IPC_ASK_COUNTERS = 1, /* ipc_asked_counter: those that aren't 0 */
    IPC_ASK_QPS,          /* ipc_asked_qp: from `first` on, or `qpn` alone */
    IPC_ASK_HISTORY,      /* text: the recorder of `qpn` */
    IPC_ASK_CC_OF,        /* ipc_asked_cc: of `qpn`; with `cc`, which is set before */
};

struct ipc_question {
    uint32_t id, kind;
    uint32_t qpn, first;
    uint32_t states, types; /* as in ipc_qp_filter */
    char cc[IPC_ASK_CC];
};

/* A part of an answer, followed by its octets. id 0: no answer to a question, but the last counters
 * of a program that ends. */
struct ipc_answer {
    uint32_t id;
    int32_t status; /* 0 or -errno */
    uint32_t next;  /* cursor of the rest of a list; 0 = end of the list */
    uint32_t len;   /* of the whole answer */
    uint32_t off;   /* of this part */
    uint32_t part;  /* octets of this part */
};

struct ipc_asked_counter {
    uint64_t value;
    char name[40];
};

struct ipc_asked_qp {
    struct ipc_qp_info info; /* without pid, uid, comm and worker */
    uint64_t cc_target;      /* bit/s; all ones: not limited */
};

struct ipc_asked_cc {
    struct ipc_asked_qp qp;
    char cc[IPC_ASK_CC]; /* with all its parameters */
};

#endif
