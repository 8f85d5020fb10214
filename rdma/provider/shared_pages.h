/* Pages that a program shares with the engine. With ROCEFS_SHARE_REGIONS=1 the provider replaces
 * the pages of a region by shared ones while it is registered, so that no copy thread is needed.
 * Writes of other threads during the exchange, at registration and deregistration, are lost, and a
 * child of fork() sees its parent's pages: so the program has to ask for it. */
#ifndef ROCEFS_PROVIDER_SHARED_PAGES_H
#define ROCEFS_PROVIDER_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rocefs_shared_pages {
  void* address; /* NULL: none */
  size_t length;
  dev_t device; /* memfd's */
  ino_t inode;
};

/* True if the program wants shared pages, and these bytes are whole pages of private anonymous
 * memory that can be read and written. */
bool rocefs_can_share(const void* address, size_t length);
/* Replaces the program's pages by those of `fd`, with the same bytes. Closes `fd`. On an errno
 * nothing has changed. */
int rocefs_share_pages(struct rocefs_shared_pages* pages, void* address, size_t length, int fd);
/* Replaces shared pages by private ones with the same bytes, except where the program has mapped
 * others. Without memory for that they stay shared, which does no harm. */
void rocefs_unshare_pages(struct rocefs_shared_pages* pages);

#endif
