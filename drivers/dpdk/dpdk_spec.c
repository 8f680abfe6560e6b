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

#define RING_FRAMES_MAX 1024u /* most frames in each of af_packet's two rings */
#define RING_FRAMES_MIN 64u
#define RING_STEP       256u  /* frame sizes: 16 of them fill whole pages */
#define RING_PAGE       4096u /* blocks are made of these */
#define PCI_DESCRIPTORS 1024u /* descriptors of each queue, unless given */

static const struct known_driver {
    const char *prefix;
    enum dpdk_kind kind;
    bool needs_iface;
    const char *options; /* the driver's known options: a newer DPDK may have more */
} kinds[] = {
    {"net_af_packet", DPDK_AF_PACKET, true,
     "iface qpairs framesz framecnt blocksz qdisc_bypass fanout_mode"},
    {"eth_af_packet", DPDK_AF_PACKET, true,
     "iface qpairs framesz framecnt blocksz qdisc_bypass fanout_mode"},
    {"net_af_xdp", DPDK_AF_XDP, true,
     "iface start_queue queue_count shared_umem xdp_prog busy_budget force_copy use_cni "
     "use_pinned_map dp_path"},
    {"net_tap", DPDK_TAP, false, "iface mac remote persist"},
};

const char *dpdk_kind_name(enum dpdk_kind kind)
{
    static const char *const names[] = {
        [DPDK_PCI] = "pci", [DPDK_AF_PACKET] = "af_packet", [DPDK_AF_XDP] = "af_xdp",
        [DPDK_TAP] = "tap", [DPDK_VDEV] = "vdev",
    };
    return names[kind];
}

/* Is `s` exactly [DOMAIN:]BB:DD.F? A domain has 4 digits, or more in virtual machines whose host
 * makes domains up. Writes the full form. */
static bool pci_address(const char *s, char *out, size_t size)
{
    unsigned dom = 0, bus, dev, fn;
    int used = -1;
    if (s[strspn(s, "0123456789abcdefABCDEF:.")]) /* sscanf would take signs and blanks */
        return false;
    if (sscanf(s, "%8x:%2x:%2x.%1x%n", &dom, &bus, &dev, &fn, &used) != 4 || s[used]) {
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

/* The end of the word that begins at `p`: a comma outside of brackets, or the end of the text.
 * Words in brackets belong to another device, as in net_failsafe's dev(net_tap0,iface=t0). */
static const char *word_end(const char *p)
{
    unsigned depth = 0;
    for (; *p && (*p != ',' || depth); p++) {
        if (strchr("([{", *p))
            depth++;
        else if (strchr(")]}", *p) && depth)
            depth--;
    }
    return p;
}

/* The word after the one at `p`, or NULL. */
static const char *next_word(const char *p)
{
    p = word_end(p);
    return *p ? p + 1 : NULL;
}

static bool is_key(const char *word, const char *key)
{
    size_t n = strlen(key);
    return !strncmp(word, key, n) && word[n] && strchr("=,", word[n]);
}

/* Is there more than one option of this name? Drivers have some that may be repeated; ours, and the
 * interface, may not. */
static int only_once(const char *args, const char *key, char *err, size_t err_size)
{
    unsigned times = 0;
    for (const char *p = next_word(args); p; p = next_word(p))
        times += is_key(p, key) || !strcmp(p, key);
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

/* The option's word in "NAME,KEY=VALUE,..."; NULL = absent. */
static const char *find_key(const char *args, const char *key)
{
    for (const char *p = next_word(args); p; p = next_word(p))
        if (is_key(p, key))
            return p;
    return NULL;
}

static bool has_key(const struct dpdk_spec *spec, const char *key)
{
    return find_key(spec->devargs, key) != NULL;
}

/* Does one mistake make one word of the other: a letter too much, too few, a wrong one, or two that
 * changed places? */
static bool is_misspelt(const char *word, size_t n, const char *right, size_t len)
{
    size_t same = 0, tail = 0, most = n < len ? n : len;
    while (same < most && word[same] == right[same])
        same++;
    while (tail < most - same && word[n - 1 - tail] == right[len - 1 - tail])
        tail++;
    size_t left = n - same - tail, missing = len - same - tail;
    if (left <= 1 && missing <= 1)
        return left + missing > 0;
    return left == 2 && missing == 2 && word[same] == right[same + 1] &&
           word[same + 1] == right[same];
}

/* Is it nearly an option that the driver has? Any other goes to the driver: DPDK may be newer than
 * our list. */
static int check_option(const struct known_driver *driver, const char *word, char *err,
                        size_t err_size)
{
    size_t n = strcspn(word, "="), len;
    const char *near = NULL;
    size_t near_len = 0;
    for (const char *o = driver->options; *o; o += len + strspn(o + len, " ")) {
        len = strcspn(o, " ");
        if (len == n && !memcmp(o, word, n))
            return 0;
        if (!near && is_misspelt(word, n, o, len)) {
            near = o;
            near_len = len;
        }
    }
    if (!near)
        return 0;
    snprintf(err, err_size, "%.*s: DPDK's %s has no such option; did you mean %.*s?", (int)n, word,
             driver->prefix, (int)near_len, near);
    return -EINVAL;
}

/* Sets *driver if the table above has it. */
static int device_name(struct dpdk_spec *spec, const char *name, const struct known_driver **driver,
                       char *err, size_t err_size)
{
    *driver = NULL;
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
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
            if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)))
                *driver = &kinds[i];
        if (*driver)
            spec->kind = (*driver)->kind;
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

/* The number of queues over which the kernel or AF_XDP is to spread received frames. */
static int queue_option(struct dpdk_spec *spec, const char *word, char *err, size_t err_size)
{
    static const char *const keys[] = {"qpairs=", "queue_count="};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t len = strlen(keys[i]);
        if (strncmp(word, keys[i], len) != 0)
            continue;
        if (word[len] < '1' || word[len] > '8' || word[len + 1]) {
            snprintf(err, err_size, "%s: 1 to 8 queues, one for each worker of the device", word);
            return -EINVAL;
        }
        spec->queues = (unsigned)(word[len] - '0');
    }
    return 0;
}

