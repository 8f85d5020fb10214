/* Descriptors that the program does not know. None takes the place of a standard stream that it has
 * closed: what is written to its standard error would go to the engine. */
#ifndef ROCEFS_PROVIDER_DESCRIPTORS_H
#define ROCEFS_PROVIDER_DESCRIPTORS_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A duplicate above the standard streams; -1 and errno on failure. */
static inline int rocefs_duplicate(int fd) {
  return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Moves a descriptor above the standard streams if it is one of them; -1 and errno on failure, and
 * then it is closed. */
static inline int rocefs_raise(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int high = rocefs_duplicate(fd);
  int error = errno;
  close(fd);
  errno = error;
  return high;
}

#endif
