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

#include "rdma/provider/cancel.h"
#include "rdma/provider/descriptors.h"
#include "rdma/provider/mappings.h"
#include "rdma/provider/process_state.h"
#include "rdma/provider/regions.h"
#include "rdma/provider/shared_parts.h"
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

/* Pages that stay shared for a while when their region has gone: see give_back(). */
struct stuck {
  struct rocefs_shared_pages pages;
  struct rocefs_page_file file;
};
static struct rocefs_shared_pages* stuck; /* each in a struct stuck; protected by mutex */

/* Thread that forks: it holds the mutex while other fork handlers run, which may register memory,
 * also those of the child. */
static pthread_t forker; /* valid while is_forking */
static bool is_forking;  /* written by the holder of the mutex */

static bool forks_here(void) {
  return __atomic_load_n(&is_forking, __ATOMIC_ACQUIRE) && pthread_equal(forker, pthread_self());
}

/* State of a thread before it took the lock. */
struct before {
  sigset_t signals;
  int cancel;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watches_forks; /* after `once` */
static void watch_forks(void);

/* Blocks all signals while the lock is held: a handler could write to the pages, or fork. Forks are
 * watched from the first time on, so that no child finds the lock held. */
static void lock(struct before* before) {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before->signals);
  before->cancel = rocefs_forbid_cancel();
  pthread_once(&once, watch_forks);
  if (!forks_here()) pthread_mutex_lock(&mutex);
}

