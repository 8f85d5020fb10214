#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rdma/provider/rocefs.h"

enum {
  kAllOdp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
            IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
  kClockKhz = 1000 * 1000, /* completions are stamped in nanoseconds */
  kLocalAckDelay = 15,     /* 4.096 us * 2^15 = 134 ms, as Soft-RoCE has */
};

_Static_assert(ROCEFS_CAPABILITIES == (IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                                       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC),
               "the engine's header has numbers of verbs.h");

static void fill_device_attr(struct ibv_device_attr* out, const struct rocefs_device_attr* in) {
  snprintf(out->fw_ver, sizeof out->fw_ver, "%.*s", (int)sizeof in->fw_ver - 1, in->fw_ver);
  out->node_guid = htobe64(in->node_guid);
  out->sys_image_guid = out->node_guid;
  out->max_mr_size = in->max_mr_size;
  out->page_size_cap = 0xfffff000; /* 4 KiB and larger */
  out->vendor_id = in->vendor_id;
  out->vendor_part_id = in->vendor_part_id;
  out->hw_ver = in->hw_ver;
  out->max_qp = (int)in->max_qp;
  out->max_qp_wr = (int)in->max_qp_wr;
  out->device_cap_flags = ROCEFS_CAPABILITIES | (unsigned)rocefs_capabilities();
  out->max_sge = (int)in->max_sge;
  out->max_sge_rd = (int)in->max_sge;
  out->max_cq = (int)in->max_cq;
  out->max_cqe = (int)in->max_cqe;
  out->max_mr = (int)in->max_mr;
  out->max_pd = (int)in->max_pd;
  out->max_qp_rd_atom = (int)in->max_rd_atomic;
  out->max_qp_init_rd_atom = (int)in->max_rd_atomic;
  out->max_res_rd_atom = (int)(in->max_qp * in->max_rd_atomic);
  out->atomic_cap = IBV_ATOMIC_HCA;
  out->max_mw = (int)in->max_mw;
  out->max_mcast_grp = out->max_mcast_qp_attach = (int)in->max_mcast_attach;
  out->max_total_mcast_qp_attach = (int)in->max_mcast_attach;
  out->max_ah = (int)in->max_ah;
  out->max_srq = (int)in->max_srq;
  out->max_srq_wr = (int)in->max_srq_wr;
  out->max_srq_sge = (int)in->max_sge;
  out->max_pkeys = 1;
  out->local_ca_ack_delay = kLocalAckDelay;
  out->phys_port_cnt = (uint8_t)in->ports;
}

int rocefs_query_device_ex(struct ibv_context* context,
                           const struct ibv_query_device_ex_input* input,
                           struct ibv_device_attr_ex* attr, size_t size) {
  struct ibv_device_attr_ex all;
  if (input && input->comp_mask) return EINVAL;
  memset(&all, 0, sizeof all);
  fill_device_attr(&all.orig_attr, &rocefs_context_of(context)->attr);
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags | rocefs_capabilities();
  all.odp_caps = (struct ibv_odp_caps){
      .general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
      .per_transport_caps = {
          .rc_odp_caps = kAllOdp,
          .uc_odp_caps = kAllOdp & ~(IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC),
          .ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV}};
  all.xrc_odp_caps = kAllOdp & ~IBV_ODP_SUPPORT_RECV;
  all.max_dm_size = ROCEFS_MAX_DM;
  all.completion_timestamp_mask = UINT64_MAX;
  all.hca_core_clock = kClockKhz;
  all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
  /* Copies at most `size` bytes: other headers have fewer members or more; ibv_query_device() has
   * only the first. */
  memset(attr, 0, size);
  memcpy(attr, &all, size < sizeof all ? size : sizeof all);
  return 0;
}

int rocefs_query_rt_values(struct ibv_context* context, struct ibv_values_ex* values) {
  (void)context;
  if (values->comp_mask != IBV_VALUES_MASK_RAW_CLOCK) return EINVAL;
  return clock_gettime(CLOCK_MONOTONIC, &values->raw_clock) ? errno : 0;
}

int rocefs_query_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attr) {
  struct rocefs_request request = {.op = ROCEFS_OP_QUERY_PORT, .u.handle = port};
  struct rocefs_answer answer;
  int error = rocefs_request(rocefs_context_of(context), &request, &answer);
  if (error) return error;
  const struct rocefs_port_attr* in = &answer.u.port;
  if (!rocefs_port_can_be(in)) {
    rocefs_distrust(rocefs_context_of(context), "a port that cannot be");
    return EPROTO;
  }
  attr->state = (enum ibv_port_state)in->state;
  attr->max_mtu = (enum ibv_mtu)in->max_mtu;
  attr->active_mtu = (enum ibv_mtu)in->active_mtu;
  attr->gid_tbl_len = (int)in->gid_table_len;
  attr->port_cap_flags = in->capabilities;
  attr->max_msg_sz = in->max_message;
  attr->pkey_tbl_len = (uint16_t)in->pkey_table_len;
  attr->lid = (uint16_t)in->lid;
  attr->sm_lid = (uint16_t)in->sm_lid;
  attr->max_vl_num = 1;
  attr->active_width = (uint8_t)in->active_width;
  attr->active_speed = (uint8_t)in->active_speed;
  attr->phys_state = (uint8_t)in->phys_state;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

/* Width is a bit, and so is the speed of a lane: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR. */
int rocefs_query_port_speed(struct ibv_context* context, uint32_t port, uint64_t* speed) {
  static const uint8_t kWidths[] = {1, 4, 8, 12, 2};
  static const uint16_t kLanes[] = {25, 50, 100, 100, 140, 250, 500, 1000};
  enum { kWidthCount = sizeof kWidths, kLaneCount = sizeof kLanes / sizeof kLanes[0] };
  struct ibv_port_attr attr = {.state = IBV_PORT_NOP};
  if (port == 0 || port > UINT8_MAX) return EINVAL;
  int error = rocefs_query_port(context, (uint8_t)port, &attr);
  if (error) return error;
  unsigned width = (unsigned)__builtin_ffs(attr.active_width);
  unsigned lane = (unsigned)__builtin_ffs(attr.active_speed);
  if (width == 0 || width > kWidthCount || lane == 0 || lane > kLaneCount) return EINVAL;
  *speed = (uint64_t)kWidths[width - 1] * kLanes[lane - 1];
  return 0;
}
