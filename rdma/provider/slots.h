/* Tables of verbs, and other differences between versions of libibverbs. */
#ifndef ROCEFS_PROVIDER_SLOTS_H
#define ROCEFS_PROVIDER_SLOTS_H

#include "rdma/provider/abi.h"

/* Called once, before all else: `version` is the first rdma-core with the tables of this
 * libibverbs: 34 (the name of its ABI then), 57, 59, 62 or 64. */
void rocefs_choose_slots(unsigned version);
/* Table for verbs_set_ops(). */
const verbs_slot* rocefs_slots(void);

/* Offset in struct verbs_context at which libibverbs' own type begins, which may be larger at its
 * front than that of the headers. At least -ROCEFS_MAX_GROWTH. */
ptrdiff_t rocefs_context_shift(void);

#endif
