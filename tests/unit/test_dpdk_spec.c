/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words of a "dpdk:" specification, and DPDK's arguments for them.
 */
#include "dpdk_spec.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *args;
    int rc;
    enum dpdk_kind kind;
    const char *devargs; /* or, when refused, a part of the message */
    const char *iface;
    uint32_t mtu;
} specs[] = {
    {"net_af_packet0,iface=v0", 0, DPDK_AF_PACKET, "net_af_packet0,iface=v0", "v0", 0},
    {"net_af_packet0,urnic_mtu=4096,iface=v0,qdisc_bypass=0", 0, DPDK_AF_PACKET,
     "net_af_packet0,iface=v0,qdisc_bypass=0", "v0", 4096},
    {"eth_af_packet1,iface=v0", 0, DPDK_AF_PACKET, "eth_af_packet1,iface=v0", "v0", 0},
    {"net_af_xdp0,iface=v0", 0, DPDK_AF_XDP, "net_af_xdp0,iface=v0", "v0", 0},
    {"net_tap0", 0, DPDK_TAP, "net_tap0", "", 0},
    {"net_tap0,iface=t0", 0, DPDK_TAP, "net_tap0,iface=t0", "t0", 0},
    {"net_memif0,role=server,socket=/a/b.sock,socket-abstract=no", 0, DPDK_VDEV,
     "net_memif0,role=server,socket=/a/b.sock,socket-abstract=no", "", 0},
    {"0000:01:00.0", 0, DPDK_PCI, "0000:01:00.0", "", 0},
    {"01:00.1,urnic_rxd=512", 0, DPDK_PCI, "0000:01:00.1", "", 0},
    {"10000:01:00.0", 0, DPDK_PCI, "10000:01:00.0", "", 0},
    {"Fffe0001:AF:1f.7", 0, DPDK_PCI, "fffe0001:af:1f.7", "", 0},
    {"net_vhost0,iface=/run/a-path-longer-than-an-interface", 0, DPDK_VDEV,
     "net_vhost0,iface=/run/a-path-longer-than-an-interface", "", 0},
    {"net_failsafe0,urnic_mtu=1500,dev(net_af_packet0,iface=v0),dev(net_af_packet1,iface=v1)", 0,
     DPDK_VDEV, "net_failsafe0,dev(net_af_packet0,iface=v0),dev(net_af_packet1,iface=v1)", "",
     1500},
    {"net_x0,a=[1,2],a=[3,4],b={5,{6,7}},urnic_mtu=2000", 0, DPDK_VDEV,
     "net_x0,a=[1,2],a=[3,4],b={5,{6,7}}", "", 2000},
    {"net_x0,dev(urnic_mtu=1500,urnic_mtu=1500", 0, DPDK_VDEV,
     "net_x0,dev(urnic_mtu=1500,urnic_mtu=1500", "", 0},
    {"net_x0,a)b,c", 0, DPDK_VDEV, "net_x0,a)b,c", "", 0},
    {"net_af_packet0,iface=v0,new_option=1", 0, DPDK_AF_PACKET,
     "net_af_packet0,iface=v0,new_option=1", "v0", 0},
    {"0001:AF:1f.7,txq_inline=0", 0, DPDK_PCI, "0001:af:1f.7,txq_inline=0", "", 0},

    {"", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"iface=v0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"01:20.0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"01:00.8", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"0000:01:00.0x", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"net_af_packet0", -EINVAL, 0, "iface=eth1", NULL, 0},
    {"net_af_xdp0,urnic_mtu=1500", -EINVAL, 0, "iface=eth1", NULL, 0},
    {"net_af_packet0,iface=", -EINVAL, 0, "iface=", NULL, 0},
    {"net_af_packet0,iface=a-name-too-long-for-linux", -EINVAL, 0, "iface=a-name", NULL, 0},
    {"net_tap0,urnic_mtu=", -EINVAL, 0, "urnic_mtu=", NULL, 0},
    {"net_tap0,urnic_mtu=-5", -EINVAL, 0, "urnic_mtu=-5", NULL, 0},
    {"net_tap0,urnic_mtu=9217", -EINVAL, 0, "296 to 9216", NULL, 0},
    {"net_tap0,urnic_promisc=2", -EINVAL, 0, "urnic_promisc=2", NULL, 0},
    {"net_tap0,urnic_huge=maybe", -EINVAL, 0, "auto, off or on", NULL, 0},
    {"net_tap0,urnic_mtu=1500,urnic_mtu=9000", -EINVAL, 0, "urnic_mtu is given twice", NULL, 0},
    {"net_af_packet0,iface=v0,iface=v1", -EINVAL, 0, "iface is given twice", NULL, 0},
    {"-1:00:00.0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"+1: 0.0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"0x1:00:00.0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"net_af_packet0,iface=v0,framez=2048", -EINVAL, 0, "framez: DPDK's net_af_packet has no", NULL,
     0},
    {"net_af_packet0,ifcae=v0", -EINVAL, 0, "did you mean iface?", NULL, 0},
    {"net_af_xdp0,iface=v0,queue_cuont=1", -EINVAL, 0, "did you mean queue_count?", NULL, 0},
    {"net_tap0,ifaces=t0", -EINVAL, 0, "did you mean iface?", NULL, 0},
    {"net_tap0,nac=1", -EINVAL, 0, "did you mean mac?", NULL, 0},
    {"100000000:01:00.0", -EINVAL, 0, "begin with a DPDK device", NULL, 0},
    {"net_tap0,urnic_mut=1500", -EINVAL, 0, "urnic_mut: no such option", NULL, 0},
};