unsigned dpdk_spec_workers(unsigned queues)
{
    unsigned n = 1;
    while (n < queues)
        n *= 2;
    return n;
}

/* An option for the driver, as it stands. `driver` NULL: one that we don't know. */
static int driver_option(struct dpdk_spec *spec, const struct known_driver *driver,
                         const char *args, const char *word, char *err, size_t err_size)
{
    int rc = driver ? check_option(driver, word, err, err_size) : 0;
    if (!rc && driver)
        rc = queue_option(spec, word, err, err_size);
    if (!rc)
        rc = append(spec, word, err, err_size);
    /* For other drivers the same word need not be an interface: for net_vhost it is a socket. */
    if (!rc && driver && !strncmp(word, "iface=", 6))
        rc = interface_name(spec, args, word + 6, err, err_size);
    return rc;
}

int dpdk_spec_parse(const char *args, struct dpdk_spec *out, char *err, size_t err_size)
{
    char copy[256], *word, *next, *val;
    const struct known_driver *driver;
    int rc;
    memset(out, 0, sizeof(*out));
    if (strlen(args) >= sizeof(copy)) {
        snprintf(err, err_size, "dpdk: the specification is longer than %zu characters",
                 sizeof(copy) - 1);
        return -EINVAL;
    }
    snprintf(copy, sizeof(copy), "%s", args);

    next = copy + (word_end(copy) - copy);
    if (*next)
        *next++ = '\0';
    rc = device_name(out, copy, &driver, err, err_size);
    while (!rc && *next) {
        word = next;
        next += word_end(word) - word;
        if (*next)
            *next++ = '\0';
        if (!*word)
            continue;
        if (strncmp(word, "urnic_", 6)) {
            rc = driver_option(out, driver, args, word, err, err_size);
            continue;
        }
        val = strchr(word, '=');
        if (val)
            *val++ = '\0';
        rc = own_option(out, word, val ? val : "", err, err_size);
        if (!rc)
            rc = only_once(args, word, err, err_size);
    }
    if (!rc && driver && driver->needs_iface && !out->iface[0]) {
        snprintf(err, err_size, "dpdk:%s: say which interface, for example dpdk:%s,iface=eth1",
                 out->name, out->name);
        rc = -EINVAL;
    }
    return rc;
}

int dpdk_spec_renew(struct dpdk_spec *spec, const char *args, const char *iface, uint32_t frame_max,
                    uint64_t lockable, char *err, size_t err_size)
{
    struct dpdk_spec fresh;
    const char *at = find_key(args, "iface");
    char renamed[sizeof(fresh.devargs) + 32];
    if (at)
        snprintf(renamed, sizeof(renamed), "%.*siface=%s%s", (int)(at - args), args, iface,
                 word_end(at));
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
    const char *word = find_key(spec->devargs, key);
    return word ? (uint32_t)strtoul(word + strlen(key) + 1, NULL, 0) : 0;
}

/* af_packet's two rings: frames that hold `frame_max` octets, in blocks of whole frames and whole
 * pages. Left to itself the driver takes 2048 octets, and frames that are longer vanish. */
static int ring_defaults(struct dpdk_spec *spec, uint32_t frame_max, uint64_t lockable, char *err,
                         size_t err_size)
{
    uint32_t framesz = given(spec, "framesz"), framecnt = given(spec, "framecnt"), odd;
    uint32_t rings = spec->queues ? spec->queues : 1; /* pairs of them */
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
        while (framecnt > RING_FRAMES_MIN && 2ull * framesz * framecnt * rings > lockable)
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
    /* Preferred busy polling turns the interface's interrupts off: then nothing wakes a worker that
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

uint32_t dpdk_spec_buffers(uint32_t rxd, uint32_t txd)
{
    const uint32_t bursts = 128; /* reserved and spare slots */
    return rxd + txd + PORT_LENT_MAX + PORT_QUEUE_MAX + bursts + 4 * PORT_POOL_CACHE;
}

uint64_t dpdk_spec_memory(const struct dpdk_spec *spec, uint32_t frame_max)
{
    uint64_t n = dpdk_spec_buffers(spec->rxd ? spec->rxd : PCI_DESCRIPTORS,
                                   spec->txd ? spec->txd : PCI_DESCRIPTORS);
    n *= spec->queues ? spec->queues : 1;
    /* The frame in steps of 1 KiB, and before it head room, mbuf and the pool's header. */
    uint64_t each = (frame_max + 8 + 1023) / 1024 * 1024 + 128 + 128 + 64;

    return n * each * 5 / 4 + (8u << 20);
}
