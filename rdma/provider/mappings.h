/* Mappings of this process, as the kernel knows them. */
#ifndef ROCEFS_PROVIDER_MAPPINGS_H
#define ROCEFS_PROVIDER_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rocefs_mapping {
  uintptr_t begin, end;
  uint64_t offset; /* in its file */
  dev_t device;
  ino_t inode;    /* 0: no file */
  int protection; /* PROT_READ, PROT_WRITE, PROT_EXEC */
  bool is_private;
};

enum rocefs_look {
  ROCEFS_NO_MAPPING,
  ROCEFS_MAPPING,
  ROCEFS_UNKNOWN_MAPPING, /* the kernel does not say: no descriptor is left, or no /proc */
};

/* Finds the mapping at `address`, or the first one behind it. Its cost does not depend on the
 * number of mappings from Linux 6.11 on. One thread at a time, once rocefs_keep_mappings() has been
 * called. */
enum rocefs_look rocefs_find_mapping(uintptr_t address, struct rocefs_mapping* found);

/* Keeps a descriptor for later looks, when the program may have none left, or no /proc any more. An
 * errno. */
int rocefs_keep_mappings(void);
void rocefs_drop_mappings(void);

#endif