START_TEST(a_specification_is_taken_apart)
{
    struct dpdk_spec spec;
    char err[300] = "";
    int rc = dpdk_spec_parse(specs[_i].args, &spec, err, sizeof(err));
    ck_assert_msg(rc == specs[_i].rc, "%s: %d %s", specs[_i].args, rc, err);
    if (rc) {
        ck_assert_msg(strstr(err, specs[_i].devargs), "%s: said: %s", specs[_i].args, err);
        return;
    }
    ck_assert_int_eq(spec.kind, specs[_i].kind);
    ck_assert_str_eq(spec.devargs, specs[_i].devargs);
    ck_assert_str_eq(spec.iface, specs[_i].iface);
    ck_assert_uint_eq(spec.mtu, specs[_i].mtu);
}
END_TEST

START_TEST(options_of_ours_are_read)
{
    struct dpdk_spec spec;
    char err[300] = "";
    ck_assert_int_eq(dpdk_spec_parse("net_tap0,urnic_rxd=64,urnic_txd=8192,urnic_mem=64,"
                                     "urnic_huge=on,urnic_promisc=1,urnic_debug=1",
                                     &spec, err, sizeof(err)),
                     0);
    ck_assert_uint_eq(spec.rxd, 64);
    ck_assert_uint_eq(spec.txd, 8192);
    ck_assert_uint_eq(spec.mem_mib, 64);
    ck_assert_int_eq(spec.huge, DPDK_HUGE_ON);
    ck_assert(spec.promisc && spec.debug);
    ck_assert_int_eq(dpdk_spec_parse("net_tap0,urnic_huge=off", &spec, err, sizeof(err)), 0);
    ck_assert_int_eq(spec.huge, DPDK_HUGE_OFF);
    ck_assert(!spec.promisc && !spec.debug);
}
END_TEST

/* Ring frames of af_packet: the kernel's header, the frame, and one octet by which a frame that is
 * too long shows. */
static const struct {
    uint32_t frame_max, framesz;
} rings[] = {{60, 2048},   {1514, 2048}, {1919, 2048}, {1920, 2304},
             {4200, 4352}, {8063, 8192}, {8064, 8448}, {9234, 9472}};

START_TEST(a_ring_frame_holds_more_than_the_frame)
{
    ck_assert_uint_eq(dpdk_spec_framesz(rings[_i].frame_max), rings[_i].framesz);
}
END_TEST

