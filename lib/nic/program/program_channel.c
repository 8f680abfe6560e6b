/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel.h"
#include "ipc_engine.h"

static int fail(char *why, const char *what, int rc)
{
    snprintf(why, IPC_ENGINE_WHY, "its channel: %s: %s", what, strerror(-rc));
    return rc;
}

/* With the facts and the rings mapped: *m is the port's if this succeeds. */
static int open_end(struct program_channel *p, const struct ipc_engine_channel *ch,
                    struct channel_memory *m, char *why)
{
    uint32_t block;
    int rc = ch->mapped(ch->arg, &block, p->behind.key);
    if (rc < 0)
        return fail(why, "the daemon", rc);
    int event = fcntl(ch->event_fd, F_DUPFD_CLOEXEC, 0);
    if (event < 0)
        return fail(why, "its eventfd", -errno);
    rc = channel_open(CHANNEL_PROGRAM, m, event, 0, &p->behind.io);
    if (rc < 0) {
        close(event);
        return fail(why, "its port", rc);
    }
    p->behind.block = block;
    return 0;
}

int program_channel_open(struct program_channel *p, const struct ipc_engine_channel *ch,
                         struct config_device *conf, char *why)
{
    struct channel_memory m;
    void *page = mmap(NULL, IPC_FACTS_PAGE, PROT_READ, MAP_SHARED, ch->facts_fd, 0);
    if (page == MAP_FAILED)
        return fail(why, "the page of facts", -errno);
    p->page = p->behind.page = page;
    int rc = channel_memory_map(&m, ch->memory_fd, ch->slots, ch->frame_max);
    if (rc < 0)
        fail(why, "its memory", rc);
    else
        rc = open_end(p, ch, &m, why);
    if (rc == 0) {
        rc = behind_begin(&p->behind, conf);
        if (rc < 0) {
            fail(why, "the facts", rc);
        }
    }
    if (rc < 0) {
        channel_memory_free(&m);
        program_channel_close(p);
    }
    return rc;
}

void program_channel_close(struct program_channel *p)
{
    if (!p->page)
        return;
    if (!p->given && p->behind.io)
        p->behind.io->ops->close(p->behind.io);
    void *at;
    memcpy(&at, &p->page, sizeof(at));
    munmap(at, IPC_FACTS_PAGE);
    p->page = NULL;
}
