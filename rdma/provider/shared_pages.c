#include "rdma/provider/shared_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/provider/mappings.h"
#include "rdma/uapi/peer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { kReadWrite = PROT_READ | PROT_WRITE };
/* Bytes exchanged at a time: a region needs no second time its own memory. */
static const size_t kPiece = 2 * 1024 * 1024;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rocefs_shared_pages* all; /* protected by mutex */

/* ---- When pages can be shared ---- */

/* A number in /proc/self/status; 0 if it is not there. */
static unsigned long number_of(const char* status, const char* name) {
  const char* line = strstr(status, name);
  return line ? strtoul(line + strlen(name), NULL, 10) : 0;
}

/* True if nothing but the calling thread, and the helpers, writes to memory of this process. The
 * kernel writes to pages that it has pinned, for another device or io_uring; locked ones were to
 * stay. */
static bool is_alone(unsigned helpers) {
  char text[8192];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (length <= 0) return false;
  text[length] = 0;
  return number_of(text, "\nThreads:") == 1 + helpers && number_of(text, "\nVmPin:") == 0 &&
         number_of(text, "\nVmLck:") == 0;
}

/* True for private anonymous memory, but not for the stack that is in use. */
static bool is_exchangeable(const struct rocefs_mapping* found) {
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  return found->inode == 0 && found->protection == kReadWrite && found->is_private &&
         !(frame >= found->begin && frame < found->end);
}

static bool all_exchangeable(uintptr_t at, uintptr_t end) {
  struct rocefs_mapping found;
  while (at < end) {
    if (!rocefs_find_mapping(at, &found) || found.begin > at || !is_exchangeable(&found))
      return false;
    at = found.end;
  }
  return true;
}

bool rocefs_can_share(const void* address, size_t length, unsigned helpers) {
  const char* wanted = getenv("ROCEFS_SHARE_REGIONS");
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = (uintptr_t)address;
  if (length == 0 || begin % page || length % page || length > UINTPTR_MAX - begin) return false;
  if (wanted && !strcmp(wanted, "0")) return false;
  bool answers = wanted && !strcmp(wanted, "1");
  return (answers || is_alone(helpers)) && all_exchangeable(begin, begin + length);
}

/* ---- Exchange ---- */

static bool is_ours(const struct rocefs_shared_pages* pages, const struct rocefs_mapping* found) {
  uint64_t at = found->begin - (uintptr_t)pages->address + pages->offset; /* modulo 2^64 */
  return !found->is_private && found->inode == pages->file->inode &&
         found->device == pages->file->device && found->offset == at;
}

/* Calls `act` for each part of the pages that is still mapped as it was; parts end where the
 * program has mapped something else, or given other rights. */
static void each_part(struct rocefs_shared_pages* pages,
                      void (*act)(struct rocefs_shared_pages*, char*, size_t, int)) {
  uintptr_t at = (uintptr_t)pages->address, end = at + pages->length;
  struct rocefs_mapping found;
  while (at < end && rocefs_find_mapping(at, &found) && found.begin < end) {
    /* Neighbours in the memfd may share a mapping. */
    bool ours = is_ours(pages, &found);
    uintptr_t begin = found.begin > at ? found.begin : at;
    at = found.end < end ? found.end : end;
    if (ours) act(pages, (char*)begin, at - begin, found.protection);
  }
}

static off_t offset_of(const struct rocefs_shared_pages* pages, const char* at) {
  return (off_t)(pages->offset + (uint64_t)(at - pages->address));
}

/* Gives memory of the memfd back. What maps its pages privately and has none of its own reads as
 * zero from now on. */
static void discard(struct rocefs_shared_pages* pages, const char* at, size_t length) {
  fallocate(pages->file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(pages, at),
            (off_t)length);
}

/* Maps the same pages privately, then copies each on a write that changes nothing. */
static void make_private(struct rocefs_shared_pages* pages, char* at, size_t length, int rights) {
  int fd = pages->file->fd;
  if (mmap(at, length, kReadWrite, MAP_PRIVATE | MAP_FIXED, fd, offset_of(pages, at)) == MAP_FAILED)
    return;
  bool own = !madvise(at, length, MADV_POPULATE_WRITE);
  if (rights != kReadWrite) mprotect(at, length, rights);
  if (own) discard(pages, at, length);
}

/* Replaces pages by new ones with the same bytes. `fd`: -1 for anonymous ones. */
static int exchange(char* address, size_t length, int flags, int fd, off_t offset) {
  for (size_t done = 0; done < length;) {
    size_t some = length - done < kPiece ? length - done : kPiece;
    char* pages = mmap(NULL, some, kReadWrite, flags, fd, fd < 0 ? 0 : offset + (off_t)done);
    if (pages == MAP_FAILED) return errno;
    memcpy(pages, address + done, some);
    if (mremap(pages, some, some, MREMAP_MAYMOVE | MREMAP_FIXED, address + done) == MAP_FAILED) {
      int error = errno;
      munmap(pages, some);
      return error;
    }
    done += some;
  }
  return 0;
}

