/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last check of `urnic doctor` for a dpdk: port: urnicd opens and closes it, with the rights
 * that its file gives it.
 */
#include "doctor.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "dpdk_hint.h"

#define TRY_S 60 /* urnicd gives a driver 30 s */

/* The daemon's program: beside this one, or of the same build; else the one in $PATH. */
static void find_urnicd(char path[PATH_MAX])
{
    static const char *const beside[] = {"../urnicd/urnicd", "urnicd"};
    char folder[PATH_MAX - 20];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    folder[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    for (size_t i = 0; slash && i < sizeof(beside) / sizeof(beside[0]); i++) {
        *slash = '\0';
        snprintf(path, PATH_MAX, "%s/%s", folder, beside[i]);
        if (access(path, X_OK) == 0)
            return;
    }
    snprintf(path, PATH_MAX, "urnicd");
}

/* The reason not to try the port, when that would affect other programs or last; or NULL. */
static const char *not_tried(const struct doctor_subject *s)
{
    char path[160], text[64] = "";
    if (s->dpdk.kind == DPDK_AF_XDP)
        return "it would take the interface's frames from the kernel";
    if (!strncmp(s->dpdk.name, "net_pcap", strlen("net_pcap")))
        return "it would overwrite a file";
    if (s->dpdk.kind != DPDK_AF_PACKET || !if_nametoindex(s->dpdk.iface))
        return NULL;
    snprintf(path, sizeof(path), "/sys/class/net/%s/operstate", s->dpdk.iface);
    if (doctor_read(path, text, sizeof(text)) && !strcmp(text, "down"))
        return "it would bring the interface up";
    snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", s->dpdk.iface);
    if (s->dpdk.mtu && doctor_read(path, text, sizeof(text)) &&
        strtoul(text, NULL, 10) < s->dpdk.mtu)
        return "it would raise the interface's MTU";
    return NULL;
}

/* urnicd --check-ports --port SPEC with its output in a pipe. Returns its process id, or -errno. */
static pid_t begin(const char *urnicd, const char *spec, int *out)
{
    int ends[2];
    if (pipe(ends) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        const char *args[] = {"urnicd", "--check-ports", "--foreground", "--port", spec, NULL};
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(urnicd, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    int rc = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (rc < 0)
        close(ends[0]);
    *out = ends[0];
    return rc < 0 ? rc : pid;
}

/* Read urnicd's output, only the last part if it is long, until it ends or its time is over. */
static void listen_to(int fd, char *text, size_t size)
{
    size_t n = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, TRY_S * 1000) > 0) {
        if (n > size / 2) {
            memmove(text, text + n / 2, n - n / 2);
            n -= n / 2;
        }
        ssize_t got = read(fd, text + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    text[n] = '\0';
}

/* The last line that begins with "... error daemon: ", without that; or the last line. */
static const char *reason(char *text)
{
    static const char mark[] = "error daemon: ";
    const char *found = NULL, *last = "it says nothing";
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *at = strstr(line, mark);
        last = line;
        if (at)
            found = at + sizeof(mark) - 1;
    }
    return found ? found : last;
}

/* The first command in the sentence, between backquotes. */
static void find_mend(struct doctor_finding *f)
{
    const char *from = strchr(f->text, '`');
    const char *to = from ? strchr(from + 1, '`') : NULL;
    if (to)
        snprintf(f->mend, sizeof(f->mend), "%.*s", (int)(to - from - 1), from + 1);
}

uint64_t doctor_rights(void)
{
    char urnicd[PATH_MAX];
    struct vfs_cap_data caps;
    uint64_t own = dpdk_hint_effective();
    find_urnicd(urnicd);
    if (getxattr(urnicd, "security.capability", &caps, sizeof(caps)) < (ssize_t)XATTR_CAPS_SZ_2)
        return own;
    if (!(le32toh(caps.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE))
        return own;
    return own | le32toh(caps.data[0].permitted) | (uint64_t)le32toh(caps.data[1].permitted) << 32;
}

void doctor_refused(struct doctor_finding *f, const char *text)
{
    f->level = DOCTOR_MISSING;
    snprintf(f->text, sizeof(f->text), "%s", text);
    find_mend(f);
}

void doctor_try(const struct doctor_subject *s, struct doctor_finding *f)
{
    char urnicd[PATH_MAX], text[8192];
    const char *why = s->spec ? not_tried(s) : "no port was named";
    int out = -1, status = 0;
    if (why) {
        f->level = DOCTOR_NOTE;
        snprintf(f->text, sizeof(f->text), "the port was not opened: %s", why);
        return;
    }
    find_urnicd(urnicd);
    pid_t pid = begin(urnicd, s->spec, &out);
    if (pid < 0) {
        f->level = DOCTOR_NOTE;
        snprintf(f->text, sizeof(f->text), "the port was not opened: %s", strerror(-(int)pid));
        return;
    }
    listen_to(out, text, sizeof(text));
    close(out);
    if (waitpid(pid, &status, WNOHANG) == 0 && usleep(200000) == 0 &&
        waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        doctor_say(f, DOCTOR_NOTE,
                   "the port was not opened: urnicd is not beside urnic, nor in PATH", "");
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        doctor_say(f, DOCTOR_GOOD, "urnicd can open the port", "");
    else
        doctor_refused(f, reason(text));
    f->decides = true;
}
