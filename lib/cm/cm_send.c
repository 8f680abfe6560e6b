/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Outgoing messages are of two kinds. A connection keeps its last message, and its state decides
 * when to send it again. A reply without a connection is sent once, and the rate of such replies is
 * limited (CM-24).
 */
#include <string.h>

#include "cm_priv.h"

void cm_send(struct cm *cm, struct cm_conn *c, const struct cm_msg *msg, uint64_t now,
             bool expects_answer)
{
    if (cm_msg_pack(c->mad, msg) < 0)
        return;
    cm_tx_queue(cm, c);
    if (expects_answer) {
        c->retries_left = c->max_retries;
        cm_timer_set(cm, c, now + c->resend_ns);
    }
}

void cm_send_stateless(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg,
                       uint64_t now)
{
    uint64_t fresh = (now - cm->out_tokens_at) / (1000000000u / CM_STATELESS_PER_S);
    if (fresh) {
        uint64_t tokens = cm->out_tokens + fresh;
        cm->out_tokens = tokens > CM_STATELESS_BURST ? CM_STATELESS_BURST : (uint32_t)tokens;
        cm->out_tokens_at = now;
    }
    if (cm->out_tokens == 0 || cm->out_tail - cm->out_head >= CM_OUT_RING) {
        cm_count(cm, CM_C_cm_rx_rate_limited);
        return;
    }
    struct cm_out *out = &cm->out[cm->out_tail % CM_OUT_RING];
    *out = (struct cm_out){
        .src = path->local,
        .dst = path->remote,
        .tclass = path->tclass,
        .hop_limit = path->hop_limit,
        .pkey = path->pkey,
    };
    if (cm_msg_pack(out->mad, msg) < 0)
        return;
    cm->out_tokens--;
    cm->out_tail++;
}

void cm_send_rej_to(struct cm *cm, const struct cm_path *path, const struct cm_msg *to,
                    uint32_t local_id, unsigned reason, enum cm_about about, uint8_t ari0,
                    uint64_t now)
{
    struct cm_msg rej = {
        .attr = CM_REJ,
        .tid = to->tid,
        .local_id = local_id,
        .remote_id = to->local_id,
        .msg_id = about,
        .reason = reason,
        .ari_len = ari0 ? 1 : 0,
        .ari = {ari0},
    };
    cm_send_stateless(cm, path, &rej, now);
}

void cm_send_rej(struct cm *cm, const struct cm_conn *c, unsigned reason, enum cm_about about,
                 const void *priv, size_t len, uint64_t now)
{
    struct cm_msg rej = {
        .attr = CM_REJ,
        .tid = c->tid,
        .local_id = c->local_id,
        .remote_id = c->remote_id,
        .msg_id = about,
        .reason = reason,
        .priv_len = (uint16_t)len,
    };
    if (reason == CM_REJ_TIMEOUT) { /* CM-28: our GUID */
        rej.ari_len = CM_GUID_LEN;
        for (unsigned i = 0; i < CM_GUID_LEN; i++)
            rej.ari[i] = (uint8_t)(cm->params.ca_guid >> (56 - 8 * i));
    }
    if (len)
        memcpy(rej.priv, priv, len);
    cm_send_stateless(cm, &c->path, &rej, now);
}