static void unlock(const struct before* before) {
  if (!forks_here()) pthread_mutex_unlock(&mutex);
  rocefs_restore_cancel(&before->cancel);
  pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

/* ---- When pages can be shared ---- */

/* True for private anonymous memory, but not for the stack that is in use. */
static bool is_exchangeable(const struct rocefs_mapping* found) {
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  return found->inode == 0 && found->protection == kReadWrite && found->is_private &&
         !(frame >= found->begin && frame < found->end);
}

static bool all_exchangeable(uintptr_t at, uintptr_t end) {
  struct rocefs_mapping found;
  while (at < end) {
    if (rocefs_find_mapping(at, &found) != ROCEFS_MAPPING || found.begin > at ||
        !is_exchangeable(&found))
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
  if ((wanted && !strcmp(wanted, "0")) || forks_here()) return false;
  bool answers = wanted && !strcmp(wanted, "1") && rocefs_regions_in(address, length) <= 1;
  struct rocefs_process_state now = rocefs_process_state();
  if (!answers && !rocefs_is_alone(&now, address, length, 1)) return false;
  struct before before;
  lock(&before);
  bool can = all_exchangeable(begin, begin + length);
  unlock(&before);
  return can;
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
static bool make_private(const struct rocefs_part* part) {
  char* pages = mmap(NULL, part->length, part->rights, MAP_PRIVATE, part->fd, part->offset);
  if (pages == MAP_FAILED || !put_in_place(pages, part->length, part->address)) return false;
  if (copy_on_write(part->address, part->length)) discard(part->fd, part->offset, part->length);
  return true;
}

static bool read_pages(char* into, const struct rocefs_part* part) {
  for (size_t done = 0; done < part->length;) {
    ssize_t got = pread(part->fd, into + done, part->length - done, part->offset + (off_t)done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* Replaces the pages by a copy. For those that nobody can write to. */
static bool replace_by_copy(const struct rocefs_part* part) {
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
static bool make_anonymous(const struct rocefs_part* part) {
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

static void in_pieces(const struct rocefs_part* whole, bool (*make)(const struct rocefs_part*)) {
  for (size_t done = 0; done < whole->length; done += kPiece) {
    struct rocefs_part piece = *whole;
    piece.address += done;
    piece.offset += (off_t)done;
    piece.length = whole->length - done < kPiece ? whole->length - done : kPiece;
    if (!make(&piece)) return;
  }
}

static void give_back_alone(const struct rocefs_part* part) {
  in_pieces(part, make_anonymous);
}

static void give_back_beside(const struct rocefs_part* part) {
  in_pieces(part, part->rights & PROT_WRITE ? make_private : replace_by_copy);
}

/* False if the pages stay as they are for now: somebody may write to them whom an exchange would
 * leave with the old ones, or the kernel does not say where they are. */
static bool give_back(const struct rocefs_shared_pages* pages, unsigned own) {
  struct rocefs_process_state now = rocefs_process_state();
  if (pages->file->process != getpid() || !rocefs_is_page_file(pages->file)) return true;
  if (!now.known || now.pins) return false;
  bool alone = rocefs_is_alone(&now, pages->address, pages->length, own);
  struct rocefs_parts given = rocefs_each_part(pages, alone ? give_back_alone : give_back_beside);
  if (now.locks) mlock(pages->address, pages->length); /* it may have locked these */
  if (!given.known || given.bytes == pages->length) return given.known;
  /* Gives the memory of parts back that the program has unmapped. */
  struct rocefs_parts left = rocefs_each_part_between(pages, 0, UINTPTR_MAX, NULL);
  if (left.known && left.bytes == 0)
    discard(pages->file->fd, (off_t)pages->offset, pages->length + ROCEFS_SHARED_GAP);
  return left.known;
}

/* Reads memory of this process by /proc/self/mem, `file`: what would be a signal, as at a guard
 * page, or would wait for userfaultfd(2), is an errno. */
static int read_own(int file, char* into, const char* from, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t got = pread(file, into + done, length - done, (off_t)(uintptr_t)(from + done));
    if (got <= 0) return got ? errno : EFAULT;
    done += (size_t)got;
  }
  return 0;
}

/* Replaces the program's pages by those of the memfd, which a child of fork() does not get. */
static int take(const struct rocefs_shared_pages* pages) {
  int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (memory < 0) return errno;
  int error = 0;
  for (size_t done = 0; done < pages->length && !error;) {
    size_t some = pages->length - done < kPiece ? pages->length - done : kPiece;
    char* ours =
        mmap(NULL, some, kReadWrite, MAP_SHARED, pages->file->fd, (off_t)(pages->offset + done));
    if (ours == MAP_FAILED) {
      error = errno;
      break;
    }
    error = read_own(memory, ours, pages->address + done, some);
    if (!error && madvise(ours, some, MADV_DONTFORK)) error = errno;
    if (error)
      munmap(ours, some);
    else if (!put_in_place(ours, some, pages->address + done))
      error = errno;
    done += some;
  }
  close(memory);
  return error;
}

/* ---- fork() ---- */

/* Copy of a part for a child, behind a page of its own: no memory of malloc(). */
struct copy {
  struct copy* next;
  struct rocefs_part part;
};
static struct copy* copies;         /* protected by mutex, as the next one */
static struct before before_copies; /* during fork() */

static void copy_part(const struct rocefs_part* part) {
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
  struct before before;
  lock(&before);
  before_copies = before;
  for (struct rocefs_shared_pages* pages = all; pages; pages = pages->next)
    rocefs_each_part(pages, copy_part);
  for (struct rocefs_shared_pages* pages = stuck; pages; pages = pages->next)
    rocefs_each_part(pages, copy_part);
  forker = pthread_self();
  __atomic_store_n(&is_forking, true, __ATOMIC_RELEASE);
}

static void after_fork(bool in_child) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  while (copies) {
    struct copy* copy = copies;
    struct rocefs_part part = copy->part;
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
  struct before before = before_copies;
  __atomic_store_n(&is_forking, false, __ATOMIC_RELEASE);
  unlock(&before);
}

static void in_parent(void) {
  after_fork(false);
}

/* The list may itself be in pages that are copied. */
static void in_child(void) {
  after_fork(true);
  for (; all; all = all->next) all->address = NULL;
  stuck = NULL;
}

static void watch_forks(void) {
  watches_forks = !pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- Regions ---- */

/* Takes the engine's memfd; the engine passes the same one each time. */
static int take_file(struct rocefs_page_file* file, int fd) {
  struct stat status;
  if (fstat(fd, &status)) return errno;
  if (file->fd >= 0) {
    bool same = status.st_ino == file->inode && status.st_dev == file->device;
    return same && rocefs_is_page_file(file) ? 0 : EPROTO;
  }
  file->fd = rocefs_duplicate(fd);
  if (file->fd < 0) return errno;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  file->process = getpid();
  file->is_closed = false;
  return 0;
}

/* Keeps pages that cannot be given back yet. */
static void keep(const struct rocefs_shared_pages* pages) {
  struct stuck* entry = malloc(sizeof *entry);
  if (!entry) return;
  *entry = (struct stuck){*pages, *pages->file};
  entry->pages.file = &entry->file;
  entry->pages.next = stuck;
  stuck = &entry->pages;
}

static bool is_same_file(const struct rocefs_page_file* a, const struct rocefs_page_file* b) {
  return a->inode == b->inode && a->device == b->device;
}

/* Closes the memfd of a context that has gone, once no pages of it are left. */
static void close_unused(const struct rocefs_page_file* file) {
  for (const struct rocefs_shared_pages* pages = stuck; pages; pages = pages->next)
    if (is_same_file(pages->file, file)) return;
  if (rocefs_is_page_file(file)) close(file->fd);
}

/* Ends at the first that stays: the reason is the same for all. */
static void retry_stuck(void) {
  while (stuck && give_back(stuck, 0)) {
    struct rocefs_shared_pages* pages = stuck;
    stuck = pages->next;
    if (pages->file->is_closed) close_unused(pages->file);
    free(pages); /* the first member of a struct stuck */
  }
  if (!all && !stuck) rocefs_drop_mappings();
}

static int add(struct rocefs_shared_pages* pages) {
  int error = watches_forks ? rocefs_keep_mappings() : ENOMEM;
  if (error) return error;
  error = take(pages);
  if (error) {
    if (!give_back(pages, 1)) keep(pages);
    retry_stuck();
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
  struct before before;
  *pages = (struct rocefs_shared_pages){address, length, offset, file, NULL};
  lock(&before);
  if (!error) error = take_file(file, fd);
  if (!error) error = add(pages);
  unlock(&before);
  if (error) pages->address = NULL;
  if (fd >= 0) close(fd);
  return error;
}

/* Takes the first entry off the list; the mutex is held. `own`: as of rocefs_is_alone(). */
static void remove_first(struct rocefs_shared_pages** link, unsigned own) {
  struct rocefs_shared_pages* pages = *link;
  *link = pages->next;
  --pages->file->count;
  if (!give_back(pages, own)) keep(pages);
  pages->address = NULL;
}

void rocefs_unshare_pages(struct rocefs_shared_pages* pages) {
  struct before before;
  if (!pages->address) return;
  lock(&before);
  struct rocefs_shared_pages** link = &all;
  while (*link && *link != pages) link = &(*link)->next;
  if (*link) remove_first(link, 0);
  retry_stuck();
  unlock(&before);
}

void rocefs_close_page_file(struct rocefs_page_file* file) {
  struct before before;
  lock(&before);
  for (struct rocefs_shared_pages** link = &all; *link;) {
    if ((*link)->file == file)
      remove_first(link, 1);
    else
      link = &(*link)->next;
  }
  for (struct rocefs_shared_pages* pages = stuck; pages; pages = pages->next)
    if (is_same_file(pages->file, file)) pages->file->is_closed = true;
  retry_stuck();
  if (file->fd >= 0) close_unused(file);
  file->fd = -1;
  unlock(&before);
}
