/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's rdma_ucm ABI, without I/O: the layout of commands and answers, and conversions
 * between liburnic's values and the kernel's.
 */
#ifndef URNIC_VERBS_UCMA_ABI_H
#define URNIC_VERBS_UCMA_ABI_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urnic/urnic.h"

/* An IPv4 or IPv6 address with its port; family AF_UNSPEC = none. */
union ucma_addr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* A path between two addresses, as programs see it. */
struct ucma_path {
    uint8_t sgid[16], dgid[16];
    uint8_t mtu; /* enum */
    uint8_t tclass;
    bool resolved; /* there is a path record */
};

/* Take an address of `size` octets. 0, or -EINVAL: neither IPv4 nor IPv6, or too short. */
int ucma_addr_take(union ucma_addr *to, const void *from, size_t size);
/* Store the address in a field of an ABI structure, of `size` octets. Returns the address's own
 * size. */
size_t ucma_addr_put(const union ucma_addr *from, void *to, size_t size);
/* From 16 octets (IPv4 mapped) and a port. */
void ucma_addr_from_gid(union ucma_addr *to, const uint8_t gid[16], uint16_t port);
/* The 16 octets (IPv4 mapped). */
void ucma_addr_gid(const union ucma_addr *a, uint8_t gid[16]);
uint16_t ucma_addr_port(const union ucma_addr *a);
void ucma_addr_set_port(union ucma_addr *a, uint16_t port);
/* 0.0.0.0 or ::, or no address at all. */
bool ucma_addr_is_zero(const union ucma_addr *a);
/* 127.0.0.0/8 or ::1. */
bool ucma_addr_is_loopback(const union ucma_addr *a);
bool ucma_addr_is_multicast(const union ucma_addr *a);
/* The loopback address of a family, with a port. */
void ucma_addr_loopback(union ucma_addr *to, int family, uint16_t port);
/* The number of leading bits that two addresses share. */
unsigned ucma_common_bits(const uint8_t a[16], const uint8_t b[16]);

/* A program's parameters for a connection. The private data stays in `from`. */
void ucma_conn_param(struct urnic_conn_param *to, const struct rdma_ucm_conn_param *from,
                     uint8_t tclass);
/* An event's parameters, those of a connection or of a datagram service. */
void ucma_event_param(struct rdma_ucm_event_resp *to, const struct urnic_cm_event *from,
                      bool datagrams);
/* The event of a joined group: the address vector to send to it. */
void ucma_group_param(struct rdma_ucm_event_resp *to, const union ucma_addr *group,
                      uint16_t sgid_index);
/* A queue pair's attributes and their mask. */
void ucma_qp_attr(struct ib_uverbs_qp_attr *to, const struct urnic_qp_attr *from, unsigned mask);
void ucma_path_rec(struct ib_user_path_rec *to, const struct ucma_path *from);
/* The same in the format of the subnet administrator (IBTA 15.2.5.16), 64 octets. */
void ucma_path_sa(uint32_t to[16], const struct ucma_path *from);

#define UCMA_UDP_QKEY      0x01234567u /* for rdma_cm's datagrams */
#define UCMA_MULTICAST_QPN 0xFFFFFFu
#define UCMA_PKEY          0xFFFFu

#endif