static void make_anonymous(struct rocefs_shared_pages* pages, char* at, size_t length, int rights) {
  bool readable = rights & PROT_READ || !mprotect(at, length, PROT_READ);
  if (!readable || exchange(at, length, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) return;
  if (rights != kReadWrite) mprotect(at, length, rights);
  discard(pages, at, length);
}

static void give_back(struct rocefs_shared_pages* pages, unsigned helpers) {
  sigset_t every, before;
  sigfillset(&every); /* a handler could write to the pages */
  pthread_sigmask(SIG_SETMASK, &every, &before);
  if (is_alone(helpers)) each_part(pages, make_anonymous);
  each_part(pages, make_private); /* those that are still shared */
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int take(struct rocefs_shared_pages* pages) {
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  int error =
      exchange(pages->address, pages->length, MAP_SHARED, pages->file->fd, (off_t)pages->offset);
  if (error) each_part(pages, make_private);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

/* ---- fork() ---- */

static void copy_part(struct rocefs_shared_pages* pages, char* at, size_t length, int rights) {
  if (rights & PROT_READ) memcpy(pages->copy + (at - pages->address), at, length);
}

static void before_fork(void) {
  pthread_mutex_lock(&mutex);
  for (struct rocefs_shared_pages* pages = all; pages; pages = pages->next) {
    pages->copy =
        mmap(NULL, pages->length, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages->copy == MAP_FAILED) pages->copy = NULL;
    if (pages->copy) each_part(pages, copy_part);
  }
}

static void in_parent(void) {
  for (struct rocefs_shared_pages* pages = all; pages; pages = pages->next)
    if (pages->copy) munmap(pages->copy, pages->length);
  pthread_mutex_unlock(&mutex);
}

/* Without memory for a copy the child sees what its parent writes later, but writes to pages of its
 * own. */
static void give_copy(struct rocefs_shared_pages* pages, char* at, size_t length, int rights) {
  if (pages->copy)
    mremap(pages->copy + (at - pages->address), length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  else
    mmap(at, length, kReadWrite, MAP_PRIVATE | MAP_FIXED, pages->file->fd, offset_of(pages, at));
  if (rights != kReadWrite) mprotect(at, length, rights);
}

static void in_child(void) {
  while (all) {
    struct rocefs_shared_pages* pages = all;
    all = pages->next;
    each_part(pages, give_copy);
    if (pages->copy) munmap(pages->copy, pages->length); /* parts that were not given */
    pages->address = NULL;
  }
  pthread_mutex_unlock(&mutex);
}

static int watch_forks(void) {
  static bool watched; /* protected by mutex */
  int error = watched ? 0 : pthread_atfork(before_fork, in_parent, in_child);
  watched |= !error;
  return error;
}

/* ---- Regions ---- */

/* Takes the engine's memfd; the engine passes the same one each time. */
static int take_file(struct rocefs_page_file* file, int fd) {
  struct stat status;
  if (fstat(fd, &status)) return errno;
  if (file->fd >= 0) {
    bool same = status.st_ino == file->inode && status.st_dev == file->device;
    return same ? 0 : EPROTO;
  }
  file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (file->fd < 0) return errno;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  return 0;
}

static int add(struct rocefs_shared_pages* pages) {
  int error = watch_forks();
  if (!error) error = take(pages);
  if (error) return error;
  pages->next = all;
  all = pages;
  ++pages->file->count;
  return 0;
}

int rocefs_share_pages(struct rocefs_shared_pages* pages, struct rocefs_page_file* file,
                       void* address, size_t length, int fd, uint64_t offset) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  bool fits = offset % page == 0 && offset <= INT64_MAX - length;
  int error = fd < 0 ? EMFILE : fits ? rocefs_check_memory(fd, offset + length) : EPROTO;
  *pages = (struct rocefs_shared_pages){address, length, offset, file, NULL, NULL};
  pthread_mutex_lock(&mutex);
  if (!error) error = take_file(file, fd);
  if (!error) error = add(pages);
  pthread_mutex_unlock(&mutex);
  if (error) pages->address = NULL;
  if (fd >= 0) close(fd);
  return error;
}

/* Takes the first entry off the list; the mutex is held. */
static void remove_first(struct rocefs_shared_pages** link, unsigned helpers) {
  struct rocefs_shared_pages* pages = *link;
  *link = pages->next;
  --pages->file->count;
  give_back(pages, helpers);
  pages->address = NULL;
}

void rocefs_unshare_pages(struct rocefs_shared_pages* pages, unsigned helpers) {
  if (!pages->address) return;
  pthread_mutex_lock(&mutex);
  struct rocefs_shared_pages** link = &all;
  while (*link && *link != pages) link = &(*link)->next;
  if (*link) remove_first(link, helpers);
  pthread_mutex_unlock(&mutex);
}

void rocefs_close_page_file(struct rocefs_page_file* file) {
  pthread_mutex_lock(&mutex);
  for (struct rocefs_shared_pages** link = &all; *link;) {
    if ((*link)->file == file)
      remove_first(link, 0);
    else
      link = &(*link)->next;
  }
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
  pthread_mutex_unlock(&mutex);
}
