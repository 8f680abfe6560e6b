/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The opcode table: everything that depends on a BTH opcode.
 *
 * Offsets and lengths of the extension headers are computed from the set of headers by the
 * preprocessor, in the one order in which headers may follow the BTH (HDR-08), so that an entry
 * can't contradict itself. Opcodes without an entry have no name: reserved (OPC-01).
 */
#include "wire.h"

/* Octets that header `bit` takes in the set `h`. */
#define LEN(h, bit, octets) (((h) & (bit)) ? (octets) : 0u)

/* Where each header starts, counted from the BTH, whether it is there or not. */
#define AT_XRCETH(h)    WIRE_BTH_LEN
#define AT_DETH(h)      (AT_XRCETH(h) + LEN(h, WIRE_H_XRCETH, 4u))
#define AT_FETH(h)      (AT_DETH(h) + LEN(h, WIRE_H_DETH, 8u))
#define AT_RETH(h)      (AT_FETH(h) + LEN(h, WIRE_H_FETH, 4u))
#define AT_AETH(h)      (AT_RETH(h) + LEN(h, WIRE_H_RETH, 16u))
#define AT_ATOMICETH(h) (AT_AETH(h) + LEN(h, WIRE_H_AETH, 4u))
#define AT_ATOMICACK(h) (AT_ATOMICETH(h) + LEN(h, WIRE_H_ATOMICETH, 28u))
#define AT_IMMDT(h)     (AT_ATOMICACK(h) + LEN(h, WIRE_H_ATOMICACK, 8u))
#define AT_IETH(h)      (AT_IMMDT(h) + LEN(h, WIRE_H_IMMDT, 4u))
#define AT_END(h)       (AT_IETH(h) + LEN(h, WIRE_H_IETH, 4u))

/* The offset of a header, 0 when the set lacks it. */
#define OFF(h, NAME) (((h)&WIRE_H_##NAME) ? AT_##NAME(h) : 0u)

#define ENTRY(opcode, text, f, h, extra)                                                           \
    [opcode] = {                                                                                   \
        .name = (text),                                                                            \
        .flags = (uint16_t)(f),                                                                    \
        .headers = (uint16_t)(h),                                                                  \
        .service = (opcode) >> 5,                                                                  \
        .ext_len = (uint8_t)(AT_END(h) - WIRE_BTH_LEN + (extra)),                                  \
        .reth = OFF(h, RETH),                                                                      \
        .aeth = OFF(h, AETH),                                                                      \
        .atomiceth = OFF(h, ATOMICETH),                                                            \
        .atomicack = OFF(h, ATOMICACK),                                                            \
        .immdt = OFF(h, IMMDT),                                                                    \
        .ieth = OFF(h, IETH),                                                                      \
        .deth = OFF(h, DETH),                                                                      \
        .xrceth = OFF(h, XRCETH),                                                                  \
        .feth = OFF(h, FETH),                                                                      \
    }

#define OP(svc, op, f, h) ENTRY(WIRE_OPCODE(WIRE_##svc, WIRE_##op), #svc "_" #op, f, h, 0u)

/* Common flags of requests with payload and of READ responses. */
#define SEND  (WIRE_F_REQUEST | WIRE_F_SEND | WIRE_F_PAYLOAD)
#define WRITE (WIRE_F_REQUEST | WIRE_F_WRITE | WIRE_F_PAYLOAD)
#define RRESP (WIRE_F_RESPONSE | WIRE_F_READ | WIRE_F_PAYLOAD)
#define RWQE  WIRE_F_RECV_WQE
#define IMM   WIRE_F_IMM
#define INV   WIRE_F_INV

/* SEND and WRITE of RC, UC and XRC; x = the header that requests of this service carry first. */
#define SEND_AND_WRITE(svc, x)                                                                     \
    OP(svc, SEND_FIRST, SEND | WIRE_F_FIRST | RWQE, x),                                            \
        OP(svc, SEND_MIDDLE, SEND | WIRE_F_MIDDLE, x), OP(svc, SEND_LAST, SEND | WIRE_F_LAST, x),  \
        OP(svc, SEND_LAST_IMM, SEND | WIRE_F_LAST | IMM, (x) | WIRE_H_IMMDT),                      \
        OP(svc, SEND_ONLY, SEND | WIRE_F_ONLY | RWQE, x),                                          \
        OP(svc, SEND_ONLY_IMM, SEND | WIRE_F_ONLY | RWQE | IMM, (x) | WIRE_H_IMMDT),               \
        OP(svc, WRITE_FIRST, WRITE | WIRE_F_FIRST, (x) | WIRE_H_RETH),                             \
        OP(svc, WRITE_MIDDLE, WRITE | WIRE_F_MIDDLE, x),                                           \
        OP(svc, WRITE_LAST, WRITE | WIRE_F_LAST, x),                                               \
        OP(svc, WRITE_LAST_IMM, WRITE | WIRE_F_LAST | RWQE | IMM, (x) | WIRE_H_IMMDT),             \
        OP(svc, WRITE_ONLY, WRITE | WIRE_F_ONLY, (x) | WIRE_H_RETH),                               \
        OP(svc, WRITE_ONLY_IMM, WRITE | WIRE_F_ONLY | RWQE | IMM,                                  \
           (x) | WIRE_H_RETH | WIRE_H_IMMDT)

