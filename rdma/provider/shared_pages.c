#include "rdma/provider/shared_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/provider/mappings.h"
#include "rdma/provider/regions.h"
#include "rdma/uapi/peer.h"
#include "rdma/uapi/uapi.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { kReadWrite = PROT_READ | PROT_WRITE };
/* Bytes exchanged at a time: a region needs no second time its own memory. */
static const size_t kPiece = 2 * 1024 * 1024;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rocefs_shared_pages* all; /* protected by mutex */

/* Blocks all signals while the lock is held: a handler could write to the pages, or fork. */
static void lock(sigset_t* before) {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, before);
  pthread_mutex_lock(&mutex);
}

static void unlock(const sigset_t* before) {
  pthread_mutex_unlock(&mutex);
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- When pages can be shared ---- */

/* A number in /proc/self/status; 0 if it is not there. */
static unsigned long number_of(const char* status, const char* name) {
  const char* line = strstr(status, name);
  return line ? strtoul(line + strlen(name), NULL, 10) : 0;
}

static bool read_status(char* text, size_t size) {
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = 0;
  return length > 0;
}

/* True if nothing but the calling thread writes to these bytes. The kernel writes to pages that it
 * has pinned, for another device or io_uring; locked ones were to stay. Copiers write to regions
 * alone. */
static bool is_alone(const void* address, size_t length) {
  char text[8192];
  unsigned copiers = 0;
  if (rocefs_any_region_in(address, length, &copiers) || !read_status(text, sizeof text))
    return false;
  return number_of(text, "\nThreads:") == 1 + copiers && number_of(text, "\nVmPin:") == 0 &&
         number_of(text, "\nVmLck:") == 0;
}

static bool has_locked_pages(void) {
  char text[8192];
  return read_status(text, sizeof text) && number_of(text, "\nVmLck:") > 0;
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

bool rocefs_can_share(const void* address, size_t length) {
  const char* wanted = getenv("ROCEFS_SHARE_REGIONS");
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = (uintptr_t)address;
  if (length == 0 || begin % page || length % page || length > UINTPTR_MAX - begin) return false;
  if (wanted && !strcmp(wanted, "0")) return false;
  bool answers = wanted && !strcmp(wanted, "1") && !rocefs_any_region_in(address, length, NULL);
  return (answers || is_alone(address, length)) && all_exchangeable(begin, begin + length);
}

/* ---- Parts ---- */

/* Part of shared pages in one mapping. */
struct part {
  char* address;
  size_t length;
  off_t offset;
  int fd;
  int rights;
};

/* True if the descriptor still is the memfd: a program may have closed what it does not know. */
static bool is_open(const struct rocefs_page_file* file) {
  struct stat status;
  return file->fd >= 0 && !fstat(file->fd, &status) && status.st_ino == file->inode &&
         status.st_dev == file->device;
}

/* The part of the pages, or of what the program has made them grow to by mremap(), that the mapping
 * shows; length 0: none. */
static struct part part_in(const struct rocefs_shared_pages* pages,
                           const struct rocefs_mapping* found) {
  struct part part = {.fd = pages->file->fd, .rights = found->protection};
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

/* Calls `act`, if not NULL, for each part between two addresses; returns the number of bytes. */
static size_t each_part_between(const struct rocefs_shared_pages* pages, uintptr_t at,
                                uintptr_t end, void (*act)(const struct part*)) {
  struct rocefs_mapping found;
  size_t bytes = 0;
  while (at < end && rocefs_find_mapping(at, &found) && found.begin < end) {
    struct part part = part_in(pages, &found);
    if (part.length > 0 && act) act(&part);
    bytes += part.length;
    at = found.end;
  }
  return bytes;
}

/* Calls `act` for each part, where it is or anywhere: the program may have moved it. False if it
 * has unmapped or moved some. */
static bool each_part(const struct rocefs_shared_pages* pages, void (*act)(const struct part*)) {
  uintptr_t begin = (uintptr_t)pages->address;
  uintptr_t end = begin + pages->length;
  if (each_part_between(pages, begin, end, act) == pages->length) return true;
  each_part_between(pages, 0, begin, act);
  each_part_between(pages, end, UINTPTR_MAX, act);
  return false;
}

/* ---- Exchange ---- */

static bool put_in_place(char* pages, size_t length, char* address) {
  if (mremap(pages, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED)
    return true;
  int error = errno;
  munmap(pages, length);
  errno = error;
  return false;
}

/* Makes pages a private mapping's own. A write that changes nothing does it: other threads may
 * write at the same time. */
static bool copy_on_write(char* address, size_t length) {
  if (!madvise(address, length, MADV_POPULATE_WRITE)) return true;
  if (errno != EINVAL) return false;
  size_t page = (size_t)sysconf(_SC_PAGESIZE); /* before Linux 5.14 */
  for (char* at = address; at < address + length; at += page) {
    char byte = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(at, &byte, byte, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  return true;
}

/* Gives memory of the memfd back. What maps its pages privately and has none of its own reads as
 * zero from now on, as anonymous memory does after MADV_DONTNEED. */
static void discard(int fd, off_t offset, size_t length) {
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)length);
}

/* Maps the same pages privately. The mapping is made elsewhere: one that fails in place may take
 * the old one with it. */
static bool make_private(const struct part* part) {
  char* pages = mmap(NULL, part->length, part->rights, MAP_PRIVATE, part->fd, part->offset);
  if (pages == MAP_FAILED || !put_in_place(pages, part->length, part->address)) return false;
  if (copy_on_write(part->address, part->length)) discard(part->fd, part->offset, part->length);
  return true;
}

static bool read_pages(char* into, const struct part* part) {
  for (size_t done = 0; done < part->length;) {
    ssize_t got = pread(part->fd, into + done, part->length - done, part->offset + (off_t)done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* Replaces the pages by a copy. For those that nobody can write to. */
static bool replace_by_copy(const struct part* part) {
  char* pages = mmap(NULL, part->length, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  bool well = read_pages(pages, part) && !mprotect(pages, part->length, part->rights);
  if (!well) munmap(pages, part->length);
  if (!well || !put_in_place(pages, part->length, part->address)) return false;
  discard(part->fd, part->offset, part->length);
  return true;
}

/* Makes the pages what they were before they were shared. For a thread that is alone: it would see
 * them change. The kernel joins the mapping with its neighbours, as it would not join one that was
 * moved. */
static bool make_anonymous(const struct part* part) {
  const int kHere = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
  char* at = mmap(part->address, part->length, kReadWrite, kHere, -1, 0);
  if (at == MAP_FAILED || !read_pages(at, part)) {
    mmap(part->address, part->length, part->rights, MAP_FIXED | MAP_SHARED, part->fd, part->offset);
    madvise(part->address, part->length, MADV_DONTFORK);
    return false;
  }
  if (part->rights != kReadWrite) mprotect(at, part->length, part->rights);
  discard(part->fd, part->offset, part->length);
  return true;
}

static void in_pieces(const struct part* whole, bool (*make)(const struct part*)) {
  for (size_t done = 0; done < whole->length; done += kPiece) {
    struct part piece = *whole;
    piece.address += done;
    piece.offset += (off_t)done;
    piece.length = whole->length - done < kPiece ? whole->length - done : kPiece;
    if (!make(&piece)) return;
  }
}

static void give_back_alone(const struct part* part) {
  in_pieces(part, make_anonymous);
}

static void give_back_beside(const struct part* part) {
  in_pieces(part, part->rights & PROT_WRITE ? make_private : replace_by_copy);
}

static void give_back(const struct rocefs_shared_pages* pages) {
  if (!is_open(pages->file)) return;
  bool alone = is_alone(pages->address, pages->length), locked = has_locked_pages();
  bool whole = each_part(pages, alone ? give_back_alone : give_back_beside);
  if (locked) mlock(pages->address, pages->length); /* it may have locked these */
  /* Gives the memory of parts back that the program has unmapped. */
  if (!whole && each_part_between(pages, 0, UINTPTR_MAX, NULL) == 0)
    discard(pages->file->fd, (off_t)pages->offset, pages->length + ROCEFS_SHARED_GAP);
}

/* Replaces the program's pages by those of the memfd, which a child of fork() does not get. */
static int take(const struct rocefs_shared_pages* pages) {
  int error = 0;
  for (size_t done = 0; done < pages->length && !error;) {
    size_t some = pages->length - done < kPiece ? pages->length - done : kPiece;
    char* ours =
        mmap(NULL, some, kReadWrite, MAP_SHARED, pages->file->fd, (off_t)(pages->offset + done));
    if (ours == MAP_FAILED) return errno;
    memcpy(ours, pages->address + done, some);
    if (madvise(ours, some, MADV_DONTFORK)) {
      error = errno;
      munmap(ours, some);
    } else if (!put_in_place(ours, some, pages->address + done)) {
      error = errno;
    }
    done += some;
  }
  return error;
}

/* ---- fork() ---- */

/* Copy of a part for a child, behind a page of its own: no memory of malloc(). */
struct copy {
  struct copy* next;
  struct part part;
};
static struct copy* copies;        /* protected by mutex, as the next one */
static sigset_t signals_of_forker; /* during fork() */

static void copy_part(const struct part* part) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* memory = mmap(NULL, page + part->length, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return; /* the child lacks these pages */
  if (part->rights & PROT_READ) {
    memcpy(memory + page, part->address, part->length);
  } else if (!read_pages(memory + page, part)) {
    munmap(memory, page + part->length);
    return;
  }
  struct copy* copy = (struct copy*)(void*)memory;
  *copy = (struct copy){copies, *part};
  copies = copy;
}

static void before_fork(void) {
  sigset_t before;
  lock(&before);
  signals_of_forker = before;
  for (struct rocefs_shared_pages* pages = all; pages; pages = pages->next)
    each_part(pages, copy_part);
}

static void after_fork(bool in_child) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  while (copies) {
    struct copy* copy = copies;
    struct part part = copy->part;
    char* bytes = (char*)copy + page;
    copies = copy->next;
    if (!in_child) {
      munmap(copy, page + part.length);
      continue;
    }
    if (part.rights != kReadWrite) mprotect(bytes, part.length, part.rights);
    put_in_place(bytes, part.length, part.address);
    munmap(copy, page);
  }
  sigset_t before = signals_of_forker;
  unlock(&before);
}

static void in_parent(void) {
  after_fork(false);
}

/* The list may itself be in pages that are copied. */
static void in_child(void) {
  after_fork(true);
  for (; all; all = all->next) all->address = NULL;
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
    return same && is_open(file) ? 0 : EPROTO;
  }
  file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (file->fd < 0) return errno;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  return 0;
}

static int add(struct rocefs_shared_pages* pages) {
  int error = watch_forks();
  if (error) return error;
  error = take(pages);
  if (error) {
    give_back(pages);
    return error;
  }
  pages->next = all;
  all = pages;
  ++pages->file->count;
  return 0;
}

int rocefs_share_pages(struct rocefs_shared_pages* pages, struct rocefs_page_file* file,
                       void* address, size_t length, int fd, uint64_t offset) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  bool fits = offset % page == 0 && length <= INT64_MAX - ROCEFS_SHARED_GAP &&
              offset <= INT64_MAX - ROCEFS_SHARED_GAP - length;
  int error = fd < 0 ? EMFILE : fits ? rocefs_check_memory(fd, offset + length) : EPROTO;
  sigset_t before;
  *pages = (struct rocefs_shared_pages){address, length, offset, file, NULL};
  lock(&before);
  if (!error) error = take_file(file, fd);
  if (!error) error = add(pages);
  unlock(&before);
  if (error) pages->address = NULL;
  if (fd >= 0) close(fd);
  return error;
}

/* Takes the first entry off the list; the mutex is held. */
static void remove_first(struct rocefs_shared_pages** link) {
  struct rocefs_shared_pages* pages = *link;
  *link = pages->next;
  --pages->file->count;
  give_back(pages);
  pages->address = NULL;
}

void rocefs_unshare_pages(struct rocefs_shared_pages* pages) {
  sigset_t before;
  if (!pages->address) return;
  lock(&before);
  struct rocefs_shared_pages** link = &all;
  while (*link && *link != pages) link = &(*link)->next;
  if (*link) remove_first(link);
  unlock(&before);
}

void rocefs_close_page_file(struct rocefs_page_file* file) {
  sigset_t before;
  lock(&before);
  for (struct rocefs_shared_pages** link = &all; *link;) {
    if ((*link)->file == file)
      remove_first(link);
    else
      link = &(*link)->next;
  }
  if (is_open(file)) close(file->fd);
  file->fd = -1;
  unlock(&before);
}
