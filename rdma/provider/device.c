/* Discovery of devices by libibverbs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

/* Size of a path below a sysfs root: the root's, plus a file's. */
enum { kPathSize = IBV_SYSFS_PATH_MAX + 64 };

/* Root of the sysfs in which libibverbs has found a device, whose path is
 * <root>/class/infiniband/<name>. Not read from SYSFS_PATH, which libibverbs rightly ignores in a
 * set-user-ID program. */
static bool sysfs_root(const char* ibdev_path, char* root, size_t size) {
  if ((size_t)snprintf(root, size, "%s", ibdev_path) >= size) return false;
  for (int i = 0; i < 3; ++i) {
    char* slash = strrchr(root, '/');
    if (!slash) return false;
    *slash = 0;
  }
  return true;
}

static bool is_driven_by_us(const char* ibdev_path) {
  char link[kPathSize], driver[4096];
  snprintf(link, sizeof link, "%s/device/driver", ibdev_path);
  ssize_t length = readlink(link, driver, sizeof driver - 1);
  if (length < 0) return false;
  driver[length] = 0;
  const char* name = strrchr(driver, '/');
  return strcmp(name ? name + 1 : driver, "mango_core") == 0;
}

static bool is_rocefs(const char* root) {
  char path[kPathSize];
  struct stat st;
  snprintf(path, sizeof path, "%s/kernel/debug/rocefs/uapi", root);
  return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Root of a tree with the engine: the one in which the device was found, or the mount that `rocefs
 * enter` names, for programs that may not pass debugfs, which systemd mounts for root alone. */
static bool engine_root(const char* ibdev_path, char* root, size_t size) {
  if (!sysfs_root(ibdev_path, root, size)) return false;
  if (is_rocefs(root)) return true;
  const char* mount = errno == EACCES ? secure_getenv("ROCEFS_MOUNT") : NULL;
  return mount && (size_t)snprintf(root, size, "%s", mount) < size && is_rocefs(root);
}

static bool match_device(struct verbs_sysfs_dev* found) {
  char root[IBV_SYSFS_PATH_MAX];
  return is_driven_by_us(found->ibdev_path) && engine_root(found->ibdev_path, root, sizeof root);
}

static struct verbs_device* alloc_device(struct verbs_sysfs_dev* found) {
  struct rocefs_device* device = calloc(1, sizeof *device);
  if (!device) return NULL;
  engine_root(found->ibdev_path, device->root, sizeof device->root);
  rocefs_serve_cm(device->root);
  return &device->verbs;
}

static void uninit_device(struct verbs_device* device) {
  free(ROCEFS_CONTAINER(device, struct rocefs_device, verbs));
}

const struct verbs_device_ops rocefs_device_ops = {
    .name = "rocefs",
    .match_min_abi_version = 1,
    .match_max_abi_version = 1,
    .match_device = match_device,
    .alloc_context = rocefs_alloc_context,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};
