/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device's settings as users write them: "name=urn0,port=SPEC,addr=10.0.0.1/24,...". Every error
 * names the wrong key and value, and a right value. One thread at a time.
 */
#ifndef NIC_CONFIG_DEVICE_H
#define NIC_CONFIG_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

#define CONFIG_HOLD_MS 5000u

/* A device with every default. */
void config_device_init(struct config_device *d);
/* Read "name=urn0,port=SPEC,addr=10.0.0.1/24,...": the port's own options may follow port=
 * directly. This function and the next two return 0, or -EINVAL with a sentence in err (CONFIG_ERR
 * octets). */
int config_device_parse(struct config_device *d, const char *text, char *err);
/* One setting of a device. */
int config_device_set(struct config_device *d, const char *key, const char *value, char *err);
/* Check all settings together: there is a port, this build has its driver, and its neighbours can
 * be resolved. Fills in the interface of neigh=kernel. */
int config_device_check(struct config_device *d, char *err);

/* ---- for other parsers of settings ---- */

/* A sentence into err[CONFIG_ERR]. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int config_fail(char *err, const char *fmt, ...);

/* Append a word to a message, after a blank. */
#define CONFIG_WORDS 256
void config_word(char words[CONFIG_WORDS], const char *word);

/* Parse a value. False: not one, above `max`, or (text) empty or too long. */
bool config_number(const char *s, uint64_t max, uint64_t *out);
bool config_bool(const char *s, bool *out);
bool config_text(char *out, size_t size, const char *s);

#endif
