/* Conversion of queue pair attributes between libibverbs and the engine. */
#include <string.h>

#include "rdma/provider/rocefs.h"

void rocefs_qp_attr_from_verbs(struct rocefs_qp_attr* out, const struct ibv_qp_attr* in, int mask) {
  out->mask = (uint32_t)mask;
  if (mask & IBV_QP_STATE) out->state = in->qp_state;
  if (mask & IBV_QP_CUR_STATE) out->current_state = in->cur_qp_state;
  if (mask & IBV_QP_PATH_MTU) out->path_mtu = in->path_mtu;
  if (mask & IBV_QP_PATH_MIG_STATE) out->path_migration = in->path_mig_state;
  if (mask & IBV_QP_QKEY) out->qkey = in->qkey;
  if (mask & IBV_QP_RQ_PSN) out->receive_psn = in->rq_psn;
  if (mask & IBV_QP_SQ_PSN) out->send_psn = in->sq_psn;
  if (mask & IBV_QP_DEST_QPN) out->remote_qpn = in->dest_qp_num;
  if (mask & IBV_QP_ACCESS_FLAGS) out->access = in->qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) out->pkey_index = in->pkey_index;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) out->max_rd_atomic = in->max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) out->max_dest_rd_atomic = in->max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) out->min_rnr_timer = in->min_rnr_timer;
  if (mask & IBV_QP_PORT) out->port = in->port_num;
  if (mask & IBV_QP_TIMEOUT) out->timeout = in->timeout;
  if (mask & IBV_QP_RETRY_CNT) out->retry_count = in->retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) out->rnr_retry = in->rnr_retry;
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) out->notify_drained = in->en_sqd_async_notify != 0;
  if (mask & IBV_QP_AV) rocefs_address_from_ah(&out->path, &in->ah_attr);
}

void rocefs_qp_attr_to_verbs(const struct rocefs_qp_attr* in, struct ibv_qp_attr* out) {
  memset(out, 0, sizeof *out);
  out->qp_state = (enum ibv_qp_state)in->state;
  out->cur_qp_state = (enum ibv_qp_state)in->current_state;
  out->path_mtu = (enum ibv_mtu)in->path_mtu;
  out->path_mig_state = (enum ibv_mig_state)in->path_migration;
  out->qkey = in->qkey;
  out->rq_psn = in->receive_psn;
  out->sq_psn = in->send_psn;
  out->dest_qp_num = in->remote_qpn;
  out->qp_access_flags = in->access;
  out->pkey_index = (uint16_t)in->pkey_index;
  out->sq_draining = (uint8_t)in->send_draining;
  out->max_rd_atomic = (uint8_t)in->max_rd_atomic;
  out->max_dest_rd_atomic = (uint8_t)in->max_dest_rd_atomic;
  out->min_rnr_timer = (uint8_t)in->min_rnr_timer;
  out->port_num = (uint8_t)in->port;
  out->timeout = (uint8_t)in->timeout;
  out->retry_cnt = (uint8_t)in->retry_count;
  out->rnr_retry = (uint8_t)in->rnr_retry;
  rocefs_address_to_ah(&in->path, &out->ah_attr);
}
