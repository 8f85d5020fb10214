/* The table of rdma/uapi/operations.h, by ibv_wr_opcode. */
#include "rdma/provider/rocefs.h"

static const struct operation {
  uint16_t services; /* rocefs_services */
  uint16_t traits;   /* rocefs_operation_traits */
  uint16_t builder;  /* ibv_qp_create_send_ops_flags */
  uint64_t capability;
} kOperations[] = {
#define ROCEFS_ROW(name, NAME, number, services, packets, traits, completion, builder, capability) \
  [number] = {services, traits, builder, capability},
    ROCEFS_OPERATIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
};
enum { kCount = sizeof kOperations / sizeof kOperations[0] };

#define ROCEFS_ROW(name, NAME, number) | 1u << (number)
static const uint32_t kCompletions = 0 ROCEFS_COMPLETIONS(ROCEFS_ROW);
#undef ROCEFS_ROW

#define ROCEFS_ROW(name, NAME, number, services, packets, traits, completion, builder, capability) \
  _Static_assert(number == IBV_WR_##NAME && (builder) == IBV_QP_EX_WITH_##NAME, "as in verbs.h");
ROCEFS_OPERATIONS(ROCEFS_ROW)
#undef ROCEFS_ROW
#define ROCEFS_ROW(name, NAME, number) _Static_assert(number == IBV_WC_##NAME, "as in verbs.h");
ROCEFS_COMPLETIONS(ROCEFS_ROW)
#undef ROCEFS_ROW

bool rocefs_has_operation(enum ibv_qp_type type, unsigned opcode) {
  return opcode < kCount && type < 16 && (kOperations[opcode].services >> type & 1);
}

bool rocefs_operation_has(unsigned opcode, unsigned trait) {
  return opcode < kCount && (kOperations[opcode].traits & trait);
}

uint64_t rocefs_builders_of(enum ibv_qp_type type) {
  uint64_t all = 0;
  for (unsigned i = 0; i < kCount; ++i)
    if (rocefs_has_operation(type, i)) all |= kOperations[i].builder;
  return all;
}

uint64_t rocefs_capabilities(void) {
  uint64_t all = 0;
  for (unsigned i = 0; i < kCount; ++i) all |= kOperations[i].capability;
  return all;
}

bool rocefs_completes_with(uint32_t opcode) {
  opcode &= ~(uint32_t)ROCEFS_WC_RECV;
  return opcode < 32 && (kCompletions >> opcode & 1);
}
