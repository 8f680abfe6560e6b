/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads a "dpdk:" port specification. Pure text work: nothing is opened and no DPDK is needed, so
 * that every mistake a user can make here is a table entry in a unit test.
 */
#include "dpdk_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_FRAMES_MAX 1024u /* in each of af_packet's two rings */
#define RING_FRAMES_MIN 64u
#define RING_STEP       256u  /* frame sizes: 16 of them fill whole pages */
#define RING_PAGE       4096u /* blocks are made of these */

static const struct {
    const char *prefix;
    enum dpdk_kind kind;
    bool needs_iface;
} kinds[] = {
    {"net_af_packet", DPDK_AF_PACKET, true},
    {"eth_af_packet", DPDK_AF_PACKET, true},
    {"net_af_xdp", DPDK_AF_XDP, true},
    {"net_tap", DPDK_TAP, false},
};

const char *dpdk_kind_name(enum dpdk_kind kind)
{
    static const char *const names[] = {
        [DPDK_PCI] = "pci", [DPDK_AF_PACKET] = "af_packet", [DPDK_AF_XDP] = "af_xdp",
        [DPDK_TAP] = "tap", [DPDK_VDEV] = "vdev",
    };
    return names[kind];
}

/* Is `s` exactly [DDDD:]BB:DD.F? Writes the full form. */
static bool pci_address(const char *s, char *out, size_t size)
{
    unsigned dom = 0, bus, dev, fn;
    int used = -1;

    if (s[strspn(s, "0123456789abcdefABCDEF:.")]) /* sscanf would take signs and blanks */
        return false;
    if (sscanf(s, "%4x:%2x:%2x.%1x%n", &dom, &bus, &dev, &fn, &used) != 4 || s[used]) {
        dom = 0;
        used = -1;
        if (sscanf(s, "%2x:%2x.%1x%n", &bus, &dev, &fn, &used) != 3 || s[used])
            return false;
    }
    if (dev > 0x1f || fn > 7)
        return false;
    return snprintf(out, size, "%04x:%02x:%02x.%u", dom, bus, dev, fn) < (int)size;
}

static int number(const char *key, const char *val, uint32_t min, uint32_t max, uint32_t *out,
                  char *err, size_t err_size)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(val, &end, 10);
    if (!isdigit((unsigned char)*val) || *end || errno || v < min || v > max) {
        snprintf(err, err_size, "%s=%s: give a number from %u to %u", key, val, min, max);
        return -EINVAL;
    }
    *out = (uint32_t)v;
    return 0;
}

static int own_option(struct dpdk_spec *spec, const char *key, const char *val, char *err,
                      size_t err_size)
{
    uint32_t flag = 0;
    int rc;

    if (!strcmp(key, "urnic_mtu"))
        return number(key, val, 296, 9216, &spec->mtu, err, err_size);
    if (!strcmp(key, "urnic_rxd"))
        return number(key, val, 64, 8192, &spec->rxd, err, err_size);
    if (!strcmp(key, "urnic_txd"))
        return number(key, val, 64, 8192, &spec->txd, err, err_size);
    if (!strcmp(key, "urnic_mem"))
        return number(key, val, 64, 65536, &spec->mem_mib, err, err_size);
    if (!strcmp(key, "urnic_promisc") || !strcmp(key, "urnic_debug")) {
        rc = number(key, val, 0, 1, &flag, err, err_size);
        if (!strcmp(key, "urnic_debug"))
            spec->debug = flag;
        else
            spec->promisc = flag;
        return rc;
    }
    if (!strcmp(key, "urnic_huge")) {
        if (!strcmp(val, "auto") || !strcmp(val, "off") || !strcmp(val, "on")) {
            spec->huge = val[0] == 'a'   ? DPDK_HUGE_AUTO
                         : val[1] == 'f' ? DPDK_HUGE_OFF
                                         : DPDK_HUGE_ON;
            return 0;
        }
        snprintf(err, err_size, "urnic_huge=%s: give auto, off or on", val);
        return -EINVAL;
    }
    snprintf(err, err_size,
             "%s: no such option; ours are urnic_mtu, urnic_rxd, urnic_txd, urnic_promisc, "
             "urnic_huge, urnic_mem, urnic_debug",
             key);
    return -EINVAL;
}

/* Is there more than one option of this name? Drivers have some that may be repeated; ours, and the
 * interface, may not. */
