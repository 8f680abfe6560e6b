/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See udp_holder.h. /proc/self/net/udp lists a socket's inode, and the descriptor folder of each
 * process that has it open has a link to it.
 */
#include "udp_holder.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct holder {
    unsigned long inode;
    unsigned uid;
};

/* The address as the table shows it: words of 32 bits in the machine's order. */
static void table_text(const uint8_t *addr, unsigned octets, char *text)
{
    for (unsigned i = 0; i < octets; i += 4) {
        uint32_t word;
        memcpy(&word, addr + i, sizeof(word));
        snprintf(text + 2 * (size_t)i, 9, "%08X", word);
    }
}

/* Find a socket with this address. */
static bool find_socket(const char *table, const char *addr, uint16_t port, struct holder *h)
{
    char line[512], at[33];
    bool found = false;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        unsigned local;
        found = sscanf(line, " %*d: %32[0-9A-F]:%x %*s %*s %*s %*s %*s %u %*s %lu", at, &local,
                       &h->uid, &h->inode) == 4 &&
                local == port && strcmp(at, addr) == 0;
    }
    if (f)
        fclose(f);
    return found;
}

/* A socket for all addresses of IPv6 takes the port of IPv4's as well, as a rule. */
static bool find_holder(const struct io_addr *addr, uint16_t port, struct holder *h)
{
    static const char *const v4 = "/proc/self/net/udp", *const v6 = "/proc/self/net/udp6";
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    char at[33], any[33];
    bool is_v4 = memcmp(addr->b, mapped, sizeof(mapped)) == 0;
    memset(any, '0', sizeof(any));
    any[32] = '\0';
    table_text(addr->b, 16, at);
    if (is_v4 && (find_socket(v4, at + 24, port, h) || find_socket(v4, any + 24, port, h)))
        return true;
    return find_socket(v6, at, port, h) || find_socket(v6, any, port, h);
}

static bool has_open(const char *pid, const char *link)
{
    char path[64], target[64];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
    DIR *dir = opendir(path);
    const struct dirent *de;
    while (dir && !found && (de = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), de->d_name, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        found = strcmp(target, link) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool read_line(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(text, (int)size, f);
    if (got)
        text[strcspn(text, "\n")] = '\0';
    if (f)
        fclose(f);
    return got;
}

static void name_process(const char *pid, char *text, size_t size)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
    read_line(path, name, sizeof(name));
    snprintf(text, size, "process %.16s (%s)", pid, name);
}

/* A device of rdma_rxe, and its interface. Of all RDMA devices only these have a file `parent`. */
static bool find_rxe(char *device, char *interface, size_t size)
{
    char path[320];
    bool found = false;
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *de;
    while (dir && !found && (de = readdir(dir))) {
        snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", de->d_name);
        found = de->d_name[0] != '.' && read_line(path, interface, size);
        if (found)
            snprintf(device, size, "%.*s", (int)size - 1, de->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* No process is seen to have a socket of user 0: the kernel's own sockets are like that. */
static void guess_kernel(char *text, size_t size)
{
    char device[16], interface[16];
    if (find_rxe(device, interface, sizeof(device)))
        snprintf(text, size,
                 "the kernel's rdma_rxe, it seems: device %s of %s is there, and /proc shows no "
                 "process with that port ('modprobe -r rdma_rxe' frees it)",
                 device, interface);
    else if (access("/sys/module/rdma_rxe", F_OK) == 0)
        snprintf(text, size,
                 "the kernel's rdma_rxe, it seems: that module is loaded, and /proc shows no "
                 "process with that port ('modprobe -r rdma_rxe' frees it)");
    else
        snprintf(text, size,
                 "a socket of the kernel (of a tunnel, or of rdma_rxe), or of a process of root "
                 "that only root sees");
}

void udp_holder(const struct io_addr *addr, uint16_t port, char *text, size_t size)
{
    struct holder h;
    char link[64];
    if (!find_holder(addr, port, &h)) {
        snprintf(text, size, "a socket that /proc does not show");
        return;
    }
    snprintf(link, sizeof(link), "socket:[%lu]", h.inode);
    DIR *proc = opendir("/proc");
    const struct dirent *de;
    bool found = false;
    while (proc && !found && (de = readdir(proc))) {
        found = de->d_name[0] >= '1' && de->d_name[0] <= '9' && has_open(de->d_name, link);
        if (found)
            name_process(de->d_name, text, size);
    }
    if (proc)
        closedir(proc);
    if (found)
        return;
    if (h.uid == 0)
        guess_kernel(text, size);
    else
        snprintf(text, size, "a process of the user with id %u that only that user sees", h.uid);
}
