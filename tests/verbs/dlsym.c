/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dlsym: NCCL, PyTorch, Go and Python bindings do not link libibverbs but dlopen("libibverbs.so.1")
 * and dlvsym() with versions; the library found must be the one that has the devices. The exported
 * ibv_query_port must keep to the old size of struct ibv_port_attr. */
#include "vt.h"
#include <dlfcn.h>
int main(int argc, char **argv)
{
    vt_args(argc, argv, "dlsym", vt_adev, vt_agid, vt_aip);
    static const struct {
        const char *name, *ver;
    } t[] = {{"ibv_get_device_list", "IBVERBS_1.1"},
             {"ibv_free_device_list", "IBVERBS_1.1"},
             {"ibv_get_device_name", "IBVERBS_1.1"},
             {"ibv_open_device", "IBVERBS_1.1"},
             {"ibv_close_device", "IBVERBS_1.1"},
             {"ibv_get_async_event", "IBVERBS_1.1"},
             {"ibv_ack_async_event", "IBVERBS_1.1"},
             {"ibv_query_device", "IBVERBS_1.1"},
             {"ibv_query_port", "IBVERBS_1.1"},
             {"ibv_query_gid", "IBVERBS_1.1"},
             {"ibv_query_qp", "IBVERBS_1.1"},
             {"ibv_alloc_pd", "IBVERBS_1.1"},
             {"ibv_dealloc_pd", "IBVERBS_1.1"},
             {"ibv_reg_mr", "IBVERBS_1.1"},
             {"ibv_reg_mr_iova2", "IBVERBS_1.8"},
             {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
             {"ibv_dereg_mr", "IBVERBS_1.1"},
             {"ibv_create_comp_channel", "IBVERBS_1.0"},
             {"ibv_destroy_comp_channel", "IBVERBS_1.0"},
             {"ibv_create_cq", "IBVERBS_1.1"},
             {"ibv_destroy_cq", "IBVERBS_1.1"},
             {"ibv_get_cq_event", "IBVERBS_1.1"},
             {"ibv_ack_cq_events", "IBVERBS_1.1"},
             {"ibv_create_srq", "IBVERBS_1.1"},
             {"ibv_create_qp", "IBVERBS_1.1"},
             {"ibv_modify_qp", "IBVERBS_1.1"},
             {"ibv_destroy_qp", "IBVERBS_1.1"},
             {"ibv_create_ah", "IBVERBS_1.1"},
             {"ibv_destroy_ah", "IBVERBS_1.1"},
             {"ibv_fork_init", "IBVERBS_1.1"},
             {"ibv_event_type_str", "IBVERBS_1.1"},
             {"ibv_wc_status_str", "IBVERBS_1.1"},
             {"ibv_query_ece", "IBVERBS_1.10"},
             {"ibv_set_ece", "IBVERBS_1.10"},
             {"ibv_qp_to_qp_ex", "IBVERBS_1.6"},
             {"_ibv_query_gid_ex", "IBVERBS_1.11"},
             {"_ibv_query_gid_table", "IBVERBS_1.11"},
             {"ibv_is_fork_initialized", "IBVERBS_1.13"},
             {"ibv_query_pkey", "IBVERBS_1.1"},
             {"ibv_create_ah_from_wc", "IBVERBS_1.1"},
             {"ibv_attach_mcast", "IBVERBS_1.1"},
             {"ibv_resize_cq", "IBVERBS_1.1"}};
    void *h = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    WANT(h, "dlopen(libibverbs.so.1): %s", dlerror());
    for (unsigned i = 0; i < sizeof(t) / sizeof(*t); i++) {
        void *p = dlvsym(h, t[i].name, t[i].ver);
        WANT(p, "dlvsym(%s, %s) is NULL, expected the function", t[i].name, t[i].ver);
        WANT(dlsym(h, t[i].name), "dlsym(%s) is NULL", t[i].name);
    }
    struct ibv_device **(*list)(int *) = dlvsym(h, "ibv_get_device_list", "IBVERBS_1.1");
    const char *(*name)(struct ibv_device *) = dlvsym(h, "ibv_get_device_name", "IBVERBS_1.1");
    struct ibv_context *(*op)(struct ibv_device *) = dlvsym(h, "ibv_open_device", "IBVERBS_1.1");
    int (*qport)(struct ibv_context *, uint8_t, struct ibv_port_attr *) =
        dlvsym(h, "ibv_query_port", "IBVERBS_1.1");
    void (*fr)(struct ibv_device **) = dlvsym(h, "ibv_free_device_list", "IBVERBS_1.1");
    int n = 0;
    struct ibv_device **l = list(&n);
    WANT(l && n > 0,
         "the dlopened library lists %d devices, expected those that a linked program sees", n);
    struct ibv_device **l2 = (ibv_get_device_list)(NULL);
    WANT(l2 && !strcmp(name(l[0]), ibv_get_device_name(l2[0])),
         "dlopened and linked library list different devices");
    struct ibv_context *c = op(l[0]);
    WANT(c, "open");
    fr(l);
    /* NCCL passes its own struct of the old size: only up to port_cap_flags2 may be written */
    struct {
        struct ibv_port_attr p;
        unsigned char guard[64];
    } g;
    memset(&g, 0x5a, sizeof(g));
    struct ibv_port_attr z;
    memset(&z, 0, sizeof(z));
    g.p = z;
    OK0(qport(c, vt.port, &g.p));
    for (int i = 0; i < 64; i++)
        WANT(g.guard[i] == 0x5a, "ibv_query_port wrote %d bytes past struct ibv_port_attr", i + 1);
    WANT(g.p.state == IBV_PORT_ACTIVE, "state %d", g.p.state);
    size_t shortlen = offsetof(struct ibv_port_attr, port_cap_flags2);
    unsigned char old[sizeof(struct ibv_port_attr) + 8];
    memset(old, 0x5a, sizeof(old));
    OK0(qport(c, vt.port, (struct ibv_port_attr *)old));
    for (size_t i = (shortlen + 3) / 4 * 4 + 4; i < sizeof(old); i++)
        WANT(old[i] == 0x5a,
             "the exported ibv_query_port wrote byte %zu, expected only the old struct (%zu bytes)",
             i, shortlen);
    WANT(dlopen("librdmacm.so.1", RTLD_NOW), "dlopen(librdmacm.so.1): %s", dlerror());
    vt_pass("%zu versioned symbols", sizeof(t) / sizeof(*t));
}
