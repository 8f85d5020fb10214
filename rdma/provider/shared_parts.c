#include "rdma/provider/shared_parts.h"

#include <sys/stat.h>

#include "rdma/provider/mappings.h"
#include "rdma/uapi/uapi.h"

bool rocefs_is_page_file(const struct rocefs_page_file* file) {
  struct stat status;
  return file->fd >= 0 && !fstat(file->fd, &status) && status.st_ino == file->inode &&
         status.st_dev == file->device;
}

/* The part of the pages, or of what the program has made them grow to by mremap(), that the mapping
 * shows; length 0: none. */
static struct rocefs_part part_in(const struct rocefs_shared_pages* pages,
                                  const struct rocefs_mapping* found) {
  struct rocefs_part part = {.fd = pages->file->fd, .rights = found->protection};
  uint64_t first = pages->offset, last = first + pages->length + ROCEFS_SHARED_GAP;
  uint64_t begin = found->offset, end = begin + (found->end - found->begin);
  if (found->is_private || found->inode != pages->file->inode ||
      found->device != pages->file->device)
    return part;
  if (begin > first) first = begin;
  if (end < last) last = end;
  if (first >= last) return part;
  part.address = (char*)(found->begin + (first - begin));
  part.length = last - first;
  part.offset = (off_t)first;
  return part;
}

struct rocefs_parts rocefs_each_part_between(const struct rocefs_shared_pages* pages, uintptr_t at,
                                             uintptr_t end,
                                             void (*act)(const struct rocefs_part*)) {
  struct rocefs_mapping found;
  struct rocefs_parts all_found = {0, true};
  while (at < end) {
    enum rocefs_look look = rocefs_find_mapping(at, &found);
    all_found.known = look != ROCEFS_UNKNOWN_MAPPING;
    if (look != ROCEFS_MAPPING || found.begin >= end) break;
    struct rocefs_part part = part_in(pages, &found);
    if (part.length > 0 && act) act(&part);
    all_found.bytes += part.length;
    at = found.end;
  }
  return all_found;
}

struct rocefs_parts rocefs_each_part(const struct rocefs_shared_pages* pages,
                                     void (*act)(const struct rocefs_part*)) {
  uintptr_t begin = (uintptr_t)pages->address;
  uintptr_t end = begin + pages->length;
  struct rocefs_parts here = rocefs_each_part_between(pages, begin, end, act);
  if (!here.known || here.bytes == pages->length) return here;
  struct rocefs_parts before = rocefs_each_part_between(pages, 0, begin, act);
  struct rocefs_parts behind = rocefs_each_part_between(pages, end, UINTPTR_MAX, act);
  return (struct rocefs_parts){here.bytes + before.bytes + behind.bytes,
                               before.known && behind.known};
}
