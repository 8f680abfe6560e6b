/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's requests under arbitrary messages (SHM-01, SEC-03, SEC-22): a whole daemon without
 * threads, two devices on an emulated link, and a client of its own for each input.
 *
 * The input is a list of messages: two octets of length, one octet that picks a request type, then
 * the message's octets after the header. Small numbers in the right places are handles of objects
 * that earlier messages made, so that a mutated list still builds queue pairs and takes them down.
 */
#include "fuzz_daemon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const devices[] = {
        "name=urn0,port=mem:fuzz_control,addr=10.0.0.1/24",
        "name=urn1,port=mem:fuzz_control,addr=10.0.0.2/24",
    };
    static uint64_t at_rest;
    int sock;
    if (!fuzz_daemon.nic.nworker) {
        fuzz_daemon_start(devices, 2);
        at_rest = fuzz_live();
    }
    struct client *c = fuzz_client(&sock);
    for (unsigned i = 0; i < 64 && size >= 3 && !c->gone; i++) {
        size_t len = (size_t)(data[0] | data[1] << 8) % 1024;
        unsigned type = data[2] % IPC_TYPE_MAX;
        data += 3;
        size -= 3;
        if (len > size)
            len = size;
        fuzz_serve(c, type, data, len);
        fuzz_drain(sock);
        data += len;
        size -= len;
    }
    fuzz_client_end(c, sock);
    /* The client's objects went with it. */
    FUZZ_CHECK(fuzz_live() == at_rest);
    return 0;
}
