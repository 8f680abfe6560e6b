/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checks of `urnic doctor` for the interface of an af_packet or af_xdp port.
 */
#include "doctor.h"

#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "dpdk_hint.h"
#include "dpdk_netdev.h"
#include "wire.h"

#define XDP_MTU_MAX  3442
#define XDP_PATH_MTU 2048u

void doctor_iface(const struct doctor_subject *s, struct doctor_finding *f)
{
    char path[160], text[64] = "";
    if (!s->dpdk.iface[0]) {
        doctor_say(f, DOCTOR_NOTE, "no interface was named (iface=NAME)", "ip -br link");
        return;
    }
    if (!if_nametoindex(s->dpdk.iface)) {
        doctor_say(f, DOCTOR_MISSING, "", "ip -br link");
        snprintf(f->text, sizeof(f->text), "interface '%s' does not exist", s->dpdk.iface);
        return;
    }
    if (netdev_is_ethernet(s->dpdk.iface)) {
        f->level = DOCTOR_MISSING;
        snprintf(f->text, sizeof(f->text), "interface '%s' carries no Ethernet frames",
                 s->dpdk.iface);
        return;
    }
    snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", s->dpdk.iface);
    doctor_read(path, text, sizeof(text));
    if (strcmp(text, "down") == 0) {
        f->level = DOCTOR_NOTE; /* af_packet and af_xdp have the right to bring it up */
        snprintf(f->text, sizeof(f->text), "interface '%s' is down: urnicd brings it up",
                 s->dpdk.iface);
        snprintf(f->mend, sizeof(f->mend), "ip link set %s up", s->dpdk.iface);
        return;
    }
    bool works = strcmp(text, "up") == 0 || strcmp(text, "unknown") == 0;
    f->level = works ? DOCTOR_GOOD : DOCTOR_NOTE;
    snprintf(f->text, sizeof(f->text), "interface '%s' is %s (%s)", s->dpdk.iface,
             works ? "there" : "up, but its other end isn't", text);
}

/* The path MTU that an interface's MTU gives; 0 = none. */
static uint32_t path_mtu(long mtu)
{
    return mtu > 0 ? wire_mtu_octets(wire_mtu_for_ip((uint32_t)mtu)) : 0;
}

/* Is the interface's MTU too small for the least path MTU? urnicd refuses it. */
static bool is_small_mtu(const struct doctor_subject *s, long mtu, struct doctor_finding *f)
{
    if (path_mtu(mtu) > 0)
        return false;
    f->level = DOCTOR_MISSING;
    snprintf(f->text, sizeof(f->text), "MTU %ld is too small for any path MTU", mtu);
    snprintf(f->mend, sizeof(f->mend), "ip link set %s mtu 1500", s->dpdk.iface);
    return true;
}

/* af_xdp: a frame and the headers before it must fit in a page. */
static void say_xdp_mtu(const struct doctor_subject *s, long mtu, struct doctor_finding *f)
{
    if (mtu > XDP_MTU_MAX) {
        f->level = DOCTOR_MISSING;
        snprintf(f->text, sizeof(f->text), "MTU %ld is more than the %d of af_xdp", mtu,
                 XDP_MTU_MAX);
    } else {
        bool most = path_mtu(mtu) == XDP_PATH_MTU;
        f->level = most ? DOCTOR_GOOD : DOCTOR_NOTE;
        snprintf(f->text, sizeof(f->text), "MTU %ld gives path MTU %u%s", mtu, path_mtu(mtu),
                 most ? ", the most of af_xdp" : "");
    }
    if (f->level != DOCTOR_GOOD)
        snprintf(f->mend, sizeof(f->mend), "ip link set %s mtu %d   # of a veth pair both ends",
                 s->dpdk.iface, XDP_MTU_MAX);
}

void doctor_mtu(const struct doctor_subject *s, struct doctor_finding *f)
{
    char path[160], text[64] = "";
    snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", s->dpdk.iface);
    if (!s->dpdk.iface[0] || !doctor_read(path, text, sizeof(text))) {
        doctor_say(f, DOCTOR_NOTE, "an MTU of 4192 or more gives path MTU 4096, 1500 gives 1024",
                   "ip link set IFACE mtu 9000");
        return;
    }
    long mtu = strtol(text, NULL, 10);
    if (is_small_mtu(s, mtu, f))
        return;
    if (s->dpdk.kind == DPDK_AF_XDP) {
        say_xdp_mtu(s, mtu, f);
        return;
    }
    snprintf(f->text, sizeof(f->text), "MTU %ld gives path MTU %u", mtu, path_mtu(mtu));
    f->level = path_mtu(mtu) == WIRE_MTU_MAX ? DOCTOR_GOOD : DOCTOR_NOTE;
    if (f->level != DOCTOR_GOOD)
        snprintf(f->mend, sizeof(f->mend), "ip link set %s mtu 9000   # if the network allows",
                 s->dpdk.iface);
}

void doctor_claim(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    (void)s;
    bool allowed = doctor_rights() >> CAP_BPF & 1;
    if (uname(&u) == 0)
        sscanf(u.release, "%u.%u", &major, &minor);
    if (allowed && (major > 6 || (major == 6 && minor >= 6)))
        doctor_say(f, DOCTOR_GOOD,
                   "the kernel's IP stack can be kept from urnicd's packets: CAP_BPF", "");
    else
        doctor_say(
            f, DOCTOR_NOTE,
            "without CAP_BPF and Linux 6.6 the kernel's IP stack works on urnicd's packets, too: "
            "slower",
            allowed ? "" : "setcap cap_net_raw,cap_net_admin,cap_bpf+ep $(command -v urnicd)");
}

void doctor_addresses(const struct doctor_subject *s, struct doctor_finding *f)
{
    struct ifaddrs *all = NULL;
    char first[INET6_ADDRSTRLEN] = "";
    bool v6 = false;
    unsigned n = 0;
    if (!s->dpdk.iface[0]) {
        doctor_say(f, DOCTOR_NOTE,
                   "an address that the kernel has on the interface can't be urnicd's, too",
                   "ip -br addr");
        return;
    }
    getifaddrs(&all);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(i->ifa_name, s->dpdk.iface) || (family != AF_INET && family != AF_INET6))
            continue;
        v6 |= family == AF_INET6;
        if (n++ == 0)
            getnameinfo(i->ifa_addr,
                        family == AF_INET ? sizeof(struct sockaddr_in)
                                          : sizeof(struct sockaddr_in6),
                        first, sizeof(first), NULL, 0, NI_NUMERICHOST);
    }
    freeifaddrs(all);
    if (!n) {
        doctor_say(f, DOCTOR_GOOD, "the kernel has no address on the interface", "");
        return;
    }
    f->level = DOCTOR_NOTE;
    snprintf(f->text, sizeof(f->text),
             "the kernel has %u address%s on this interface (%s): don't give urnicd the same, or "
             "the kernel rejects its packets",
             n, n == 1 ? "" : "es", first);
    if (v6)
        snprintf(f->mend, sizeof(f->mend), "sysctl net.ipv6.conf.%s.disable_ipv6=1", s->dpdk.iface);
}
