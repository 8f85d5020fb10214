/* Pages that a program shares with the engine, which then moves no bytes to and fro: the pages of a
 * region are replaced by those of a memfd of the engine while the region is registered.
 *
 * Pages are exchanged where nothing else can write to them at that moment: the process has one
 * thread, the kernel has none of its pages pinned or locked, and the engine moves bytes of no other
 * region there. Where that has changed since, the pages are given back as a private mapping of the
 * memfd: no copy is made that a write could miss. A child of fork() gets a copy, as it does of
 * pages that the kernel has pinned. */
#ifndef ROCEFS_PROVIDER_SHARED_PAGES_H
#define ROCEFS_PROVIDER_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/provider/shared_parts.h"

/* True if these bytes, a region that was added (regions.h), are whole pages of private anonymous
 * memory that can be read and written, and only the calling thread can write to them.
 * ROCEFS_SHARE_REGIONS in the environment decides otherwise: 0: false; 1: the program answers for
 * its threads. */
bool rocefs_can_share(const void* address, size_t length);
/* Replaces the program's pages by those at `offset` of the memfd `fd`, with the same bytes. Closes
 * `fd`, or keeps it in `file`. `pages` and `file` stay where they are until
 * rocefs_unshare_pages(). On an errno nothing has changed. */
int rocefs_share_pages(struct rocefs_shared_pages* pages, struct rocefs_page_file* file,
                       void* address, size_t length, int fd, uint64_t offset);
/* Makes shared pages the program's own, except where the program has mapped others. The engine does
 * not write to them any more. Where the kernel has pages pinned, or does not say what is mapped,
 * they stay as they are, shared with nobody, until a later call. Pages for which it fails stay so
 * for good: a child of fork() does not have them. */
void rocefs_unshare_pages(struct rocefs_shared_pages* pages);
/* Does so for all pages of the memfd, and closes it. */
void rocefs_close_page_file(struct rocefs_page_file* file);

#endif
