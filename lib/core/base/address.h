/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine's own addresses and P_Keys.
 */
#ifndef URNIC_ADDRESS_H
#define URNIC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct engine;

/* The index of the table's entry that the P_Key matches (KEY-04); false: none. */
bool engine_pkey_find(const struct engine *e, uint16_t pkey, unsigned *index);
/* Is this one of the engine's addresses? */
bool engine_addr_local(struct engine *e, const struct wire_addr *a);

#endif
