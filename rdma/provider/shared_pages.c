#include "rdma/provider/shared_pages.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rdma/uapi/peer.h"

struct mapping {
  uintptr_t start, end;
  char rights[5];
  unsigned major, minor;
  unsigned long inode;
};

/* True if `fits` holds for all mappings of these bytes, without a gap between them. */
static bool all_mapped(const void* address, size_t length,
                       bool (*fits)(const struct mapping*, const struct rocefs_shared_pages*),
                       const struct rocefs_shared_pages* pages) {
  uintptr_t at = (uintptr_t)address, end = at + length;
  FILE* file = fopen("/proc/self/maps", "re");
  if (!file) return false;
  char line[512];
  bool whole = true; /* at the beginning of a line */
  while (at < end && fgets(line, sizeof line, file)) {
    bool begins = whole;
    whole = strchr(line, '\n');
    struct mapping found;
    if (!begins || sscanf(line, "%lx-%lx %4s %*x %x:%x %lu", &found.start, &found.end, found.rights,
                          &found.major, &found.minor, &found.inode) != 6) {
      continue;
    }
    if (found.end <= at) continue;
    if (found.start > at || !fits(&found, pages)) break;
    at = found.end;
  }
  fclose(file);
  return at >= end;
}

static bool is_private(const struct mapping* found, const struct rocefs_shared_pages* unused) {
  (void)unused;
  return found->inode == 0 && found->rights[0] == 'r' && found->rights[1] == 'w' &&
         found->rights[3] == 'p';
}

static bool is_ours(const struct mapping* found, const struct rocefs_shared_pages* pages) {
  return found->inode == pages->inode && found->major == major(pages->device) &&
         found->minor == minor(pages->device);
}

bool rocefs_can_share(const void* address, size_t length) {
  const char* wanted = getenv("ROCEFS_SHARE_REGIONS");
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return wanted && strcmp(wanted, "1") == 0 && length > 0 && (uintptr_t)address % page == 0 &&
         length % page == 0 && all_mapped(address, length, is_private, NULL);
}

/* Replaces pages by new ones with the same bytes, atomically. */
static int exchange(void* address, size_t length, int flags, int fd) {
  void* pages = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (pages == MAP_FAILED) return errno;
  memcpy(pages, address, length);
  if (mremap(pages, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED) return 0;
  int error = errno;
  munmap(pages, length);
  return error;
}

int rocefs_share_pages(struct rocefs_shared_pages* pages, void* address, size_t length, int fd) {
  struct stat status;
  int error = fd < 0 ? EMFILE : rocefs_check_memory(fd, length);
  if (!error) error = fstat(fd, &status) ? errno : exchange(address, length, MAP_SHARED, fd);
  if (fd >= 0) close(fd);
  if (!error) *pages = (struct rocefs_shared_pages){address, length, status.st_dev, status.st_ino};
  return error;
}

void rocefs_unshare_pages(struct rocefs_shared_pages* pages) {
  if (pages->address && all_mapped(pages->address, pages->length, is_ours, pages))
    exchange(pages->address, pages->length, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  pages->address = NULL;
}
