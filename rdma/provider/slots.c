#include "rdma/provider/slots.h"

#include "rdma/provider/rocefs.h"

enum { kMaxSlots = 83 };

/* Verbs in alphabetic order: libibverbs calls them by position among those of its version. */
#define SERVED_SINCE(since, verb) \
  { since, (verbs_slot)rocefs_##verb }
#define SERVED(verb) SERVED_SINCE(34, verb)
#define NOT_SERVED(since, verb) \
  { since, NULL }
static const struct {
  unsigned since;
  verbs_slot serve;
} kVerbs[] = {
    SERVED(advise_mr),
    NOT_SERVED(64, alloc_buf),
    SERVED(alloc_dm),
    NOT_SERVED(59, alloc_dmah),
    SERVED(alloc_mw),
    NOT_SERVED(34, alloc_null_mr),
    SERVED(alloc_parent_domain),
    SERVED(alloc_pd),
    SERVED(alloc_td),
    SERVED(async_event),
    NOT_SERVED(34, attach_counters_point_flow),
    SERVED(attach_mcast),
    SERVED(bind_mw),
    SERVED(close_xrcd),
    SERVED(cq_event),
    SERVED(create_ah),
    NOT_SERVED(34, create_counters),
    SERVED(create_cq),
    SERVED(create_cq_ex),
    NOT_SERVED(34, create_flow),
    NOT_SERVED(34, create_flow_action_esp),
    SERVED(create_qp),
    SERVED(create_qp_ex),
    NOT_SERVED(34, create_rwq_ind_table),
    SERVED(create_srq),
    SERVED(create_srq_ex),
    NOT_SERVED(34, create_wq),
    NOT_SERVED(59, dealloc_dmah),
    SERVED(dealloc_mw),
    SERVED(dealloc_pd),
    SERVED(dealloc_td),
    SERVED(dereg_mr),
    SERVED(destroy_ah),
    NOT_SERVED(34, destroy_counters),
    SERVED(destroy_cq),
    NOT_SERVED(34, destroy_flow),
    NOT_SERVED(34, destroy_flow_action),
    SERVED(destroy_qp),
    NOT_SERVED(34, destroy_rwq_ind_table),
    SERVED(destroy_srq),
    NOT_SERVED(34, destroy_wq),
    SERVED(detach_mcast),
    NOT_SERVED(62, dm_export_dmabuf_fd),
    NOT_SERVED(64, free_buf),
    SERVED(free_context),
    SERVED(free_dm),
    SERVED(get_srq_num),
    NOT_SERVED(34, import_dm),
    NOT_SERVED(34, import_mr),
    NOT_SERVED(34, import_pd),
    NOT_SERVED(34, modify_cq),
    NOT_SERVED(34, modify_flow_action_esp),
    SERVED(modify_qp),
    NOT_SERVED(34, modify_qp_rate_limit),
    SERVED(modify_srq),
    NOT_SERVED(34, modify_wq),
    SERVED(open_qp),
    SERVED(open_xrcd),
    SERVED(poll_cq),
    SERVED(post_recv),
    SERVED(post_send),
    NOT_SERVED(34, post_srq_ops),
    SERVED(post_srq_recv),
    SERVED(query_device_ex),
    NOT_SERVED(34, query_ece),
    SERVED(query_port),
    SERVED_SINCE(62, query_port_speed),
    SERVED(query_qp),
    NOT_SERVED(34, query_qp_data_in_order),
    SERVED(query_rt_values),
    SERVED(query_srq),
    NOT_SERVED(34, read_counters),
    SERVED(reg_dm_mr),
    NOT_SERVED(34, reg_dmabuf_mr),
    SERVED(reg_mr),
    NOT_SERVED(59, reg_mr_ex),
    SERVED(req_notify_cq),
    SERVED(rereg_mr),
    SERVED(resize_cq),
    NOT_SERVED(34, set_ece),
    NOT_SERVED(34, unimport_dm),
    NOT_SERVED(34, unimport_mr),
    NOT_SERVED(34, unimport_pd),
};
_Static_assert(sizeof kVerbs / sizeof kVerbs[0] == kMaxSlots, "rdma-core 64 has 83 verbs");

/* Number of verbs by which the front of verbs_context has grown since ABI 34. */
static const struct { unsigned since, verbs; } kGrowth[] = {{59, 3}, {62, 4}, {64, 6}};

static verbs_slot slots[kMaxSlots];
static unsigned grown;

void rocefs_choose_slots(unsigned version) {
  unsigned count = 0;
  for (unsigned i = 0; i < kMaxSlots; ++i)
    if (kVerbs[i].since <= version) slots[count++] = kVerbs[i].serve;
  for (unsigned i = 0; i < sizeof kGrowth / sizeof kGrowth[0]; ++i)
    if (kGrowth[i].since <= version) grown = kGrowth[i].verbs;
}

const verbs_slot* rocefs_slots(void) {
  return slots;
}

/* Beginning under ABI 34: query_port(); the headers may be newer. */
ptrdiff_t rocefs_context_shift(void) {
  return (ptrdiff_t)offsetof(struct verbs_context, query_port) - (ptrdiff_t)(grown * sizeof(void*));
}
