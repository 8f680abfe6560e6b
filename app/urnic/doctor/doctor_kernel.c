/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The check of `urnic doctor` for kernel=, the kernel's interface beside a port.
 */
#include "doctor.h"

#include <linux/capability.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void doctor_kernel(const struct doctor_subject *s, struct doctor_finding *f)
{
    char path[96], text[32];
    const char *name = s->tap;
    bool admin = doctor_rights() >> CAP_NET_ADMIN & 1;
    bool there = if_nametoindex(name) != 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/owner", name);
    bool tap = there && doctor_read(path, text, sizeof(text)); /* a tun or tap has this file */
    bool own = tap && strtol(text, NULL, 10) == (long)geteuid();
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {
        doctor_say(f, DOCTOR_MISSING, "kernel= needs /dev/net/tun", "modprobe tun");
    } else if (there && !tap) {
        f->level = DOCTOR_MISSING;
        snprintf(
            f->text, sizeof(f->text),
            "kernel=%s: there is an interface of this name that is no tap: choose another name",
            name);
    } else if (!admin && !own) {
        f->level = DOCTOR_MISSING;
        snprintf(f->text, sizeof(f->text),
                 "kernel=%s: to make the interface takes CAP_NET_ADMIN, or one made before", name);
        snprintf(f->mend, sizeof(f->mend), "ip tuntap add dev %s mode tap user USER", name);
    } else {
        f->level = DOCTOR_GOOD;
        snprintf(f->text, sizeof(f->text), "kernel=%s: %s", name,
                 there ? "the kernel has the interface" : "the interface can be made");
    }
}
