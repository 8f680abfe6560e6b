/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_spec.h.
 */
#include "udp_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io_arg.h"
#include "udp.h"
#include "wire.h"

#define UDP_BUFFER_MIN 65536u
#define UDP_BUFFER_MAX (1u << 30)

static int parse_only(struct udp_spec *s, char *list, char *err, size_t err_size)
{
    char *save = NULL;
    for (char *one = strtok_r(list, ";", &save); one; one = strtok_r(NULL, ";", &save)) {
        struct wire_addr a;
        if (s->nonly == UDP_ADDRS)
            return io_fail(err, err_size, -EINVAL, "udp: addr=: at most %u addresses", UDP_ADDRS);
        if (wire_addr_parse(one, &a) < 0 || wire_addr_is_multicast(&a))
            return io_fail(err, err_size, -EINVAL,
                           "udp: addr=%s: want an address of the interface like 10.0.0.1 or "
                           "fd00::1, without a prefix; several with semicolons between",
                           one);
        memcpy(s->only[s->nonly].b, a.b, sizeof(a.b));
        if (udp_spec_wants(s, &s->only[s->nonly]) && s->nonly > 0)
            return io_fail(err, err_size, -EINVAL, "udp: addr=%s: the address is there twice", one);
        s->nonly++;
    }
    if (s->nonly == 0)
        return io_fail(err, err_size, -EINVAL, "udp: addr=: names no address");
    return 0;
}

int udp_spec_parse(const char *args, struct udp_spec *out, char *err, size_t err_size)
{
    static const char *const keys[] = {"addr", "buffer", "trains", NULL};
    char value[IO_SPEC_MAX];
    size_t len = strcspn(args, ",");
    *out = (struct udp_spec){.trains = true, .buffer = UDP_BUFFER};
    if (len == 0 || len >= sizeof(out->iface) || memchr(args, '=', len))
        return io_fail(
            err, err_size, -EINVAL,
            "udp: want udp:INTERFACE[,KEY=VALUE...] with an interface of the kernel like "
            "eth0 or lo, not '%.80s'",
            args);
    memcpy(out->iface, args, len);
    args += len;
    args += *args == ',';
    if (io_arg_unknown(args, keys, value, sizeof(value)))
        return io_fail(err, err_size, -EINVAL,
                       "udp: key '%s' is unknown or given twice (keys: addr buffer trains)", value);
    const char *bare = io_arg_bare(args, &len);
    if (bare)
        return io_fail(err, err_size, -EINVAL, "udp: '%.*s': want KEY=VALUE", (int)len, bare);
    int rc = io_arg(args, "addr", value, sizeof(value));
    if (rc)
        rc = parse_only(out, value, err, err_size);
    if (rc < 0)
        return rc;
    uint64_t octets = UDP_BUFFER;
    rc = io_arg(args, "buffer", value, sizeof(value));
    if (rc && (rc < 0 || io_parse_size(value, &octets) || octets < UDP_BUFFER_MIN ||
               octets > UDP_BUFFER_MAX))
        return io_fail(err, err_size, -EINVAL,
                       "udp: buffer=%s: want octets of a socket's buffer, 64K to 1G", value);
    out->buffer = (uint32_t)octets;
    rc = io_arg(args, "trains", value, sizeof(value));
    if (rc && (rc < 0 || io_parse_bool(value, &out->trains)))
        return io_fail(err, err_size, -EINVAL, "udp: trains=%s: want on or off", value);
    return 0;
}

bool udp_spec_wants(const struct udp_spec *s, const struct io_addr *addr)
{
    for (unsigned i = 0; i < s->nonly; i++) {
        if (memcmp(s->only[i].b, addr->b, sizeof(addr->b)) == 0)
            return true;
    }
    return s->nonly == 0;
}

int io_udp_check(const char *args, char *err, size_t err_size)
{
    struct udp_spec s;
    return udp_spec_parse(args, &s, err, err_size);
}
