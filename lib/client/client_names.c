/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers as text.
 */
#include "urnic/urnic.h"

#include <stddef.h>

#include "ib.h"

#define NAME(table, i)                                                                             \
    ((unsigned)(i) < sizeof(table) / sizeof((table)[0]) && (table)[i] != NULL ? (table)[i]         \
                                                                              : "unknown")

const char *urnic_wc_status_str(enum urnic_wc_status status)
{
    static const char *const names[] = {
        [URNIC_WC_SUCCESS] = "success",
        [URNIC_WC_LOC_LEN_ERR] = "local length error",
        [URNIC_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [URNIC_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
        [URNIC_WC_LOC_PROT_ERR] = "local protection error",
        [URNIC_WC_WR_FLUSH_ERR] = "work request flushed",
        [URNIC_WC_MW_BIND_ERR] = "memory window bind error",
        [URNIC_WC_BAD_RESP_ERR] = "bad response",
        [URNIC_WC_LOC_ACCESS_ERR] = "local access error",
        [URNIC_WC_REM_INV_REQ_ERR] = "remote invalid request",
        [URNIC_WC_REM_ACCESS_ERR] = "remote access error",
        [URNIC_WC_REM_OP_ERR] = "remote operation error",
        [URNIC_WC_RETRY_EXC_ERR] = "transport retries exceeded",
        [URNIC_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
        [URNIC_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
        [URNIC_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
        [URNIC_WC_REM_ABORT_ERR] = "aborted by the remote side",
        [URNIC_WC_INV_EECN_ERR] = "invalid EE context number",
        [URNIC_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
        [URNIC_WC_FATAL_ERR] = "fatal error",
        [URNIC_WC_RESP_TIMEOUT_ERR] = "response timeout",
        [URNIC_WC_GENERAL_ERR] = "general error",
    };
    return NAME(names, status);
}

const char *urnic_rule_area(uint32_t vendor_err)
{
    static const char *const areas[] = {"",
#define X(name) #name,
                                        RULE_AREAS(X)
#undef X
    };
    uint32_t area = vendor_err >> 16;
    return area < sizeof(areas) / sizeof(areas[0]) ? areas[area] : "";
}

const char *urnic_event_type_str(enum urnic_event_type event)
{
    static const char *const names[] = {
        [URNIC_EVENT_CQ_ERR] = "completion queue error",
        [URNIC_EVENT_QP_FATAL] = "queue pair fatal error",
        [URNIC_EVENT_QP_REQ_ERR] = "invalid request from the peer",
        [URNIC_EVENT_QP_ACCESS_ERR] = "access violation by the peer",
        [URNIC_EVENT_COMM_EST] = "communication established",
        [URNIC_EVENT_SQ_DRAINED] = "send queue drained",
        [URNIC_EVENT_PATH_MIG] = "path migrated",
        [URNIC_EVENT_PATH_MIG_ERR] = "path migration failed",
        [URNIC_EVENT_DEVICE_FATAL] = "device fatal error",
        [URNIC_EVENT_PORT_ACTIVE] = "port active",
        [URNIC_EVENT_PORT_ERR] = "port down",
        [URNIC_EVENT_LID_CHANGE] = "LID change",
        [URNIC_EVENT_PKEY_CHANGE] = "P_Key table change",
        [URNIC_EVENT_SM_CHANGE] = "subnet manager change",
        [URNIC_EVENT_SRQ_ERR] = "shared receive queue error",
        [URNIC_EVENT_SRQ_LIMIT_REACHED] = "shared receive queue limit reached",
        [URNIC_EVENT_QP_LAST_WQE_REACHED] = "last receive entry taken",
        [URNIC_EVENT_CLIENT_REREGISTER] = "client reregistration",
        [URNIC_EVENT_GID_CHANGE] = "GID table change",
    };
    return NAME(names, event);
}

const char *urnic_qp_state_str(enum urnic_qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return NAME(names, state);
}

const char *urnic_cm_event_str(enum urnic_cm_event_type event)
{
    static const char *const names[] = {
        [URNIC_CM_ADDR_RESOLVED] = "address resolved",
        [URNIC_CM_ADDR_ERROR] = "address error",
        [URNIC_CM_ROUTE_RESOLVED] = "route resolved",
        [URNIC_CM_ROUTE_ERROR] = "route error",
        [URNIC_CM_CONNECT_REQUEST] = "connect request",
        [URNIC_CM_CONNECT_RESPONSE] = "connect response",
        [URNIC_CM_CONNECT_ERROR] = "connect error",
        [URNIC_CM_UNREACHABLE] = "unreachable",
        [URNIC_CM_REJECTED] = "rejected",
        [URNIC_CM_ESTABLISHED] = "established",
        [URNIC_CM_DISCONNECTED] = "disconnected",
        [URNIC_CM_DEVICE_REMOVAL] = "device removal",
        [URNIC_CM_MULTICAST_JOIN] = "multicast joined",
        [URNIC_CM_MULTICAST_ERROR] = "multicast error",
        [URNIC_CM_ADDR_CHANGE] = "address change",
        [URNIC_CM_TIMEWAIT_EXIT] = "time-wait exit",
    };
    return NAME(names, event);
}

const char *urnic_version(void)
{
    return URNIC_VERSION;
}
