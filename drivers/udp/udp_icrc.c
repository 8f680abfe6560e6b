/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polynomials over GF(2), bit-reflected as in the CRC's register: bit 31 is the coefficient of x^0.
 * Octets d0, d1 in the two lowest octets of a register stand for D * x^16, and their change moves
 * the CRC by D * x^32 * x^(8 * rest) mod P.
 */
#include "udp_icrc.h"

#include <pthread.h>

#include "io.h"

#define POLY 0xEDB88320u
#define X0   0x80000000u

static uint32_t power[IO_FRAME_MAX];   /* x^(16 + 8n) mod P */
static uint32_t inverse[IO_FRAME_MAX]; /* x^-(16 + 8n) mod P */

static uint32_t times_x(uint32_t a)
{
    return (a >> 1) ^ (POLY & (0u - (a & 1)));
}

/* P has x^0 and x^32: a reduced value has the bit of x^0 that P added. */
static uint32_t over_x(uint32_t a)
{
    return a & X0 ? (a ^ POLY) << 1 | 1 : a << 1;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t p = 0;
    for (unsigned i = 0; i < 32; i++) {
        p ^= b & (0u - (a >> 31));
        a <<= 1;
        b = times_x(b);
    }
    return p;
}

static void fill(void)
{
    uint32_t up = X0, down = X0;
    for (unsigned i = 0; i < 16; i++) {
        up = times_x(up);
        down = over_x(down);
    }
    for (unsigned n = 0; n < IO_FRAME_MAX; n++) {
        power[n] = up;
        inverse[n] = down;
        for (unsigned i = 0; i < 8; i++) {
            up = times_x(up);
            down = over_x(down);
        }
    }
}

void udp_icrc_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}

uint32_t udp_icrc_delta(uint8_t d0, uint8_t d1, uint32_t rest)
{
    if (rest >= IO_FRAME_MAX)
        return 0;
    return times((uint32_t)d1 << 8 | d0, power[rest]);
}

bool udp_icrc_solve(uint32_t diff, uint32_t rest, uint8_t *d0, uint8_t *d1)
{
    if (rest >= IO_FRAME_MAX)
        return false;
    uint32_t d = times(diff, inverse[rest]);
    *d0 = (uint8_t)d;
    *d1 = (uint8_t)(d >> 8);
    return d <= 0xFFFF;
}

/* The change of four octets is D * x^0 in the register. The octets after them and the CRC's own
 * x^32 are its distance from the iCRC. */
uint32_t udp_icrc_solve_four(uint32_t diff, uint32_t rest)
{
    return rest + 2 < IO_FRAME_MAX ? times(diff, inverse[rest + 2]) : 0;
}
