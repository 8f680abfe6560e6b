/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The capture writer, read back by tshark as an independent reader.
 */
#include "pcapng_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define EPOCH 1700000000000000000ull

static char path[] = "/tmp/urnic-pcapng-XXXXXX";

static void temp_file(void)
{
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_file(void)
{
    unlink(path);
}

/* tshark's output for these fields, one line a packet, fields separated by '|'. */
static const char *tshark(const char *fields)
{
    static char text[8192];
    char cmd[512];
    snprintf(cmd, sizeof(cmd), "tshark -n -r %s -T fields -E separator='|' %s 2>/dev/null", path,
             fields);
    FILE *f = popen(cmd, "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    ck_assert_int_eq(pclose(f), 0);
    return text;
}

static void frame(uint8_t *f, uint32_t len, uint8_t n)
{
    memset(f, n, len);
    memset(f, 0xFF, 6);
    f[12] = 0x88;
    f[13] = 0xB5;
}

START_TEST(tshark_reads_it)
{
    struct pcapng_options opt = {.application = "unit test", .epoch = EPOCH};
    struct pcapng *w;
    uint8_t f[9234];
    ck_assert_int_eq(pcapng_create(path, PCAPNG_DROPS, &opt, &w), 0);
    ck_assert_int_eq(pcapng_interface(w, "urn0", "first port", 10000000000u), 0);
    ck_assert_int_eq(pcapng_interface(w, "urn1", NULL, 0), 1);
    frame(f, sizeof(f), 1);
    pcapng_packet(w, 0, 1, CAPTURE_IN, f, 60, NULL);
    pcapng_packet(w, 1, 123456789, CAPTURE_OUT, f, 61, NULL);
    pcapng_packet(w, 0, 2000000003, CAPTURE_IN, f, 9234, "rx_icrc_err");
    pcapng_packet(w, 1, 2000000004, CAPTURE_NO_DIR, f, 63, "");
    pcapng_packet(w, 7, 0, CAPTURE_IN, f, 60, NULL); /* no such interface */
    ck_assert_int_eq(pcapng_close(w), 0);
    ck_assert_str_eq(tshark("-e frame.time_epoch -e frame.len -e frame.interface_name "
                            "-e frame.packet_flags_direction -e frame.comment"),
                     "1700000000.000000001|60|urn0|0x00000001|\n"
                     "1700000000.123456789|61|urn1|0x00000002|\n"
                     "1700000002.000000003|9234|urn0|0x00000001|rx_icrc_err\n"
                     "1700000002.000000004|63|urn1||\n");
}
END_TEST

/* More than one buffer, every length, octets unchanged. */
START_TEST(tshark_reads_many)
{
    struct pcapng_options opt = {.buffer = 1};
    struct pcapng_stats st;
    struct pcapng *w;
    uint8_t f[2000];
    uint64_t sum = 0;
    ck_assert_int_eq(pcapng_create(path, PCAPNG_DROPS, &opt, &w), 0);
    ck_assert_int_eq(pcapng_interface(w, "p", NULL, 0), 0);
    for (uint32_t len = 60; len < 1500; len++) {
        frame(f, len, (uint8_t)len);
        pcapng_packet(w, 0, len, CAPTURE_OUT, f, len, len % 3 ? NULL : "a comment of odd length!!");
        sum += len;
    }
    pcapng_stats(w, &st);
    ck_assert_uint_eq(st.packets, 1440);
    ck_assert_uint_eq(st.bytes, sum);
    ck_assert_uint_gt(st.file_bytes, 100000);
    ck_assert_int_eq(pcapng_close(w), 0);

    char cmd[256], line[64];
    snprintf(cmd, sizeof(cmd),
             "tshark -n -r %s -T fields -e frame.len -e frame.number "
             "-Y 'eth.type == 0x88b5' 2>/dev/null",
             path);
    FILE *p = popen(cmd, "r");
    for (uint32_t len = 60; len < 1500; len++) {
        unsigned a, b;
        ck_assert_ptr_nonnull(fgets(line, sizeof(line), p));
        ck_assert_int_eq(sscanf(line, "%u %u", &a, &b), 2);
        ck_assert_uint_eq(a, len);
        ck_assert_uint_eq(b, len - 59);
    }
    ck_assert_int_eq(pclose(p), 0);
}
END_TEST

START_TEST(snaplen_cuts_and_says_so)
{
    struct pcapng_options opt = {.snaplen = 101};
    struct pcapng *w;
    uint8_t f[1000];
    ck_assert_int_eq(pcapng_create(path, PCAPNG_DROPS, &opt, &w), 0);
    pcapng_interface(w, "p", NULL, 0);
    frame(f, sizeof(f), 3);
    pcapng_packet(w, 0, 5, CAPTURE_IN, f, 1000, NULL);
    pcapng_packet(w, 0, 6, CAPTURE_IN, f, 100, NULL);
    ck_assert_int_eq(pcapng_close(w), 0);
    ck_assert_str_eq(tshark("-e frame.len -e frame.cap_len"), "1000|101\n100|100\n");
}
END_TEST

START_TEST(limit_is_kept_and_counted)
{
    struct pcapng_options opt = {.limit = 100000};
    struct pcapng_stats st;
    struct pcapng *w;
    struct stat file;
    uint8_t f[1000];
    ck_assert_int_eq(pcapng_create(path, PCAPNG_DROPS, &opt, &w), 0);
    pcapng_interface(w, "p", NULL, 0);
    frame(f, sizeof(f), 3);
    for (int i = 0; i < 200; i++)
        pcapng_packet(w, 0, 5, CAPTURE_IN, f, 1000, NULL);
    pcapng_stats(w, &st);
    ck_assert_uint_eq(st.packets + st.drops, 200);
    ck_assert_uint_gt(st.packets, 90);
    ck_assert_uint_lt(st.packets, 100);
    ck_assert_int_eq(pcapng_close(w), 0);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_int_le(file.st_size, 100000 + 128);
    ck_assert_int_eq(file.st_mode & 0777, 0600);
    const char *lines = tshark("-e frame.len");
    ck_assert_uint_eq(strlen(lines) / 5, st.packets);
}
END_TEST

/* A reader that doesn't read: packets are dropped, no writer blocks, and the octets it reads later
 * are whole. */
START_TEST(full_pipe_does_not_block)
{
    int fd[2];
    struct pcapng *w;
    struct pcapng_stats st;
    uint8_t f[1000], buf[65536];
    ck_assert_int_eq(pipe(fd), 0);
    ck_assert_int_eq(pcapng_from_fd(fd[1], PCAPNG_DROPS, NULL, &w), 0);
    pcapng_interface(w, "p", NULL, 0);
    frame(f, sizeof(f), 9);
    for (int i = 0; i < 2000; i++)
        pcapng_packet(w, 0, 5, CAPTURE_IN, f, 1000, NULL);
    pcapng_stats(w, &st);
    ck_assert_uint_gt(st.drops, 500);
    ck_assert_uint_eq(st.errors, 0);
    ck_assert_int_eq(pcapng_flush(w), -EAGAIN);

    /* Now the reader wakes up: the file is good, and holds the accepted packets. */
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    int rc;
    do {
        rc = pcapng_flush(w);
        ssize_t n = read(fd[0], buf, sizeof(buf));
        if (n > 0)
            fwrite(buf, 1, (size_t)n, out);
    } while (rc == -EAGAIN);
    fclose(out);
    char cmd[128], line[32] = "";
    snprintf(cmd, sizeof(cmd), "tshark -n -r %s 2>/dev/null | wc -l", path);
    FILE *p = popen(cmd, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), p));
    pclose(p);
    ck_assert_uint_eq(strtoul(line, NULL, 10), st.packets);
    ck_assert_int_eq(pcapng_close(w), 0);
    close(fd[0]);
}
END_TEST

