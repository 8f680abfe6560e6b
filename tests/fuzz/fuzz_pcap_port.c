/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any file as the input of a pcap port: it is refused with a sentence, or its frames are lent in
 * bounds, one after the other, until the link goes down.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "io.h"

#define FRAME_MAX 2000u

volatile uint32_t fuzz_pcap_sink; /* so that nothing read is optimised away */

static uint64_t receive(struct io_port *io, unsigned max, uint64_t now)
{
    struct io_frame f[IO_BURST_MAX];
    unsigned n = io->ops->rx_peek(io, f, max, now);
    FUZZ_CHECK(n <= max);
    for (unsigned i = 0; i < n; i++) {
        FUZZ_CHECK(f[i].len >= 1 && f[i].len <= FRAME_MAX);
        for (uint32_t k = 0; k < f[i].len; k++)
            fuzz_pcap_sink += f[i].data[k];
    }
    io->ops->rx_release(io, n);
    return n;
}

/* The first octet gives the number of frames taken at a time, and whether at their pace. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct io_open_params params = {.frame_max = FRAME_MAX};
    char spec[64], err[256] = "";
    struct io_link link = {.up = true};
    struct io_port *io;
    struct io_stats stats;
    uint64_t got = 0, now = 1;
    int fd = memfd_create("pcap", MFD_CLOEXEC);
    if (size < 1)
        return close(fd);
    bool paced = data[0] & 128;
    unsigned max = 1 + data[0] % IO_BURST_MAX;
    FUZZ_CHECK(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
    snprintf(spec, sizeof(spec), "pcap:/proc/self/fd/%d%s", fd, paced ? ",,paced=on" : "");
    int rc = io_open(spec, &params, &io, err, sizeof(err));
    close(fd);
    if (rc < 0) {
        FUZZ_CHECK(err[0]);
        return 0;
    }
    while (link.up) {
        got += receive(io, max, now);
        uint64_t next = io->ops->deadline(io);
        FUZZ_CHECK(next != UINT64_MAX || receive(io, max, now) == 0);
        now = next > now && next != UINT64_MAX ? next : now;
        io->ops->link(io, &link);
    }
    io->ops->stats(io, &stats);
    FUZZ_CHECK(stats.rx_frames == got);
    io->ops->close(io);
    return 0;
}
