/* libibverbs of another version, as far as a provider sees it: the private symbols with their
 * versions, and a verbs_context that has grown at its front. It opens a device, tells what is in
 * the table of verbs, and calls one of them.
 *
 * ROCEFS_ABI is the number in the symbols, GROWTH by how many pointers verbs_context has grown
 * since ABI 34, COUNT how many verbs there are, SPEED whether ibv_query_port_speed() is among them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma/provider/abi.h"

#define EXPORTED __attribute__((visibility("default")))
#define JOIN(name, number) name##number
#define REGISTER(number) JOIN(verbs_register_driver_, number)

static const struct verbs_device_ops* driver;
static const verbs_slot* slots;
static struct ibv_context* opened;
EXPORTED bool verbs_allow_disassociate_destroy;

/* Where the end of a verbs_context of these headers is in one of this version. */
static struct ibv_context* context_of(void* grown) {
  size_t since_query_port =
      offsetof(struct verbs_context, context) - offsetof(struct verbs_context, query_port);
  return (struct ibv_context*)(void*)((char*)grown + GROWTH * sizeof(void*) + since_query_port);
}

EXPORTED void REGISTER(ROCEFS_ABI)(const struct verbs_device_ops* ops);
void REGISTER(ROCEFS_ABI)(const struct verbs_device_ops* ops) {
  driver = ops;
}

/* Writes to all of its verbs_context, as libibverbs does. */
EXPORTED void* _verbs_init_and_alloc_context(struct ibv_device* device, int cmd_fd, size_t size,
                                             struct verbs_context* offset, uint32_t driver_id) {
  char* all = calloc(1, size);
  (void)driver_id;
  if (!all) return NULL;
  char* grown = all + (uintptr_t)offset;
  opened = context_of(grown);
  size_t whole = (size_t)((char*)opened - grown) + sizeof *opened;
  if ((uintptr_t)offset + whole > size) {
    printf("the context is too small: %zu of %zu\n", size, (uintptr_t)offset + whole);
    exit(1);
  }
  memset(grown, 0x5a, (size_t)((char*)opened - grown));
  opened->device = device;
  opened->cmd_fd = cmd_fd;
  opened->async_fd = -1;
  return all;
}

EXPORTED void verbs_set_ops(struct verbs_context* context, const verbs_slot* table) {
  if (context_of(context) != opened) {
    printf("the context is elsewhere\n");
    exit(1);
  }
  slots = table;
}

EXPORTED void verbs_uninit_context(struct verbs_context* context) {
  if (context_of(context) != opened) exit(1);
  close(opened->cmd_fd);
  close(opened->async_fd);
}

EXPORTED void __verbs_log(struct verbs_context* context, uint32_t level, const char* format, ...) {
  (void)context;
  (void)level;
  (void)format;
}

/* Completion channels come by way of this call. */
EXPORTED ssize_t ibv_write_command(int fd, const void* data, size_t size) {
  return write(fd, data, size);
}
/* Events come by way of this call. */
EXPORTED ssize_t ibv_read_event(int fd, void* data, size_t size) {
  return read(fd, data, size);
}
#if SPEED
EXPORTED int ibv_query_port_speed(void) {
  return 0;
}
#endif

/* The supported verbs, by their place in the file: `INDEX OFFSET`. */
static void print_slots(void) {
  for (int i = 0; i < COUNT; ++i) {
    Dl_info info;
    if (slots[i] && dladdr((void*)slots[i], &info))
      printf("%d %zx\n", i, (size_t)((char*)slots[i] - (char*)info.dli_fbase));
  }
}

/* Opens mb_0 of the mount `root` by the provider in `file`, and asks for the state of its port, and
 * for its speed if that verb has a place other than 0. */
EXPORTED int fake_open(const char* file, const char* root, int query_port, int free_context,
                       int query_port_speed);
int fake_open(const char* file, const char* root, int query_port, int free_context,
              int query_port_speed) {
  struct verbs_sysfs_dev found = {.ibdev_name = "mb_0"};
  struct ibv_port_attr attr = {.state = IBV_PORT_NOP};
  if (!dlopen(file, RTLD_NOW) || !driver) {
    printf("%s\n", dlerror());
    return 1;
  }
  snprintf(found.ibdev_path, sizeof found.ibdev_path, "%s/class/infiniband/mb_0", root);
  if (!driver->match_device(&found)) return 2;
  struct verbs_device* device = driver->alloc_device(&found);
  strcpy(device->device.name, "mb_0");
  if (!driver->alloc_context(&device->device, open("/dev/null", O_RDWR | O_CLOEXEC), NULL))
    return 3;
  print_slots();
  int (*query)(struct ibv_context*, uint8_t, struct ibv_port_attr*) =
      (int (*)(struct ibv_context*, uint8_t, struct ibv_port_attr*))slots[query_port];
  if (query(opened, 1, &attr) || attr.state != IBV_PORT_ACTIVE) return 4;
  uint64_t speed = 0;
  int (*query_speed)(struct ibv_context*, uint32_t, uint64_t*) =
      (int (*)(struct ibv_context*, uint32_t, uint64_t*))slots[query_port_speed];
  if (query_port_speed > 0 && (!query_speed || query_speed(opened, 1, &speed) || speed != 100))
    return 5; /* 10 Gbit/s, as shipped */
  ((void (*)(struct ibv_context*))slots[free_context])(opened);
  driver->uninit_device(device);
  return 0;
}
