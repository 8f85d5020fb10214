/* Connection of a program to the engine of a mount, and the identity of the other end: the program
 * takes descriptors and memory from there, and a mount may belong to any user. */
#ifndef ROCEFS_PEER_H
#define ROCEFS_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rdma/uapi/uapi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROCEFS_OVERFLOW_UID = 65534 }; /* stands for users without a number in this user namespace */

#define ROCEFS_DIRECTORY "/kernel/debug/rocefs"

/* Connects to uapi in the mount at `root`; 0 or an errno. Opens the directory first: the path of a
 * mount may be longer than an address holds, that of a descriptor is not. */
static inline int rocefs_connect_in(int fd, const char* root) {
  char directory[4096];
  if (snprintf(directory, sizeof directory, "%s" ROCEFS_DIRECTORY, root) >= (int)sizeof directory)
    return ENAMETOOLONG;
  int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return errno;
  struct sockaddr_un address;
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/uapi", at);
  int error;
  do error = connect(fd, (struct sockaddr*)&address, sizeof address) ? errno : 0;
  while (error == EINTR);
  close(at);
  return error;
}

/* Writes why a program cannot use an engine of that version; tells the engine, whose dmesg then
 * says so too. `who` is part of the sentence: "this libmango". */
static inline void rocefs_part_from(int socket, uint32_t version, const char* who, char* why,
                                    size_t size) {
  const struct rocefs_introduction own = {ROCEFS_OP_HELLO, 0, ROCEFS_UAPI_MAGIC,
                                          ROCEFS_UAPI_VERSION};
  if (send(socket, &own, sizeof own, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) errno = 0;
  snprintf(why, size, "the engine speaks version %u of the interface for programs, %s version %u",
           (unsigned)version, who, (unsigned)ROCEFS_UAPI_VERSION);
}

/* A user whose engine is trusted, besides root's and one's own. Ignored by setuid programs. */
#define ROCEFS_TRUST_VARIABLE "ROCEFS_TRUST_UID"

static inline int rocefs_is_mapped(uid_t uid) {
  unsigned long inside, outside, count;
  int mapped = 0;
  FILE* map = fopen("/proc/self/uid_map", "re");
  if (!map) return 1;
  while (!mapped && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
    mapped = uid >= inside && uid - inside < count;
  fclose(map);
  return mapped;
}

/* Trusts root, oneself, and the user of the variable. In a user namespace without a number for the
 * other end, the machine's root cannot be told from its users: the creator of the namespace has
 * admitted them. `uid`: the other end's, for messages. */
static inline int rocefs_trusts_peer(int socket, uid_t* uid) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  *uid = ROCEFS_OVERFLOW_UID;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) || size != sizeof peer) return 0;
  *uid = peer.uid;
  if (peer.uid == 0 || peer.uid == geteuid()) return 1;
  const char* trusted = secure_getenv(ROCEFS_TRUST_VARIABLE);
  char digits[16];
  snprintf(digits, sizeof digits, "%u", (unsigned)peer.uid);
  if (trusted && strcmp(trusted, digits) == 0) return 1;
  return peer.uid == ROCEFS_OVERFLOW_UID && !rocefs_is_mapped(peer.uid);
}

/* Checks that `size` bytes of a memfd can be accessed, now and always; an errno, EPROTO if not: it
 * is smaller, may shrink, or has huge pages, which can be missing on access. */
static inline int rocefs_check_memory(int fd, uint64_t size) {
  struct stat status;
  struct statfs system;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return EPROTO;
  if (fstat(fd, &status) || fstatfs(fd, &system)) return errno;
  if (system.f_type != TMPFS_MAGIC || status.st_size < 0) return EPROTO;
  return (uint64_t)status.st_size >= size ? 0 : EPROTO;
}

#ifdef __cplusplus
}
#endif
#endif
