/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every packet of every capture: it parses, and its fields re-build to the same octets.
 *
 * test_captures FOLDER FOLDER/MANIFEST.md has the number of packets of each file
 */
#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

/* 0 if the packet is equal to our builder's. */
static int check_packet(const char *file, unsigned number, const uint8_t *data, size_t len)
{
    static uint8_t out[WIRE_FRAME_MAX];
    struct wire_pkt p;
    char line[300];
    enum wire_verdict v = wire_parse(data, len, WIRE_P_UDP_CSUM, &p);
    size_t whole = v == WIRE_OK ? wire_frame_len(&p) : 0;
    struct wire_pkt q = p;
    if (v == WIRE_OK && whole <= len && wire_build(out, sizeof(out), &q) == p.payload_off) {
        memcpy(out + p.payload_off, data + p.payload_off, p.payload_len);
        wire_icrc_seal(out, whole, q.ip_off, q.bth_off);
        if (memcmp(out, data, whole) == 0)
            return 0;
    }
    wire_dump(line, sizeof(line), data, len, 0);
    fprintf(stderr, "%s packet %u: %s: %s\n", file, number,
            v == WIRE_OK ? "re-built differently" : "refused", line);
    return -1;
}

/* The column "packets" of the file's row: | file | contains | MTU | bytes | packets | ... */
static long expected_packets(const char *manifest, const char *file)
{
    char row[300];
    snprintf(row, sizeof(row), "\n| %s |", file);
    const char *at = strstr(manifest, row);
    for (int column = 0; at && column < 5; column++)
        at = strchr(at + 1, '|');
    return at ? strtol(at + 1, NULL, 10) : -1;
}

static int check_file(const char *folder, const char *file, const char *manifest, unsigned *total)
{
    char path[1024];
    char err[PCAP_ERRBUF_SIZE];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    pcap_t *pcap = pcap_open_offline(path, err);
    if (!pcap) {
        fprintf(stderr, "%s\n", err);
        return -1;
    }
    struct pcap_pkthdr *h;
    const u_char *data;
    unsigned n = 0;
    int bad = 0;
    while (pcap_next_ex(pcap, &h, &data) == 1)
        bad |= check_packet(file, ++n, data, h->caplen);
    pcap_close(pcap);
    long want = expected_packets(manifest, file);
    if (want != (long)n) {
        fprintf(stderr, "%s: %u packets, the manifest says %ld\n", file, n, want);
        bad = -1;
    }
    *total += n;
    return bad;
}

static char *read_manifest(const char *folder)
{
    static char text[1 << 17];
    char path[1024];
    snprintf(path, sizeof(path), "%s/MANIFEST.md", folder);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (!dir) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    const char *manifest = read_manifest(argv[1]);
    unsigned files = 0;
    unsigned packets = 0;
    int bad = 0;
    struct dirent *e;
    while ((e = readdir(dir))) {
        size_t n = strlen(e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".pcap") == 0) {
            bad |= check_file(argv[1], e->d_name, manifest, &packets);
            files++;
        }
    }
    closedir(dir);
    printf("%u packets of %u captures\n", packets, files);
    return bad || !packets;
}
