/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Log lines, on stderr or in a file: "2026-01-31T23:59:59.999Z level subsystem: text"; or to
 * syslog, which has a time of its own. Each call site has a budget of lines a second, so that a
 * hostile peer or client can't fill a disk (SEC-02). Lines for which a pipe, a terminal or syslog
 * has no room are counted, not waited for. Any thread, unless a function says otherwise.
 */
#ifndef NIC_LOG_H
#define NIC_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_SYSLOG "/dev/log" /* where syslog and journald listen */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

extern const char *const log_level_names[LOG_LEVELS];

/* One per call site; made by the macros below. */
struct log_site {
    _Atomic uint64_t second;
    _Atomic uint32_t used;
};

/* Lines above `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "error", "warn", "info", "debug" -> 0 and *out, or -EINVAL. */
int log_level_parse(const char *s, enum log_level *out);

/* Append lines to the file from now on, and no longer write them to stderr. The path is kept, not
 * copied. 0, or -errno: it can't be opened for writing. Call it before a second thread starts. */
int log_to_file(const char *path);
/* Send lines to syslog at this socket from now on, and no longer to stderr. The path is kept. 0, or
 * -errno: nothing listens there now; each line tries anew. Call it before a second thread. */
int log_to_syslog(const char *path);
/* Write errors and warnings to stderr as well, or no longer: for a start from a terminal. */
void log_echo(bool on);
/* Open the file of log_to_file anew, after another program has moved it. A failure leaves the old
 * one open, and is logged. */
void log_reopen(void);

/* In a program: keep lines from now on, as a thread that logs may hold a lock. log_flush writes
 * them; lines for which there is no room are counted. Before there is a second thread that logs. */
void log_keep(void);
/* Is there something to flush? */
bool log_kept(void);
/* Write the kept lines, unless another thread is doing it. May wait for the file. Any thread that
 * holds no lock. */
void log_flush(void);

/* Called by the macros below after the check of the level; the text has no newline. Control
 * characters in it are shown as '?'. site NULL: no budget, the caller has its own. */
void log_write(struct log_site *site, enum log_level level, const char *subsystem, const char *fmt,
               ...) __attribute__((format(printf, 4, 5)));

#define log_at(level, subsystem, ...)                                                              \
    do {                                                                                           \
        static struct log_site log_site_;                                                          \
        if ((level) <= log_get_level())                                                            \
            log_write(&log_site_, level, subsystem, __VA_ARGS__);                                  \
    } while (0)
#define log_error(subsystem, ...) log_at(LOG_ERROR, subsystem, __VA_ARGS__)
#define log_warn(subsystem, ...)  log_at(LOG_WARN, subsystem, __VA_ARGS__)
#define log_info(subsystem, ...)  log_at(LOG_INFO, subsystem, __VA_ARGS__)
#define log_debug(subsystem, ...) log_at(LOG_DEBUG, subsystem, __VA_ARGS__)

#endif