static int only_once(const char *args, const char *key, char *err, size_t err_size)
{
    size_t n = strlen(key);
    unsigned times = 0;

    for (const char *p = strchr(args, ','); p; p = strchr(p + 1, ','))
        times += !strncmp(p + 1, key, n) && strchr("=,", p[1 + n]);
    if (times < 2)
        return 0;
    snprintf(err, err_size, "%s is given twice", key);
    return -EINVAL;
}

static int append(struct dpdk_spec *spec, const char *text, char *err, size_t err_size)
{
    size_t have = strlen(spec->devargs);

    if (have + 1 + strlen(text) >= sizeof(spec->devargs)) {
        snprintf(err, err_size, "the options of %s are longer than %zu characters", spec->name,
                 sizeof(spec->devargs) - 1);
        return -EINVAL;
    }
    snprintf(spec->devargs + have, sizeof(spec->devargs) - have, ",%s", text);
    return 0;
}

static bool has_key(const struct dpdk_spec *spec, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = strchr(spec->devargs, ','); p; p = strchr(p + 1, ','))
        if (!strncmp(p + 1, key, n) && p[1 + n] == '=')
            return true;
    return false;
}

static int device_name(struct dpdk_spec *spec, const char *name, bool *needs_iface, char *err,
                       size_t err_size)
{
    *needs_iface = false;
    spec->kind = DPDK_VDEV;
    if (pci_address(name, spec->name, sizeof(spec->name))) {
        spec->kind = DPDK_PCI;
    } else if (!*name || strchr(name, ':') || strchr(name, '=') ||
               strlen(name) >= sizeof(spec->name)) {
        snprintf(err, err_size,
                 "dpdk:%s: begin with a DPDK device, for example dpdk:net_af_packet0,iface=eth1 or "
                 "dpdk:0000:01:00.0",
                 name);
        return -EINVAL;
    } else {
        snprintf(spec->name, sizeof(spec->name), "%s", name);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix))) {
                spec->kind = kinds[i].kind;
                *needs_iface = kinds[i].needs_iface;
            }
        }
    }
    snprintf(spec->devargs, sizeof(spec->devargs), "%s", spec->name);
    return 0;
}

static int interface_name(struct dpdk_spec *spec, const char *args, const char *name, char *err,
                          size_t err_size)
{
    if (!*name || strlen(name) >= sizeof(spec->iface)) {
        snprintf(err, err_size, "iface=%s: not the name of an interface", name);
        return -EINVAL;
    }
    snprintf(spec->iface, sizeof(spec->iface), "%s", name);
    return only_once(args, "iface", err, err_size);
}

int dpdk_spec_parse(const char *args, struct dpdk_spec *out, char *err, size_t err_size)
{
    char copy[256], *save = NULL, *word, *val;
    bool needs_iface = false;
    int rc;

    memset(out, 0, sizeof(*out));
    if (strlen(args) >= sizeof(copy)) {
        snprintf(err, err_size, "dpdk: the specification is longer than %zu characters",
                 sizeof(copy) - 1);
        return -EINVAL;
    }
    snprintf(copy, sizeof(copy), "%s", args);

    word = strtok_r(copy, ",", &save);
    rc = device_name(out, word ? word : "", &needs_iface, err, err_size);
    if (rc)
        return rc;

    while ((word = strtok_r(NULL, ",", &save))) {
        if (strncmp(word, "urnic_", 6)) {
            rc = append(out, word, err, err_size);
            if (!rc && !strncmp(word, "iface=", 6))
                rc = interface_name(out, args, word + 6, err, err_size);
        } else {
            val = strchr(word, '=');
            if (val)
                *val++ = '\0';
            rc = own_option(out, word, val ? val : "", err, err_size);
            if (!rc)
                rc = only_once(args, word, err, err_size);
        }
        if (rc)
            return rc;
    }
    if (needs_iface && !out->iface[0]) {
        snprintf(err, err_size, "dpdk:%s: say which interface, for example dpdk:%s,iface=eth1",
                 out->name, out->name);
        return -EINVAL;
    }
    return 0;
}

