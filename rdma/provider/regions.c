#include "rdma/provider/regions.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* taken before that of a context */
static struct rocefs_regions* all;                        /* protected by mutex */
static struct rocefs_copiers copiers;                     /* protected by mutex */

/* A child of fork() has neither the contexts nor their copiers, and another thread may have held
 * the locks. */
static void in_child(void) {
  pthread_mutex_init(&mutex, NULL);
  all = NULL;
  copiers.count = 0;
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, in_child);
}

void rocefs_init_regions(struct rocefs_regions* regions) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  pthread_mutex_init(&regions->mutex, NULL);
  pthread_mutex_lock(&mutex);
  regions->next = all;
  all = regions;
  pthread_mutex_unlock(&mutex);
}

void rocefs_free_regions(struct rocefs_regions* regions) {
  pthread_mutex_lock(&mutex);
  struct rocefs_regions** link = &all;
  while (*link && *link != regions) link = &(*link)->next;
  if (*link) *link = regions->next;
  pthread_mutex_unlock(&mutex);
  pthread_mutex_destroy(&regions->mutex);
  free(regions->sorted);
}

/* Index of the first region that begins behind `at`; the lock is held. */
static uint32_t place_of(const struct rocefs_regions* regions, uintptr_t at) {
  uint32_t low = 0, high = regions->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (regions->sorted[middle].begin <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool grow(struct rocefs_regions* regions) {
  if (regions->count < regions->room) return true;
  uint32_t room = regions->room ? 2 * regions->room : 16;
  struct rocefs_region* larger = realloc(regions->sorted, room * sizeof *larger);
  if (!larger) return false;
  regions->sorted = larger;
  regions->room = room;
  return true;
}

bool rocefs_add_region(struct rocefs_regions* regions, const void* address, size_t length) {
  uintptr_t begin = (uintptr_t)address;
  uintptr_t end = length > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + length;
  pthread_mutex_lock(&regions->mutex);
  bool fits = grow(regions);
  if (fits) {
    uint32_t place = place_of(regions, begin);
    struct rocefs_region* at = &regions->sorted[place];
    memmove(at + 1, at, (regions->count++ - place) * sizeof *at);
    *at = (struct rocefs_region){begin, end};
    if (end - begin > regions->longest) regions->longest = end - begin;
  }
  pthread_mutex_unlock(&regions->mutex);
  return fits;
}

void rocefs_remove_region(struct rocefs_regions* regions, const void* address, size_t length) {
  uintptr_t begin = (uintptr_t)address;
  uintptr_t end = length > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + length;
  pthread_mutex_lock(&regions->mutex);
  for (uint32_t place = place_of(regions, begin); place-- > 0;) {
    struct rocefs_region* at = &regions->sorted[place];
    if (at->begin != begin) break;
    if (at->end != end) continue;
    memmove(at, at + 1, (--regions->count - place) * sizeof *at);
    break;
  }
  pthread_mutex_unlock(&regions->mutex);
}

static unsigned overlaps(struct rocefs_regions* regions, uintptr_t begin, uintptr_t end) {
  unsigned found = 0;
  pthread_mutex_lock(&regions->mutex);
  for (uint32_t place = place_of(regions, end - 1); place-- > 0 && found < 2;) {
    const struct rocefs_region* region = &regions->sorted[place];
    if (begin > region->begin && begin - region->begin >= regions->longest) break;
    found += region->end > begin;
  }
  pthread_mutex_unlock(&regions->mutex);
  return found;
}

static void count_copiers(unsigned more) {
  pthread_mutex_lock(&mutex);
  copiers.count += more;
  ++copiers.changes;
  pthread_mutex_unlock(&mutex);
}

void rocefs_copier_came(void) {
  count_copiers(1);
}

void rocefs_copier_goes(void) {
  count_copiers(-1u);
}

struct rocefs_copiers rocefs_copiers(void) {
  pthread_mutex_lock(&mutex);
  struct rocefs_copiers now = copiers;
  pthread_mutex_unlock(&mutex);
  return now;
}

unsigned rocefs_regions_in(const void* address, size_t length) {
  uintptr_t begin = (uintptr_t)address;
  unsigned found = 0;
  pthread_mutex_lock(&mutex);
  for (struct rocefs_regions* regions = all; regions; regions = regions->next)
    found += overlaps(regions, begin, begin + length);
  pthread_mutex_unlock(&mutex);
  return found < 2 ? found : 2;
}

/* End of a region that contains `at`, or `at`. Regions seldom nest: mostly one look finds it. */
static uintptr_t end_of(const struct rocefs_regions* regions, uintptr_t at) {
  for (uint32_t place = place_of(regions, at); place-- > 0;)
    if (regions->sorted[place].end > at) return regions->sorted[place].end;
  return at;
}

bool rocefs_is_registered(struct rocefs_regions* regions, uint64_t address, size_t length) {
  uintptr_t at = address, end = at + length;
  bool registered = end >= at;
  pthread_mutex_lock(&regions->mutex);
  while (registered && at < end) { /* one copy may span adjacent regions */
    uintptr_t next = end_of(regions, at);
    registered = next > at;
    at = next;
  }
  pthread_mutex_unlock(&regions->mutex);
  return registered;
}
