/* The tables of verbs, and what else depends on the version of libibverbs. */
#ifndef ROCEFS_PROVIDER_SLOTS_H
#define ROCEFS_PROVIDER_SLOTS_H

#include "rdma/provider/abi.h"

/* Once, before anything else: `version` is the first rdma-core with the tables that this libibverbs
 * has: 34 (as its ABI was called then), 57, 59, 62 or 64. */
void rocefs_choose_slots(unsigned version);
/* The table for verbs_set_ops(). */
const verbs_slot* rocefs_slots(void);

/* Offset in struct verbs_context at which libibverbs believes that one begins whose end is that of
 * the headers' type: the type grows at its front. At least -ROCEFS_MAX_GROWTH. */
ptrdiff_t rocefs_context_shift(void);

#endif