/* Opcodes of the reliable services only. Responses carry no XRCETH. */
#define RELIABLE(svc, x)                                                                           \
    OP(svc, READ_REQUEST, WIRE_F_REQUEST | WIRE_F_READ | WIRE_F_ONLY, (x) | WIRE_H_RETH),          \
        OP(svc, READ_RESP_FIRST, RRESP | WIRE_F_FIRST, WIRE_H_AETH),                               \
        OP(svc, READ_RESP_MIDDLE, RRESP | WIRE_F_MIDDLE, 0u),                                      \
        OP(svc, READ_RESP_LAST, RRESP | WIRE_F_LAST, WIRE_H_AETH),                                 \
        OP(svc, READ_RESP_ONLY, RRESP | WIRE_F_ONLY, WIRE_H_AETH),                                 \
        OP(svc, ACKNOWLEDGE, WIRE_F_RESPONSE | WIRE_F_ACK | WIRE_F_ONLY, WIRE_H_AETH),             \
        OP(svc, ATOMIC_ACK, WIRE_F_RESPONSE | WIRE_F_ATOMIC | WIRE_F_ONLY,                         \
           WIRE_H_AETH | WIRE_H_ATOMICACK),                                                        \
        OP(svc, CMP_SWAP, WIRE_F_REQUEST | WIRE_F_ATOMIC | WIRE_F_ONLY, (x) | WIRE_H_ATOMICETH),   \
        OP(svc, FETCH_ADD, WIRE_F_REQUEST | WIRE_F_ATOMIC | WIRE_F_ONLY, (x) | WIRE_H_ATOMICETH),  \
        OP(svc, SEND_LAST_INV, SEND | WIRE_F_LAST | INV, (x) | WIRE_H_IETH),                       \
        OP(svc, SEND_ONLY_INV, SEND | WIRE_F_ONLY | RWQE | INV, (x) | WIRE_H_IETH),                \
        OP(svc, FLUSH, WIRE_F_REQUEST | WIRE_F_ONLY, (x) | WIRE_H_FETH | WIRE_H_RETH),             \
        OP(svc, ATOMIC_WRITE, WIRE_F_REQUEST | WIRE_F_ONLY | WIRE_F_PAYLOAD, (x) | WIRE_H_RETH)

const struct wire_opcode_info wire_opcodes[256] = {
    SEND_AND_WRITE(RC, 0u),
    RELIABLE(RC, 0u),
    SEND_AND_WRITE(UC, 0u),
    OP(UD, SEND_ONLY, SEND | WIRE_F_ONLY | RWQE, WIRE_H_DETH),
    OP(UD, SEND_ONLY_IMM, SEND | WIRE_F_ONLY | RWQE | IMM, WIRE_H_DETH | WIRE_H_IMMDT),
    SEND_AND_WRITE(XRC, WIRE_H_XRCETH),
    RELIABLE(XRC, WIRE_H_XRCETH),
    /* 16 reserved octets follow the BTH (OPC-05). */
    ENTRY(WIRE_OPCODE_CNP, "CNP", WIRE_F_CNP | WIRE_F_ONLY, 0u, 16u),
};

_Static_assert(AT_END(WIRE_H_XRCETH | WIRE_H_ATOMICETH) == WIRE_BTH_LEN + WIRE_EXT_MAX,
               "the longest extension headers");

#define SR(op, f, h, extra) ENTRY(WIRE_##op, "SR_" #op, f, h, extra)
#define SR_SEND(op, f, h)   SR(op, SEND | (f), h, 8u)

/* The fields of selective repeat follow the standard headers (the last argument). */
const struct wire_opcode_info wire_selective[32] = {
    SR_SEND(SEND_FIRST, WIRE_F_FIRST | RWQE, 0u),
    SR_SEND(SEND_MIDDLE, WIRE_F_MIDDLE, 0u),
    SR_SEND(SEND_LAST, WIRE_F_LAST, 0u),
    SR_SEND(SEND_LAST_IMM, WIRE_F_LAST | IMM, WIRE_H_IMMDT),
    SR_SEND(SEND_ONLY, WIRE_F_ONLY | RWQE, 0u),
    SR_SEND(SEND_ONLY_IMM, WIRE_F_ONLY | RWQE | IMM, WIRE_H_IMMDT),
    SR(WRITE_MIDDLE, WRITE | WIRE_F_MIDDLE, WIRE_H_RETH, 0u),
    SR(WRITE_LAST, WRITE | WIRE_F_LAST, WIRE_H_RETH, 0u),
    SR(WRITE_LAST_IMM, WRITE | WIRE_F_LAST | RWQE | IMM, WIRE_H_RETH | WIRE_H_IMMDT, 0u),
    SR(ACKNOWLEDGE, WIRE_F_RESPONSE | WIRE_F_ACK | WIRE_F_ONLY, WIRE_H_AETH, 4u),
    SR_SEND(SEND_LAST_INV, WIRE_F_LAST | INV, WIRE_H_IETH),
    SR_SEND(SEND_ONLY_INV, WIRE_F_ONLY | RWQE | INV, WIRE_H_IETH),
};
