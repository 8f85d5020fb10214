/* Memory that a program has registered with a context: all that its copier may move. An engine
 * without the right to other memory does not get it by the copier. Any thread. */
#ifndef ROCEFS_PROVIDER_REGIONS_H
#define ROCEFS_PROVIDER_REGIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rocefs_region {
  uintptr_t begin, end;
};
struct rocefs_regions {
  pthread_mutex_t mutex;
  struct rocefs_region* sorted; /* by `begin` */
  uint32_t count, room;
  size_t longest;              /* of all that there were */
  struct rocefs_regions* next; /* of another context of this process */
};

void rocefs_init_regions(struct rocefs_regions* regions);
void rocefs_free_regions(struct rocefs_regions* regions);
/* False if there is not enough memory. */
bool rocefs_add_region(struct rocefs_regions* regions, const void* address, size_t length);
void rocefs_remove_region(struct rocefs_regions* regions, const void* address, size_t length);
/* True if all of these bytes are in regions. */
bool rocefs_is_registered(struct rocefs_regions* regions, uint64_t address, size_t length);
/* A copier has come, or goes: its thread runs at least as long as it is counted. */
void rocefs_copier_came(void);
void rocefs_copier_goes(void);
/* Copiers of this process that move regions. */
struct rocefs_copiers {
  unsigned count;
  unsigned changes; /* of their number, so far */
};
struct rocefs_copiers rocefs_copiers(void);
/* Number of regions of any context that have any of these bytes; 2 stands for more. */
unsigned rocefs_regions_in(const void* address, size_t length);

#endif
