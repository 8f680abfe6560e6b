/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "unit.h"

/* Each refusal names the fault. */
START_TEST(io_open_refuses_with_a_reason)
{
    static const struct {
        const char *spec;
        int rc;
        const char *says[2];
    } rows[] = {
        {"", -EINVAL, {"DRIVER:ARGUMENTS", "mem:LINK"}},
        {"mem", -EINVAL, {"'mem'", "DRIVER:ARGUMENTS"}},
        {"eth:0", -ENODEV, {"no driver 'eth'", "mem"}},
        {"mem:", -EINVAL, {"mem:LINK", "name"}},
        {"mem:loss=0.1", -EINVAL, {"mem:LINK", "loss=0.1"}},
        {"mem:x,loss=2", -EINVAL, {"loss=2", "probability"}},
        {"mem:x,rate=fast", -EINVAL, {"rate=fast", "10G"}},
        {"mem:x,delay=5parsec", -EINVAL, {"delay=5parsec", "5us"}},
        {"mem:x,frame=20000", -EINVAL, {"frame=20000", "9234"}},
        {"mem:x,slots=1", -EINVAL, {"slots=1", "64"}},
        {"mem:x,lsos=0.1", -EINVAL, {"'lsos'", "unknown"}},
        {"mem:x,loss=0.1,loss=0.2", -EINVAL, {"'loss'", "twice"}},
        {"mem:x,reorder_gap=0", -EINVAL, {"reorder_gap=0", "1"}},
        {"mem:x,queue=5K", -EINVAL, {"queue=", "rate"}},
        {"mem:x,rate=1G,ecn_kmin=9K,ecn_kmax=8K", -EINVAL, {"ecn_kmin=9216", "ecn_kmax=8192"}},
        {"mem:x,pfc=on,xoff=1K,xon=2K", -EINVAL, {"xon=2048", "xoff=1024"}},
        {"mem:x,pfc=perhaps", -EINVAL, {"pfc=perhaps", "on or off"}},
        {"mem:x,word", -EINVAL, {"word", "KEY=VALUE"}},
        {"udp:", -EINVAL, {"udp:INTERFACE", "eth0"}},
        {"udp:addr=10.0.0.1", -EINVAL, {"udp:INTERFACE", "addr=10.0.0.1"}},
        {"udp:an-interface-name-too-long", -EINVAL, {"udp:INTERFACE", "too-long"}},
        {"udp:lo,addr=10.0.0.1/24", -EINVAL, {"addr=10.0.0.1/24", "without a prefix"}},
        {"udp:lo,addr=224.0.0.1", -EINVAL, {"addr=224.0.0.1", "address of the interface"}},
        {"udp:lo,addr=", -EINVAL, {"addr=", "no address"}},
        {"udp:lo,addr=127.0.0.1;::1;127.0.0.1", -EINVAL, {"addr=127.0.0.1", "twice"}},
        {"udp:lo,trains=some", -EINVAL, {"trains=some", "on or off"}},
        {"udp:lo,buffer=100", -EINVAL, {"buffer=100", "64K to 1G"}},
        {"udp:lo,buffer=2G", -EINVAL, {"buffer=2G", "64K to 1G"}},
        {"udp:lo,mtu=1500", -EINVAL, {"'mtu'", "addr buffer trains"}},
        {"udp:lo,word", -EINVAL, {"word", "KEY=VALUE"}},
        {"udp:no-such-if", -ENODEV, {"no-such-if", "ip link"}},
        {"pcap:", -EINVAL, {"pcap:IN,OUT", ""}},
        {"pcap:/nonexistent/in.pcap,", -ENOENT, {"/nonexistent/in.pcap", "No such file"}},
        {"pcap:,/nonexistent/out.pcapng", -ENOENT, {"/nonexistent/out.pcapng", "No such file"}},
        {"pcap:/etc/passwd,", -ENOENT, {"/etc/passwd", "format"}},
        {"pcap:a,b,c", -EINVAL, {"pcap:IN,OUT", ""}},
        {"pcap:/nonexistent/in.pcap,paced=on,x", -EINVAL, {"pcap:IN,OUT", ""}},
        {"mem:stray,rate=1G,shared", -EINVAL, {"'shared'", "KEY=VALUE"}},
        {"pcap:,/dev/null,paced=2", -EINVAL, {"paced=2", "on or off"}},
        {"pcap:,/dev/null,pace=on", -EINVAL, {"'pace'", "paced"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char err[512] = "";
        struct io_port *port = NULL;
        int rc = io_open(rows[i].spec, NULL, &port, err, sizeof(err));
        ck_assert_msg(rc == rows[i].rc, "%s: %d %s", rows[i].spec, rc, err);
        for (int k = 0; k < 2; k++)
            ck_assert_msg(strstr(err, rows[i].says[k]) != NULL, "%s: '%s' lacks '%s'", rows[i].spec,
                          err, rows[i].says[k]);
        /* A caller that doesn't want the text. */
        ck_assert_int_eq(io_open(rows[i].spec, NULL, &port, NULL, 0), rc);
    }
}
END_TEST

/* Reads the words only: no file, no socket, no plugin is touched. */
START_TEST(io_check_reads_the_words)
{
    static const struct {
        const char *spec;
        int rc;
        const char *says;
    } rows[] = {
        {"mem:x", 0, ""},
        {"udp:eth0,addr=10.0.0.1;fd00::1,trains=off,buffer=208K", 0, ""},
        {"udp:eth0,addr=10.0.0", -EINVAL, "addr=10.0.0"},
        {"mem:x,loss=2", -EINVAL, "loss=2"},
        {"mem:x,lsos=0.1", -EINVAL, "'lsos'"},
        {"mem:x,queue=5K", 0, ""}, /* the link's first port may have a rate */
        {"pcap:/nonexistent/in.pcap,", 0, ""},
        {"pcap:,x,paced=2", -EINVAL, "paced=2"},
        {"memif:/nonexistent/m.sock,role=server", 0, ""},
        {"memif:/nonexistent/m.sock", -EINVAL, "role="},
        {"memif:/nonexistent/m.sock,role=client,buffer=1", -EINVAL, "buffer=1"},
        {"dpdk:net_af_packet0,iface=none0", 0, ""},
        {"dpdk:net_af_packet0", -EINVAL, "which interface"},
        {"dpdk:net_af_packet0,iface=none0,qpairs=1", 0, ""},
        {"dpdk:net_af_packet0,iface=none0,qpairs=2", 0, ""},
        {"dpdk:net_af_packet0,iface=none0,qpairs=0", -EINVAL, "qpairs=0: 1 to 8 queues"},
        {"dpdk:net_af_packet0,iface=none0,qpairs=16", -EINVAL, "qpairs=16: 1 to 8 queues"},
        {"dpdk:net_af_xdp0,iface=none0,queue_count=9", -EINVAL, "queue_count=9: 1 to 8 queues"},
        {"dpdk:01:00.0,urnic_rxd=1", -EINVAL, "urnic_rxd=1"},
        {"eth:0", -ENODEV, "no driver 'eth'"},
        {"eth0", -EINVAL, "DRIVER:ARGUMENTS"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char err[512] = "";
        int rc = io_check(rows[i].spec, err, sizeof(err));
        ck_assert_msg(rc == rows[i].rc && strstr(err, rows[i].says), "%s: %d %s", rows[i].spec, rc,
                      err);
    }
}
END_TEST

START_TEST(io_open_refuses_a_long_specification)
{
    char spec[IO_SPEC_MAX + 10], err[128];
    struct io_port *port;
    memset(spec, 'x', sizeof(spec) - 1);
    memcpy(spec, "mem:", 4);
    spec[sizeof(spec) - 1] = '\0';
    ck_assert_int_eq(io_open(spec, NULL, &port, err, sizeof(err)), -EINVAL);
}
END_TEST

/* A link's keys come from its first port; later ones leave them out or agree. */
START_TEST(io_open_later_ports_must_agree)
{
    struct io_port *a, *b;
    char err[256];
    ck_assert_int_eq(io_open("mem:agree,loss=0.25,delay=5us", NULL, &a, NULL, 0), 0);
    ck_assert_str_eq(a->spec, "mem:agree,loss=0.25,delay=5us");
    ck_assert_int_eq(io_open("mem:agree,loss=0.5", NULL, &b, err, sizeof(err)), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "loss=0.5"));
    ck_assert_int_eq(io_open("mem:agree,delay=5000", NULL, &b, NULL, 0), 0);
    b->ops->close(b);
    a->ops->close(a);
    ck_assert_int_eq(io_open("mem:agree,loss=0.5", NULL, &b, NULL, 0), 0);
    b->ops->close(b);
}
END_TEST

/* Without the plugin, the error names the remedy; for a file that is no plugin, the reason. */
START_TEST(io_open_dpdk_plugin)
{
    char dir[] = "/tmp/urnic-plugin-XXXXXX", path[64], err[512];
    struct io_port *port;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("URNIC_PLUGIN_DIR", dir, 1);
    ck_assert_int_eq(io_open("dpdk:net_null0", NULL, &port, err, sizeof(err)), -ENOSYS);
    ck_assert_ptr_nonnull(strstr(err, "liburnic-dpdk.so"));
    ck_assert_ptr_nonnull(strstr(err, "URNIC_PLUGIN_DIR"));
    snprintf(path, sizeof(path), "%s/liburnic-dpdk.so", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("not a shared object", f);
    fclose(f);
    ck_assert_int_eq(io_open("dpdk:net_null0", NULL, &port, err, sizeof(err)), -ENOSYS);
    ck_assert_ptr_nonnull(strstr(err, path));
    unlink(path);
    rmdir(dir);
}
END_TEST

UNIT_MAIN("io_open", io_open_refuses_with_a_reason, io_check_reads_the_words,
          io_open_refuses_a_long_specification, io_open_later_ports_must_agree, io_open_dpdk_plugin)
