/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks of `urnic doctor` for a udp port: addresses, the UDP port, the sockets' buffers, and
 * whether a firewall may be in the way.
 */
#include "doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor_firewall.h"
#include "dpdk_hint.h"
#include "udp_holder.h"
#include "udp_socket.h"
#include "wire.h"

#define BUFFER_WANTED (4l << 20) /* octets */
#define NET_ADMIN     (1ull << 12)

/* The n-th IPv4 or IPv6 address of the interface; NULL = there are fewer. */
static const struct ifaddrs *nth(const struct ifaddrs *all, const char *iface, unsigned n)
{
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(i->ifa_name, iface) == 0 && (family == AF_INET || family == AF_INET6) &&
            n-- == 0)
            return i;
    }
    return NULL;
}

static socklen_t size_of(const struct sockaddr *sa)
{
    return sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

void doctor_udp_addresses(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct ifaddrs *all = NULL;
    char first[INET6_ADDRSTRLEN] = "";
    unsigned n = 0;
    getifaddrs(&all);
    while (nth(all, s->dpdk.iface, n))
        n++;
    if (n > 0) {
        const struct sockaddr *sa = nth(all, s->dpdk.iface, 0)->ifa_addr;
        getnameinfo(sa, size_of(sa), first, sizeof(first), NULL, 0, NI_NUMERICHOST);
        snprintf(f->text, sizeof(f->text),
                 "the device will have the interface's %u address%s (%s%s)", n, n == 1 ? "" : "es",
                 first, n == 1 ? "" : ", ...");
    } else {
        doctor_say(f, DOCTOR_MISSING, "the interface has no address", "");
        snprintf(f->mend, sizeof(f->mend),
                 "ip addr add 192.0.2.1/24 dev %s   # one of your network", s->dpdk.iface);
    }
    freeifaddrs(all);
}

/* Try to bind the port of each address, as the daemon will. */
void doctor_udp_port(const struct doctor_subject *s, struct doctor_finding *f)
{
    const struct ifaddrs *i;
    struct ifaddrs *all = NULL;
    char holder[UDP_HOLDER_TEXT];
    doctor_say(f, DOCTOR_GOOD, "UDP port 4791 is free", "");
    getifaddrs(&all);
    for (unsigned n = 0; (i = nth(all, s->dpdk.iface, n)); n++) {
        union udp_sockaddr sa;
        struct io_addr addr;
        socklen_t len = size_of(i->ifa_addr);
        int fd = socket(i->ifa_addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        memcpy(&sa, i->ifa_addr, len);
        udp_sockaddr_get(&sa, &addr);
        if (sa.sa.sa_family == AF_INET)
            sa.v4.sin_port = htons(WIRE_UDP_PORT);
        else
            sa.v6.sin6_port = htons(WIRE_UDP_PORT);
        bool taken = fd >= 0 && bind(fd, &sa.sa, len) < 0 && errno == EADDRINUSE;
        if (fd >= 0)
            close(fd);
        if (!taken)
            continue;
        udp_holder(&addr, WIRE_UDP_PORT, holder, sizeof(holder));
        f->level = DOCTOR_MISSING;
        snprintf(f->text, sizeof(f->text), "UDP port 4791 is taken by %s", holder);
        snprintf(f->mend, sizeof(f->mend),
                 "ss -lunp sport = 4791   # end it; rdma_rxe: modprobe -r rdma_rxe");
        break;
    }
    freeifaddrs(all);
}

void doctor_udp_buffer(const struct doctor_subject *s, struct doctor_finding *f)
{
    char text[64] = "0";
    (void)s;
    doctor_read("/proc/sys/net/core/rmem_max", text, sizeof(text));
    long n = strtol(text, NULL, 10);
    if (dpdk_hint_effective() & NET_ADMIN) {
        doctor_say(f, DOCTOR_GOOD, "CAP_NET_ADMIN: sockets get the buffers that they ask for", "");
        return;
    }
    f->level = n >= BUFFER_WANTED ? DOCTOR_GOOD : DOCTOR_NOTE;
    snprintf(f->text, sizeof(f->text), "sockets get buffers of %ld KiB%s", n / 1024,
             n >= BUFFER_WANTED ? "" : ": a fast sender overruns them");
    snprintf(f->mend, sizeof(f->mend),
             "sysctl -w net.core.rmem_max=8388608 net.core.wmem_max=8388608   # before the daemon "
             "starts");
}

static bool has_module(const char *name)
{
    char line[256];
    size_t len = strlen(name);
    bool found = false;
    FILE *f = fopen("/proc/modules", "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = strncmp(line, name, len) == 0 && line[len] == ' ';
    if (f)
        fclose(f);
    return found;
}

/* No program can tell the effect of all rules on a packet: where some drop packets, the user has to
 * look. */
void doctor_udp_firewall(const struct doctor_subject *s, struct doctor_finding *f)
{
    static const char look[] =
        "nft list ruleset; iptables-save   # firewall-cmd --add-port=4791/udp; "
        "ufw allow 4791/udp";
    struct doctor_rules r;
    (void)s;
    doctor_rules_read(&r);
    bool filters = has_module("nf_tables") || has_module("iptable_filter");
    if (!r.read && filters)
        doctor_say(f, DOCTOR_NOTE,
                   "this kernel filters packets, and the rules could not be read (that takes root, "
                   "and nft or iptables-save): let UDP port 4791 in",
                   look);
    else if (!r.read)
        doctor_say(f, DOCTOR_GOOD,
                   "no firewall is loaded as a module; rules could not be read (that takes root, "
                   "and nft or iptables-save)",
                   "");
    else if (!r.drops)
        doctor_say(f, DOCTOR_GOOD, "no rule of this host drops packets", "");
    else
        doctor_say(f, DOCTOR_NOTE,
                   r.names_port ? "rules of this host drop packets, and name port 4791: see that "
                                  "they let it in"
                                : "rules of this host drop packets, and none names UDP port 4791: "
                                  "it may not be let in",
                   look);
}
