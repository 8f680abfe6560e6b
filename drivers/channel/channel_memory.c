/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of a channel: a memfd. Its size is sealed from the start. F_SEAL_FUTURE_WRITE has to
 * wait until the program has its mapping, and then forbids to punch out pages: a fault in a range
 * that is being punched out waits for the whole range.
 */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel_port.h"

#define SEALS_SIZE (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEALS_END  (F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

size_t channel_memory_size(uint32_t slots, uint32_t frame_max)
{
    if (slots < CHANNEL_SLOTS_MIN || slots > CHANNEL_SLOTS_MAX || (slots & (slots - 1)) ||
        frame_max < 64 || frame_max > IO_FRAME_MAX)
        return 0;
    size_t rings = (size_t)2 * slots * channel_stride(frame_max);
    return CHANNEL_PAGE + (rings + CHANNEL_PAGE - 1) / CHANNEL_PAGE * CHANNEL_PAGE;
}

/* Map a memfd. Its pages come when they are first used. */
static int memory_map(struct channel_memory *m, int fd)
{
    void *base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    m->base = base;
    return 0;
}

int channel_memory_make(struct channel_memory *m, uint32_t slots, uint32_t frame_max)
{
    *m = (struct channel_memory){.fd = -1, .slots = slots, .frame_max = frame_max};
    m->size = channel_memory_size(slots, frame_max);
    if (m->size == 0)
        return -EINVAL;
    m->fd = memfd_create("urnic-channel", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (m->fd < 0)
        return -errno;
    int rc = 0;
    if (ftruncate(m->fd, (off_t)m->size) < 0 || fcntl(m->fd, F_ADD_SEALS, SEALS_SIZE) < 0)
        rc = -errno;
    else
        rc = memory_map(m, m->fd);
    if (rc < 0)
        channel_memory_free(m);
    return rc;
}

int channel_memory_map(struct channel_memory *m, int fd, uint32_t slots, uint32_t frame_max)
{
    struct stat st;
    *m = (struct channel_memory){.fd = -1, .slots = slots, .frame_max = frame_max};
    m->size = channel_memory_size(slots, frame_max);
    if (m->size == 0)
        return -EINVAL;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size < m->size)
        return -EINVAL;
    return memory_map(m, fd);
}

int channel_memory_unsealed(const struct channel_memory *m)
{
    int seals = m->fd >= 0 ? fcntl(m->fd, F_GET_SEALS) : 0;
    return seals >= 0 && !(seals & F_SEAL_FUTURE_WRITE) ? m->fd : -1;
}

int channel_memory_seal(struct channel_memory *m)
{
    /* The program holds the file too, and may have added seals: check the seals that the file has.
     */
    if (channel_memory_unsealed(m) >= 0)
        (void)fcntl(m->fd, F_ADD_SEALS, SEALS_END);
    int seals = fcntl(m->fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_FUTURE_WRITE) == 0)
        return -EPERM;
    close(m->fd);
    m->fd = -1;
    return 0;
}

void channel_memory_wear(struct channel_memory *m, void **head)
{
    if (mmap(m->base, CHANNEL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        return;
    *head = m->base;
    m->base += CHANNEL_PAGE;
    m->size -= CHANNEL_PAGE;
}

void channel_memory_free(struct channel_memory *m)
{
    if (m->base)
        munmap(m->base, m->size);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct channel_memory){.fd = -1};
}
