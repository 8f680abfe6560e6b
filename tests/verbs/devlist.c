/* SPDX-License-Identifier: BSD-3-Clause
 *
 * devlist: ibv_get_device_list() as programs use it: NULL-terminated, NULL counter allowed,
 * unique names, a context that outlives the list, the same device opened twice, GUIDs that agree.
 */
#include "vt.h"
int main(int argc, char **argv)
{
    vt_args(argc, argv, "devlist", vt_adev, vt_agid, vt_aip);
    int n = -7;
    struct ibv_device **l = ibv_get_device_list(&n);
    WANT(l, "list NULL (errno %d), expected an array", errno);
    WANT(n > 0, "num_devices %d, expected >= 1", n);
    for (int i = 0; i < n; i++)
        WANT(l[i], "entry %d of %d is NULL, expected a device", i, n);
    WANT(!l[n], "list[%d] is %p, expected the terminating NULL", n, (void *)l[n]);
    for (int i = 0; i < n; i++) {
        const char *a = ibv_get_device_name(l[i]);
        WANT(a && *a && strlen(a) < IBV_SYSFS_NAME_MAX,
             "device %d has name \"%s\", expected 1 to 63 characters", i, a ? a : "(null)");
        WANT(!strcmp(a, l[i]->name),
             "ibv_get_device_name \"%s\", device->name \"%s\", expected the same", a, l[i]->name);
        for (int j = 0; j < i; j++)
            WANT(strcmp(a, ibv_get_device_name(l[j])),
                 "two devices named %s, expected unique names", a);
        WANT(l[i]->node_type == IBV_NODE_CA, "%s node_type %d, expected IBV_NODE_CA (1)", a,
             l[i]->node_type);
        WANT(l[i]->transport_type == IBV_TRANSPORT_IB,
             "%s transport_type %d, expected IBV_TRANSPORT_IB (0)", a, l[i]->transport_type);
    }
    struct ibv_device **l2 = ibv_get_device_list(NULL);
    WANT(l2 && l2[0], "ibv_get_device_list(NULL) gave %p, expected a list", (void *)l2);
    char name[64];
    snprintf(name, sizeof(name), "%s", ibv_get_device_name(l[0]));
    WANT(!strcmp(name, ibv_get_device_name(l2[0])),
         "second list starts with %s, first with %s, expected a stable order",
         ibv_get_device_name(l2[0]), name);
    struct ibv_context *a = ibv_open_device(l[0]), *b = ibv_open_device(l2[0]);
    WANT(a && b, "two ibv_open_device of one device gave %p %p, expected both", (void *)a,
         (void *)b);
    WANT(a != b, "the same context twice, expected two");
    __be64 guid = ibv_get_device_guid(l[0]);
    ibv_free_device_list(l);
    ibv_free_device_list(l2);
    /* contexts must live without the lists */
    WANT(!strcmp(ibv_get_device_name(a->device), name),
         "context->device name changed after ibv_free_device_list");
    struct ibv_device_attr da, db;
    OK0(ibv_query_device(a, &da));
    OK0(ibv_query_device(b, &db));
    WANT(da.node_guid == guid && guid,
         "node_guid %llx, ibv_get_device_guid %llx, expected the same, not 0",
         (unsigned long long)da.node_guid, (unsigned long long)guid);
    WANT(da.phys_port_cnt >= 1, "phys_port_cnt 0, expected >= 1");
    WANT(a->num_comp_vectors >= 1, "num_comp_vectors %d, expected >= 1", a->num_comp_vectors);
    WANT(a->async_fd >= 0 && a->async_fd != b->async_fd,
         "async_fd %d and %d, expected two descriptors", a->async_fd, b->async_fd);
    struct ibv_pd *p = ibv_alloc_pd(a), *q = ibv_alloc_pd(b);
    WANT(p && q, "ibv_alloc_pd failed, errno %d", errno);
    OK0(ibv_dealloc_pd(p));
    OK0(ibv_close_device(a));
    struct ibv_pd *r = ibv_alloc_pd(b); /* closing one context leaves the other */
    WANT(r, "ibv_alloc_pd after closing the other context failed, errno %d", errno);
    OK0(ibv_dealloc_pd(r));
    OK0(ibv_dealloc_pd(q));
    OK0(ibv_close_device(b));
    vt_pass(NULL);
}
