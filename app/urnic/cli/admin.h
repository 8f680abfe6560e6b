/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A control connection to urnicd for tools: requests that look in or steer and need no open device.
 * Public applications use liburnic; this speaks lib/ipc directly. One thread.
 */
#ifndef URNIC_ADMIN_H
#define URNIC_ADMIN_H

#include "ipc.h"

struct admin {
    int sock;
    uint32_t id;
};

/* Connect to the daemon of --socket or the default one, and say hello. 0 or -errno (-ENODEV: no
 * daemon there; -ETIMEDOUT: no answer; -EPROTO: another program answers; -EPROTONOSUPPORT: a daemon
 * of another version; -EDQUOT: it is full; -EACCES, -ENAMETOOLONG); messages are the caller's.
 * Close it in either case. */
int admin_open(struct admin *a);
/* The same, with another time limit than 10 s for each step. */
int admin_open_within(struct admin *a, unsigned seconds);
void admin_close(struct admin *a);

/* Send `request` and a descriptor (-1 = none), and receive the reply, of up to `cap` octets, into
 * `reply`. The caller sets hdr.type of the request; the rest of hdr is filled in here. Returns the
 * length of the reply, or -errno, also for an error status in the reply. */
ssize_t admin_call(struct admin *a, void *request, size_t len, int fd, void *reply, size_t cap);
/* The two halves of admin_call, for requests that may take long. 0 or -errno; as above. */
int admin_ask(struct admin *a, void *request, size_t len, int fd);
ssize_t admin_answer(struct admin *a, void *reply, size_t cap);

/* Send a JSON object {"cmd": ...} and free it. 0, and *text is the answer, which ends in NUL and is
 * valid until the next call; or -errno, including the daemon's own status; -EMSGSIZE: the object is
 * too long. */
struct json_t;
int admin_json(struct admin *a, struct json_t *object, char **text);

/* Fill in the device of a request. A too long name, which no device has, is cut. */
void admin_set_device(char dst[IPC_NAME_MAX], const char *name);

#define ADMIN_DEVICES_MAX 64u /* more than any daemon has */
/* Get all device names. Returns their number, at most max, or -errno. */
int admin_devices(struct admin *a, struct ipc_device *dev, unsigned max);

/* The effective congestion control and loss recovery of a device, as text for cc_conf_parse; device
 * NULL = the first one. 0 or -errno. */
int admin_cc(struct admin *a, const char *device, char *text, size_t size);

#endif
