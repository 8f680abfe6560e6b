/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any file as the daemon's configuration, and any text as its --device: it is refused with a
 * sentence, or is a configuration that a daemon can use.
 *
 * The input is a file if it begins with '{', else the text of a device.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "fuzz.h"

static char err[CONFIG_ERR];

static bool ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

static void check_device(const struct config_device *d)
{
    FUZZ_CHECK(ends(d->name, sizeof(d->name)) && ends(d->port, sizeof(d->port)));
    FUZZ_CHECK(ends(d->kernel_if, sizeof(d->kernel_if)));
    FUZZ_CHECK(d->naddr <= CONFIG_ADDRS && d->ngw <= 2 && d->vlan < 4095);
    FUZZ_CHECK(d->cc.type);
    for (unsigned i = 0; i < d->naddr; i++)
        FUZZ_CHECK(d->addr[i].prefix <= (wire_addr_is_v4(&d->addr[i].ip) ? 32 : 128));
}

static int load(struct config *c, const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("config", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = config_load(c, path, err);
    close(fd);
    return rc;
}

static int parse(struct config *c, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    config_device_init(&c->dev[0]);
    int rc = config_device_parse(&c->dev[0], text, err);
    c->ndev = 1;
    free(text);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config c;
    err[0] = '\0';
    config_init(&c);
    int rc = size && data[0] == '{' ? load(&c, data, size) : parse(&c, data, size);
    FUZZ_CHECK(c.ndev <= CONFIG_DEVICES && c.ncpu <= CONFIG_WORKERS);
    for (unsigned i = 0; i < c.ndev; i++)
        check_device(&c.dev[i]);
    if (rc == 0)
        rc = config_check(&c, err);
    FUZZ_CHECK(rc <= 0 && (rc == 0 || err[0]) && ends(err, sizeof(err)));
    if (rc < 0)
        return 0;
    FUZZ_CHECK(c.ndev && c.workers <= CONFIG_WORKERS);
    FUZZ_CHECK(ends(c.socket, sizeof(c.socket)));
    for (unsigned i = 0; i < c.ndev; i++) {
        FUZZ_CHECK(c.dev[i].name[0] && c.dev[i].port[0]);
        for (unsigned k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(c.dev[i].name, c.dev[k].name) != 0);
    }
    if (config_absolute(&c))
        FUZZ_CHECK(c.socket[0] == '/');
    return 0;
}
