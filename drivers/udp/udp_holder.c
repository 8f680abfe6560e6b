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

static bool find_socket(const char *table, uint16_t port, unsigned long *inode, unsigned *uid)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        unsigned local;
        found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*s %lu", &local, uid,
                       inode) == 3 &&
                local == port;
    }
    if (f)
        fclose(f);
    return found;
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

static void name_process(const char *pid, char *text, size_t size)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fgets(name, sizeof(name), f))
            name[strcspn(name, "\n")] = '\0';
        fclose(f);
    }
    snprintf(text, size, "process %.16s (%s)", pid, name);
}

void udp_holder(uint16_t port, char *text, size_t size)
{
    unsigned long inode = 0;
    unsigned uid = 0;
    char link[64];
    if (!find_socket("/proc/self/net/udp", port, &inode, &uid) &&
        !find_socket("/proc/self/net/udp6", port, &inode, &uid)) {
        snprintf(text, size, "a socket that /proc does not show");
        return;
    }
    snprintf(link, sizeof(link), "socket:[%lu]", inode);
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
    if (uid == 0)
        snprintf(text, size,
                 "the kernel (its rdma_rxe has the port as long as it is loaded), or a process of "
                 "root that only root sees");
    else
        snprintf(text, size, "a process of the user with id %u that only that user sees", uid);
}
