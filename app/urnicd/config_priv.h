/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the readers of the daemon's keys and of a device's keys share. One thread.
 */
#ifndef URNICD_CONFIG_PRIV_H
#define URNICD_CONFIG_PRIV_H

#include "config.h"

#define NEIGH_BY_PORT "?" /* kernel_if, until config_check: the port names the interface */

/* A sentence into err[CONFIG_ERR]. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int config_fail(char *err, const char *fmt, ...);

/* The words of a message so far, and one more behind a blank. */
#define CONFIG_WORDS 256
void config_word(char words[CONFIG_WORDS], const char *word);

/* Values as users write them. False: not one, or above `max`, or (text) empty or too long. */
bool config_number(const char *s, uint64_t max, uint64_t *out);
bool config_bool(const char *s, bool *out);
bool config_text(char *out, size_t size, const char *s);

#endif
