#include "rdma/provider/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* PROCMAP_QUERY in <linux/fs.h> from Linux 6.11 on. */
struct query {
  uint64_t size, flags, address;
  uint64_t begin, end, rights, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
enum {
  kRead = 1 << 0,
  kWrite = 1 << 1,
  kExecute = 1 << 2,
  kShared = 1 << 3,
  kThisOrNext = 1 << 4,
};
#define QUERY _IOWR('f', 17, struct query)

/* True if the kernel has answered; `any` tells whether there is a mapping. */
static bool ask(int maps, uintptr_t address, struct rocefs_mapping* found, bool* any) {
  struct query query = {.size = sizeof query, .flags = kThisOrNext, .address = address};
  *any = !ioctl(maps, QUERY, &query);
  if (!*any) return errno == ENOENT;
  *found = (struct rocefs_mapping){
      .begin = query.begin,
      .end = query.end,
      .offset = query.offset,
      .device = makedev(query.major, query.minor),
      .inode = query.inode,
      .protection = (query.rights & kRead ? PROT_READ : 0) |
                    (query.rights & kWrite ? PROT_WRITE : 0) |
                    (query.rights & kExecute ? PROT_EXEC : 0),
      .is_private = !(query.rights & kShared),
  };
  return true;
}

static bool parse(const char* line, struct rocefs_mapping* found) {
  char rights[5];
  unsigned major, minor;
  unsigned long begin, end, offset, inode;
  if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &begin, &end, rights, &offset, &major, &minor,
             &inode) != 7)
    return false;
  *found = (struct rocefs_mapping){
      .begin = begin,
      .end = end,
      .offset = offset,
      .device = makedev(major, minor),
      .inode = inode,
      .protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                    (rights[2] == 'x' ? PROT_EXEC : 0),
      .is_private = rights[3] == 'p',
  };
  return true;
}

/* Reads without memory from malloc(), which may be what is looked for. A line may hold a long
 * name, of which only the beginning of the line is needed. */
static bool read_through(int maps, uintptr_t address, struct rocefs_mapping* found) {
  char text[4096];
  size_t length = 0;
  bool begins = true; /* text begins with a line */
  for (;;) {
    ssize_t got = read(maps, text + length, sizeof text - 1 - length);
    if (got <= 0) return false;
    length += (size_t)got;
    text[length] = 0;
    char *line = text, *end;
    while ((end = memchr(line, '\n', length - (size_t)(line - text)))) {
      *end = 0;
      if (begins && parse(line, found) && found->end > address) return true;
      begins = true;
      line = end + 1;
    }
    length -= (size_t)(line - text);
    memmove(text, line, length);
    if (length < sizeof text - 1) continue;
    if (begins && parse(text, found) && found->end > address) return true;
    begins = false;
    length = 0;
  }
}

bool rocefs_find_mapping(uintptr_t address, struct rocefs_mapping* found) {
  int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  bool any = false;
  if (maps < 0) return false;
  if (!ask(maps, address, found, &any)) any = read_through(maps, address, found);
  close(maps);
  return any;
}
