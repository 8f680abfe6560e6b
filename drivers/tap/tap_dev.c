/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See tap_dev.h. The kernel's frames leave by a NIC that it doesn't know. So it sends without
 * offloads: it computes checksums and segments itself.
 */
#include "tap_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io_arg.h"

static struct ifreq request(const struct tap_dev *t)
{
    struct ifreq r;
    memset(&r, 0, sizeof(r));
    memcpy(r.ifr_name, t->name, sizeof(t->name));
    return r;
}

/* Some requests need a socket, not the tap's descriptor. */
static int by_socket(unsigned long what, struct ifreq *r)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 || ioctl(fd, what, r) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int refused(const struct tap_dev *t, int rc, char *err, size_t err_size)
{
    const char *n = t->name;
    if (rc == -EPERM || rc == -EACCES)
        return io_fail(err, err_size, -EPERM,
                       "kernel=%s: the interface can't be had: it takes CAP_NET_ADMIN, or one made "
                       "before for the daemon's user: `ip tuntap add dev %s mode tap user USER`",
                       n, n);
    if (rc == -EBUSY)
        return io_fail(err, err_size, rc,
                       "kernel=%s: another program has this interface: choose another name, or end "
                       "that program",
                       n);
    if (rc == -EINVAL)
        return io_fail(err, err_size, rc,
                       "kernel=%s: there is an interface of this name that is no tap of one queue: "
                       "choose another name, for the daemon makes it",
                       n);
    return io_fail(err, err_size, rc, "kernel=%s: %s", n, strerror(-rc));
}

static void bring_up(const struct tap_dev *t)
{
    struct ifreq r = request(t);
    if (by_socket(SIOCGIFFLAGS, &r) < 0)
        return;
    r.ifr_flags |= IFF_UP;
    (void)by_socket(SIOCSIFFLAGS, &r);
}

int tap_dev_open(struct tap_dev *t, const char *name, char *err, size_t err_size)
{
    *t = (struct tap_dev){.fd = -1};
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->made = if_nametoindex(name) == 0;
    t->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (t->fd < 0)
        return io_fail(err, err_size, -errno, "kernel=%s: /dev/net/tun: %s: `modprobe tun`", name,
                       strerror(errno));
    struct ifreq r = request(t);
    r.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(t->fd, TUNSETIFF, &r) < 0) {
        int rc = refused(t, -errno, err, err_size);
        close(t->fd);
        t->fd = -1;
        return rc;
    }
    (void)ioctl(t->fd, TUNSETOFFLOAD, 0ul);
    t->ifindex = if_nametoindex(name);
    if (t->made)
        bring_up(t);
    return 0;
}

void tap_dev_close(struct tap_dev *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

int tap_dev_keep(struct tap_dev *t)
{
    if (!t->made)
        return 0;
    return ioctl(t->fd, TUNSETPERSIST, 1ul) < 0 ? -errno : 0;
}

int tap_dev_get_mac(const struct tap_dev *t, uint8_t mac[6])
{
    struct ifreq r = request(t);
    if (ioctl(t->fd, SIOCGIFHWADDR, &r) < 0)
        return -errno;
    memcpy(mac, r.ifr_hwaddr.sa_data, 6);
    return 0;
}

int tap_dev_set_mac(struct tap_dev *t, const uint8_t mac[6])
{
    uint8_t has[6];
    struct ifreq r = request(t);
    if (tap_dev_get_mac(t, has) == 0 && memcmp(has, mac, 6) == 0)
        return 0;
    r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(r.ifr_hwaddr.sa_data, mac, 6);
    return ioctl(t->fd, SIOCSIFHWADDR, &r) < 0 ? -errno : 0;
}

int tap_dev_set_mtu(struct tap_dev *t, uint32_t mtu)
{
    struct ifreq r = request(t);
    int rc = by_socket(SIOCGIFMTU, &r);
    if (rc < 0 || r.ifr_mtu == (int)mtu)
        return rc;
    r.ifr_mtu = (int)mtu;
    return by_socket(SIOCSIFMTU, &r);
}

int tap_dev_set_carrier(struct tap_dev *t, bool on)
{
    unsigned int carrier = on;
    return ioctl(t->fd, TUNSETCARRIER, &carrier) < 0 ? -errno : 0;
}
