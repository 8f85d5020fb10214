/* Pages of a program that are the engine's as well. A program that sets ROCEFS_SHARE_REGIONS=1 lets
 * the provider put shared pages in the place of its own while they are registered: their bytes then
 * take no copy thread. What another thread writes while the pages are exchanged, at registration
 * and deregistration, is lost, and a child of fork() sees its parent's pages: hence the leave.
 */
#ifndef ROCEFS_PROVIDER_SHARED_PAGES_H
#define ROCEFS_PROVIDER_SHARED_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rocefs_shared_pages {
  void* address; /* NULL: there are none */
  size_t length;
  dev_t device; /* of the memfd */
  ino_t inode;
};

/* Whether the program wants it, and these bytes are whole pages of private anonymous memory that
 * can be read and written. */
bool rocefs_can_share(const void* address, size_t length);
/* Puts the pages of `fd` in the place of the program's, with the same bytes. Closes it. An errno:
 * then nothing has changed. */
int rocefs_share_pages(struct rocefs_shared_pages* pages, void* address, size_t length, int fd);
/* Puts private pages with the same bytes in their place, where the program has not put others
 * there. Without memory for that they stay shared, which does no harm. */
void rocefs_unshare_pages(struct rocefs_shared_pages* pages);

#endif
