/* Where shared pages are: the program may have moved, unmapped or replaced some of them. */
#ifndef ROCEFS_PROVIDER_SHARED_PARTS_H
#define ROCEFS_PROVIDER_SHARED_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The memfd of a context, in which each region has its own part, used once. */
struct rocefs_page_file {
  uint32_t count; /* regions that have pages of it */
  int fd;         /* -1: none yet */
  bool is_closed; /* but for pages that could not be given back */
  pid_t process;  /* a child of fork() gives nothing back */
  dev_t device;
  ino_t inode;
};

/* Part of the memfd that stands for pages of the program. */
struct rocefs_shared_pages {
  char* address; /* NULL: none */
  size_t length;
  uint64_t offset; /* in the memfd */
  struct rocefs_page_file* file;
  struct rocefs_shared_pages* next;
};

/* Part of shared pages in one mapping. */
struct rocefs_part {
  char* address;
  size_t length;
  off_t offset;
  int fd;
  int rights;
};

/* Parts that were found of shared pages. */
struct rocefs_parts {
  size_t bytes;
  bool known; /* false: the kernel did not say where all are */
};

/* True if the descriptor still is the memfd: a program may have closed what it does not know. */
bool rocefs_is_page_file(const struct rocefs_page_file* file);
/* Calls `act`, if not NULL, for each part between two addresses. */
struct rocefs_parts rocefs_each_part_between(const struct rocefs_shared_pages* pages, uintptr_t at,
                                             uintptr_t end, void (*act)(const struct rocefs_part*));
/* Calls `act` for each part, where it is or anywhere. */
struct rocefs_parts rocefs_each_part(const struct rocefs_shared_pages* pages,
                                     void (*act)(const struct rocefs_part*));

#endif
