/* open LIBIBVERBS PROVIDER MOUNT QUERY_PORT FREE_CONTEXT [QUERY_PORT_SPEED]: loads the two, in this
 * order, and opens a device by them; the numbers are places in the table of verbs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
  void* library = count >= 6 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(const char*, const char*, int, int, int) = NULL;
  if (library) run = (int (*)(const char*, const char*, int, int, int))dlsym(library, "fake_open");
  if (!run) {
    printf("%s\n", dlerror());
    return 1;
  }
  return run(arguments[2], arguments[3], atoi(arguments[4]), atoi(arguments[5]),
             count == 7 ? atoi(arguments[6]) : 0);
}