static const struct {
    const char *args;
    uint32_t frame_max;
    const char *devargs;
    uint64_t lockable; /* 0 = no limit */
} defaults[] = {
    {"net_af_packet0,iface=v0", 4200,
     "net_af_packet0,iface=v0,framesz=4352,framecnt=1024,blocksz=69632"},
    {"net_af_packet0,iface=v0", 4200,
     "net_af_packet0,iface=v0,framesz=4352,framecnt=512,blocksz=69632", 8 << 20},
    {"net_af_packet0,iface=v0", 4200,
     "net_af_packet0,iface=v0,framesz=4352,framecnt=512,blocksz=69632", 4352 << 10},
    {"net_af_packet0,iface=v0", 4200,
     "net_af_packet0,iface=v0,framesz=4352,framecnt=256,blocksz=69632", (4352 << 10) - 1},
    {"net_af_packet0,iface=v0", 1514,
     "net_af_packet0,iface=v0,framesz=2048,framecnt=64,blocksz=4096", 1},
    {"net_af_packet0,iface=v0,framecnt=16", 4200,
     "net_af_packet0,iface=v0,framecnt=16,framesz=4352,blocksz=69632"},
    {"net_af_packet0,iface=v0,blocksz=65536", 4200,
     "net_af_packet0,iface=v0,blocksz=65536,framesz=8192,framecnt=1024"},
    {"net_af_packet0,iface=v0,framesz=8192,blocksz=65536,framecnt=64", 4200,
     "net_af_packet0,iface=v0,framesz=8192,blocksz=65536,framecnt=64"},
    {"net_af_packet0,iface=v0,framesz=16384", 4200,
     "net_af_packet0,iface=v0,framesz=16384,framecnt=1024,blocksz=16384"},
    {"net_af_packet0,iface=v0,framesz=4400", 4200,
     "net_af_packet0,iface=v0,framesz=4400,framecnt=1024,blocksz=1126400"},
    {"net_af_xdp0,iface=v0", 2000, "net_af_xdp0,iface=v0,busy_budget=0"},
    {"net_af_xdp0,iface=v0,busy_budget=64", 2000, "net_af_xdp0,iface=v0,busy_budget=64"},
    {"net_tap3", 1514, "net_tap3,iface=tap3"},
    {"net_tap3,iface=x", 1514, "net_tap3,iface=x"},
    {"net_memif0", 4200, "net_memif0,bsize=4352"},
    {"net_memif0,bsize=2048", 4200, "net_memif0,bsize=2048"},
    {"net_null0", 4200, "net_null0"},
    {"0000:01:00.0", 4200, "0000:01:00.0"},
};

START_TEST(what_the_user_did_not_say_is_added)
{
    struct dpdk_spec spec;
    char err[300] = "";
    ck_assert_int_eq(dpdk_spec_parse(defaults[_i].args, &spec, err, sizeof(err)), 0);
    ck_assert_int_eq(dpdk_spec_defaults(&spec, defaults[_i].frame_max,
                                        defaults[_i].lockable ? defaults[_i].lockable : UINT64_MAX,
                                        err, sizeof(err)),
                     0);
    ck_assert_str_eq(spec.devargs, defaults[_i].devargs);
}
END_TEST

/* WIRE-36: larger frames, on an interface that has another name by now. */
START_TEST(a_specification_is_made_anew)
{
    static const char args[] = "net_af_packet0,iface=v0,qpairs=1,urnic_rxd=64";
    struct dpdk_spec spec;
    char err[300] = "";
    ck_assert_int_eq(dpdk_spec_parse(args, &spec, err, sizeof(err)), 0);
    ck_assert_int_eq(dpdk_spec_defaults(&spec, 1514, UINT64_MAX, err, sizeof(err)), 0);
    spec.promisc = true;
    ck_assert_int_eq(
        dpdk_spec_renew(&spec, args, "a-longer-name.7", 4200, UINT64_MAX, err, sizeof(err)), 0);
    ck_assert_str_eq(spec.iface, "a-longer-name.7");
    ck_assert_str_eq(spec.devargs, "net_af_packet0,iface=a-longer-name.7,qpairs=1,framesz=4352,"
                                   "framecnt=1024,blocksz=69632");
    ck_assert_uint_eq(spec.ring_frame, 4352);
    ck_assert_uint_eq(spec.rxd, 64);
    ck_assert(spec.promisc);
}
END_TEST

START_TEST(too_long_is_refused)
{
    struct dpdk_spec spec;
    char args[600], err[300] = "";
    memset(args, 'a', sizeof(args));
    args[sizeof(args) - 1] = '\0';
    ck_assert_int_eq(dpdk_spec_parse(args, &spec, err, sizeof(err)), -EINVAL);
    args[250] = '\0'; /* short enough as a whole, not as a device name */
    ck_assert_int_eq(dpdk_spec_parse(args, &spec, err, sizeof(err)), -EINVAL);
    memcpy(args, "net_af_packet0,iface=v0,x=", 26); /* no room for our defaults */
    ck_assert_int_eq(dpdk_spec_parse(args, &spec, err, sizeof(err)), 0);
    ck_assert_int_eq(dpdk_spec_defaults(&spec, 1514, UINT64_MAX, err, sizeof(err)), -EINVAL);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
    Suite *s = suite_create("dpdk_spec");
    TCase *tc = tcase_create("spec");

    tcase_add_loop_test(tc, a_specification_is_taken_apart, 0, COUNT(specs));
    tcase_add_test(tc, options_of_ours_are_read);
    tcase_add_loop_test(tc, a_ring_frame_holds_more_than_the_frame, 0, COUNT(rings));
    tcase_add_loop_test(tc, what_the_user_did_not_say_is_added, 0, COUNT(defaults));
    tcase_add_test(tc, a_specification_is_made_anew);
    tcase_add_test(tc, too_long_is_refused);
    suite_add_tcase(s, tc);
    return unit_run(s);
}
