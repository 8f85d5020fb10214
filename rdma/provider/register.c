/* Registration, built once for each private ABI, whose number is ROCEFS_ABI: the loader finds the
 * driver by a symbol of that ABI. */
#include <dlfcn.h>

#include "rdma/provider/rocefs.h"
#include "rdma/provider/slots.h"

#define JOIN(name, number) name##number
#define REGISTER(number) JOIN(verbs_register_driver_, number)
void REGISTER(ROCEFS_ABI)(const struct verbs_device_ops* ops);

/* Version of the tables: those of rdma-core 62 differ from those of 59, under the same number. */
static unsigned version(void) {
  if (ROCEFS_ABI == 59 && dlsym(RTLD_DEFAULT, "ibv_query_port_speed")) return 62;
  return ROCEFS_ABI;
}

__attribute__((constructor)) static void register_driver(void) {
  rocefs_choose_slots(version());
  REGISTER(ROCEFS_ABI)(&rocefs_device_ops);
}
