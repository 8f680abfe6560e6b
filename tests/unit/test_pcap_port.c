/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port on capture files: cases that the driver conformance test doesn't cover.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "unit.h"

static char dir[] = "/tmp/urnic-pcap-XXXXXX";
static char file[64];

static void make_dir(void)
{
    strcpy(dir + sizeof(dir) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/in.pcap", dir);
}

static void remove_dir(void)
{
    unlink(file);
    rmdir(dir);
}

/* A classic capture with microsecond stamps: frames of the given lengths, 1 ms apart. */
static void write_pcap(int linktype, const uint32_t *len, const uint32_t *caplen, unsigned n)
{
    static uint8_t data[20000];
    pcap_t *p = pcap_open_dead(linktype, 65535);
    pcap_dumper_t *d = pcap_dump_open(p, file);
    ck_assert_ptr_nonnull(d);
    for (unsigned i = 0; i < n; i++) {
        struct pcap_pkthdr h = {.len = len[i], .caplen = caplen[i]};
        h.ts.tv_sec = 1000;
        h.ts.tv_usec = (int)i * 1000;
        memset(data, (int)i + 1, sizeof(data));
        pcap_dump((u_char *)d, &h, data);
    }
    pcap_dump_close(d);
    pcap_close(p);
}

static struct io_port *open_in(const char *more)
{
    char spec[128], err[256] = "";
    struct io_port *port = NULL;
    snprintf(spec, sizeof(spec), "pcap:%s,%s", file, more);
    ck_assert_msg(io_open(spec, NULL, &port, err, sizeof(err)) == 0, "%s", err);
    return port;
}

START_TEST(bad_records_are_counted)
{
    static const uint32_t len[] = {60, 100, 12000, 0, 70}, cap[] = {60, 80, 12000, 0, 70};
    struct io_frame f[8];
    struct io_stats st;
    struct io_link link;
    write_pcap(DLT_EN10MB, len, cap, 5);
    struct io_port *p = open_in("");
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 0), 2);
    ck_assert_uint_eq(f[0].len, 60);
    ck_assert_uint_eq(f[1].len, 70);
    ck_assert_uint_eq(f[1].data[69], 5);
    p->ops->stats(p, &st);
    ck_assert_uint_eq(st.rx_drop, 2);
    ck_assert_uint_eq(st.rx_oversize, 1);
    p->ops->link(p, &link);
    ck_assert(link.up); /* the end comes when all has been given back */
    p->ops->rx_release(p, 2);
    p->ops->link(p, &link);
    ck_assert(!link.up);
    ck_assert_uint_eq(link.changes, 1);
    p->ops->close(p);
}
END_TEST

/* Cut off in the middle of the second frame: that is a drop, and the end. */
START_TEST(damaged_end_is_counted)
{
    static const uint32_t len[] = {60, 70};
    struct io_frame f[8];
    struct io_stats st;
    struct io_link link;
    write_pcap(DLT_EN10MB, len, len, 2);
    ck_assert_int_eq(truncate(file, 24 + 16 + 60 + 16 + 69), 0);
    struct io_port *p = open_in("");
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 0), 1);
    p->ops->rx_release(p, 1);
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 0), 0);
    p->ops->stats(p, &st);
    ck_assert_uint_eq(st.rx_drop, 1);
    p->ops->link(p, &link);
    ck_assert(!link.up);
    p->ops->close(p);
}
END_TEST

START_TEST(pacing_follows_the_recording)
{
    static const uint32_t len[] = {60, 61, 62};
    struct io_frame f[8];
    write_pcap(DLT_EN10MB, len, len, 3);
    struct io_port *p = open_in(",paced=on");
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 500), 1);
    ck_assert_uint_eq(p->ops->deadline(p), 1000500);
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 1000499), 0);
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 1000500), 1);
    ck_assert_uint_eq(p->ops->deadline(p), 2000500);
    ck_assert_uint_eq(p->ops->rx_peek(p, f, 8, 9000000), 1);
    ck_assert_uint_eq(p->ops->deadline(p), UINT64_MAX);
    p->ops->rx_release(p, 3);
    p->ops->close(p);
}
END_TEST

START_TEST(only_ethernet_is_read)
{
    static const uint32_t len[] = {60};
    char spec[128], err[256];
    struct io_port *p;
    write_pcap(DLT_RAW, len, len, 1);
    snprintf(spec, sizeof(spec), "pcap:%s,", file);
    ck_assert_int_lt(io_open(spec, NULL, &p, err, sizeof(err)), 0);
    ck_assert_ptr_nonnull(strstr(err, "Ethernet"));
}
END_TEST

START_TEST(without_output_sending_is_a_drop)
{
    static const uint32_t len[] = {60};
    struct io_slot slot;
    struct io_stats st;
    write_pcap(DLT_EN10MB, len, len, 1);
    struct io_port *p = open_in("");
    ck_assert_uint_eq(p->ops->tx_reserve(p, &slot, 1, 0), 1);
    memset(slot.data, 0, 60);
    slot.len = 60;
    p->ops->tx_commit(p, &slot, 1, 0);
    p->ops->stats(p, &st);
    ck_assert_uint_eq(st.tx_drop, 1);
    ck_assert_uint_eq(st.tx_frames, 0);
    p->ops->close(p);
}
END_TEST

/* A capture isn't truncated by its reader. */
START_TEST(not_both_from_and_to_one_file)
{
    static const uint32_t len[] = {60};
    char spec[256], other[100], err[256];
    struct io_port *p;
    struct stat st;
    write_pcap(DLT_EN10MB, len, len, 1);
    snprintf(other, sizeof(other), "%s.link", file);
    ck_assert_int_eq(symlink(file, other), 0);
    snprintf(spec, sizeof(spec), "pcap:%s,%s", file, other);
    ck_assert_int_eq(io_open(spec, NULL, &p, err, sizeof(err)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "the same file"));
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_eq(st.st_size, 24 + 16 + 60);
    unlink(other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pcap_port");
    TCase *t = tcase_create("pcap_port");
    tcase_add_checked_fixture(t, make_dir, remove_dir);
    tcase_add_test(t, bad_records_are_counted);
    tcase_add_test(t, damaged_end_is_counted);
    tcase_add_test(t, pacing_follows_the_recording);
    tcase_add_test(t, only_ethernet_is_read);
    tcase_add_test(t, without_output_sending_is_a_drop);
    tcase_add_test(t, not_both_from_and_to_one_file);
    suite_add_tcase(s, t);
    return unit_run(s);
}