/* A caller that may wait does so for a slow reader, even if another program made the pipe
 * non-blocking. */
START_TEST(slow_reader_gets_everything)
{
    int fd[2], status;
    struct pcapng *w;
    struct pcapng_stats st;
    uint8_t f[1000];
    ck_assert_int_eq(pipe(fd), 0);
    pid_t reader = fork();
    if (reader == 0) {
        static uint8_t buf[4096];
        size_t got = 0;
        close(fd[1]);
        usleep(100000);
        for (ssize_t n; (n = read(fd[0], buf, sizeof(buf))) > 0;)
            got += (size_t)n;
        _exit(got < 2000u * 1000u);
    }
    close(fd[0]);
    if (_i)
        fcntl(fd[1], F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(pcapng_from_fd(fd[1], PCAPNG_WAITS, NULL, &w), 0);
    pcapng_interface(w, "p", NULL, 0);
    frame(f, sizeof(f), 9);
    for (int i = 0; i < 2000; i++)
        ck_assert(pcapng_packet(w, 0, 5, CAPTURE_IN, f, 1000, NULL));
    pcapng_stats(w, &st);
    ck_assert_uint_eq(st.drops, 0);
    ck_assert_uint_eq(st.errors, 0);
    ck_assert_int_eq(pcapng_close(w), 0);
    ck_assert_int_eq(waitpid(reader, &status, 0), reader);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(errors_are_counted)
{
    struct pcapng *w;
    struct pcapng_stats st;
    uint8_t f[1000] = {0};
    ck_assert_int_eq(pcapng_create("/nonexistent/x", PCAPNG_DROPS, NULL, &w), -ENOENT);
    int full = open("/dev/full", O_WRONLY);
    ck_assert_int_eq(pcapng_from_fd(full, PCAPNG_DROPS, NULL, &w), 0);
    pcapng_interface(w, "p", NULL, 0);
    for (int i = 0; i < 1000; i++)
        pcapng_packet(w, 0, 5, CAPTURE_IN, f, 1000, NULL);
    pcapng_stats(w, &st);
    ck_assert_uint_eq(st.errors, 1);
    ck_assert_int_eq(st.last_error, ENOSPC);
    ck_assert_uint_gt(st.drops, 0);
    ck_assert_int_eq(pcapng_close(w), -ENOSPC);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pcapng");
    TCase *t = tcase_create("pcapng");
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, temp_file, remove_file);
    tcase_add_test(t, tshark_reads_it);
    tcase_add_test(t, tshark_reads_many);
    tcase_add_test(t, snaplen_cuts_and_says_so);
    tcase_add_test(t, limit_is_kept_and_counted);
    tcase_add_test(t, full_pipe_does_not_block);
    tcase_add_loop_test(t, slow_reader_gets_everything, 0, 2);
    tcase_add_test(t, errors_are_counted);
    suite_add_tcase(s, t);
    return unit_run(s);
}
