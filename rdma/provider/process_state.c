#include "rdma/provider/process_state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma/provider/regions.h"

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

struct rocefs_process_state rocefs_process_state(void) {
  char text[8192];
  struct rocefs_process_state now = {.copiers = rocefs_copiers()};
  now.known = read_status(text, sizeof text);
  now.threads = number_of(text, "\nThreads:");
  now.pins = number_of(text, "\nVmPin:") > 0;
  now.locks = number_of(text, "\nVmLck:") > 0;
  return now;
}

/* A copier that came or went meanwhile would count as a thread of the program, or hide one. */
bool rocefs_is_alone(const struct rocefs_process_state* now, const void* address, size_t length,
                     unsigned own) {
  return rocefs_regions_in(address, length) <= own && now->known &&
         now->threads == 1 + now->copiers.count &&
         now->copiers.changes == rocefs_copiers().changes && !now->pins && !now->locks;
}