int dpdk_spec_renew(struct dpdk_spec *spec, const char *args, const char *iface, uint32_t frame_max,
                    uint64_t lockable, char *err, size_t err_size)
{
    struct dpdk_spec fresh;
    const char *at = strstr(args, ",iface=");
    size_t before = at ? (size_t)(at - args) + strlen(",iface=") : 0;
    char renamed[sizeof(fresh.devargs) + 32];

    if (at)
        snprintf(renamed, sizeof(renamed), "%.*s%s%s", (int)before, args, iface,
                 args + before + strcspn(args + before, ","));
    int rc = dpdk_spec_parse(at ? renamed : args, &fresh, err, err_size);
    if (!rc)
        rc = dpdk_spec_defaults(&fresh, frame_max, lockable, err, err_size);
    if (!rc) {
        fresh.promisc = spec->promisc; /* the opener may have asked for it */
        *spec = fresh;
    }
    return rc;
}

uint32_t dpdk_spec_framesz(uint32_t frame_max)
{
    /* Before the frame the kernel writes its header and an address, and aligns: under 128 octets.
     * One octet more than frame_max has to fit, or a longer frame, cut, would pass for one that
     * is just long enough. */
    uint32_t need = frame_max + 1 + 128;

    /* No power of two: a stride of one leaves half of the cache's sets to the frames' tails. */
    return need < 2048 ? 2048 : (need + RING_STEP - 1) / RING_STEP * RING_STEP;
}

/* The number that the user gave a driver option; 0 = none. */
static uint32_t given(const struct dpdk_spec *spec, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = strchr(spec->devargs, ','); p; p = strchr(p + 1, ','))
        if (!strncmp(p + 1, key, n) && p[1 + n] == '=')
            return (uint32_t)strtoul(p + 2 + n, NULL, 0);
    return 0;
}

/* af_packet's two rings: frames that hold `frame_max` octets, in blocks of whole frames and whole
 * pages. Left to itself the driver takes 2048 octets, and frames that are longer vanish. */
static int ring_defaults(struct dpdk_spec *spec, uint32_t frame_max, uint64_t lockable, char *err,
                         size_t err_size)
{
    uint32_t framesz = given(spec, "framesz"), framecnt = given(spec, "framecnt"), odd;
    char text[40];
    int rc = 0;

    if (!framesz) {
        framesz = dpdk_spec_framesz(frame_max);
        if (has_key(spec, "blocksz")) /* likely a power of two */
            for (odd = framesz, framesz = 2048; framesz < odd;)
                framesz *= 2;
        snprintf(text, sizeof(text), "framesz=%u", framesz);
        rc = append(spec, text, err, err_size);
    }
    if (!rc && !framecnt) {
        framecnt = RING_FRAMES_MAX;
        while (framecnt > RING_FRAMES_MIN && 2ull * framesz * framecnt > lockable)
            framecnt /= 2;
        snprintf(text, sizeof(text), "framecnt=%u", framecnt);
        rc = append(spec, text, err, err_size);
    }
    if (!rc && !has_key(spec, "blocksz")) {
        for (odd = framesz; odd % 2 == 0 && framesz / odd < RING_PAGE;)
            odd /= 2;
        snprintf(text, sizeof(text), "blocksz=%u", RING_PAGE * odd);
        rc = append(spec, text, err, err_size);
    }
    spec->ring_frame = framesz;
    return rc;
}

int dpdk_spec_defaults(struct dpdk_spec *spec, uint32_t frame_max, uint64_t lockable, char *err,
                       size_t err_size)
{
    char text[64];

    if (spec->kind == DPDK_AF_PACKET)
        return ring_defaults(spec, frame_max, lockable, err, err_size);
    /* Preferred busy polling turns the interface's interrupts off: then nobody wakes a worker that
     * waits for rx_fd. */
    if (spec->kind == DPDK_AF_XDP && !has_key(spec, "busy_budget"))
        return append(spec, "busy_budget=0", err, err_size);
    /* Debian 12's memif driver glues frames together once it has cut one into several buffers. */
    if (!strncmp(spec->name, "net_memif", 9) && !has_key(spec, "bsize")) {
        snprintf(text, sizeof(text), "bsize=%u", dpdk_spec_framesz(frame_max));
        return append(spec, text, err, err_size);
    }
    /* Without a name the tap driver chooses dtap0, dtap1 ... and we would not know which. */
    if (spec->kind == DPDK_TAP && !spec->iface[0]) {
        snprintf(spec->iface, sizeof(spec->iface), "%.15s", spec->name + 4);
        snprintf(text, sizeof(text), "iface=%s", spec->iface);
        return append(spec, text, err, err_size);
    }
    return 0;
}
