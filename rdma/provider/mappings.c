#include "rdma/provider/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rdma/provider/descriptors.h"

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
static enum rocefs_look read_through(int maps, uintptr_t address, struct rocefs_mapping* found) {
  char text[4096];
  size_t length = 0;
  bool begins = true; /* text begins with a line */
  if (lseek(maps, 0, SEEK_SET)) return ROCEFS_UNKNOWN_MAPPING;
  for (;;) {
    ssize_t got = read(maps, text + length, sizeof text - 1 - length);
    if (got <= 0) return got ? ROCEFS_UNKNOWN_MAPPING : ROCEFS_NO_MAPPING;
    length += (size_t)got;
    text[length] = 0;
    char *line = text, *end;
    while ((end = memchr(line, '\n', length - (size_t)(line - text)))) {
      *end = 0;
      if (begins && parse(line, found) && found->end > address) return ROCEFS_MAPPING;
      begins = true;
      line = end + 1;
    }
    length -= (size_t)(line - text);
    memmove(text, line, length);
    if (length < sizeof text - 1) continue;
    if (begins && parse(text, found) && found->end > address) return ROCEFS_MAPPING;
    begins = false;
    length = 0;
  }
}

static int open_maps(void) {
  return open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

/* A descriptor of this process's maps: a program may have closed what it does not know, and a child
 * of fork() has that of its parent. */
static struct {
  int fd;
  pid_t process;
  dev_t device;
  ino_t inode;
} kept = {.fd = -1};

static bool is_open(void) {
  struct stat status;
  return kept.fd >= 0 && !fstat(kept.fd, &status) && status.st_dev == kept.device &&
         status.st_ino == kept.inode;
}
static bool is_kept(void) {
  return kept.process == getpid() && is_open();
}

int rocefs_keep_mappings(void) {
  struct stat status;
  if (is_kept()) return 0;
  rocefs_drop_mappings();
  int fd = rocefs_raise(open_maps());
  if (fd < 0) return errno;
  if (fstat(fd, &status)) {
    int error = errno;
    close(fd);
    return error;
  }
  kept.fd = fd;
  kept.process = getpid();
  kept.device = status.st_dev;
  kept.inode = status.st_ino;
  return 0;
}

void rocefs_drop_mappings(void) {
  if (is_open()) close(kept.fd);
  kept.fd = -1;
}

enum rocefs_look rocefs_find_mapping(uintptr_t address, struct rocefs_mapping* found) {
  bool any = false, keeps = is_kept();
  int maps = keeps ? kept.fd : open_maps();
  if (maps < 0) return ROCEFS_UNKNOWN_MAPPING;
  enum rocefs_look look;
  if (ask(maps, address, found, &any))
    look = any ? ROCEFS_MAPPING : ROCEFS_NO_MAPPING;
  else
    look = read_through(maps, address, found);
  if (!keeps) close(maps);
  return look;
}
