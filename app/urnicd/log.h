/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Log lines on stderr: "level subsystem: text". Each call site has a budget of lines a second, so
 * that a hostile peer or client can't fill a disk (SEC-02). Lines for which a pipe or a terminal
 * has no room are counted, not waited for. Any thread.
 */
#ifndef URNICD_LOG_H
#define URNICD_LOG_H

#include <stdatomic.h>
#include <stdint.h>

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

/* What the macros below expand to, once the level has been looked at; the text without newline.
 * Control characters in it are shown as '?'. */
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
