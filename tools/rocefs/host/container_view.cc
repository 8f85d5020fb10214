#include "tools/rocefs/host/container_view.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "core/base/passed_descriptors.h"
#include "core/process/mount_table.h"
#include "fs/namespaces.h"
#include "tools/rocefs/enter/overlay.h"
#include "tools/rocefs/enter/provider.h"
#include "tools/rocefs/host/child.h"
#include "tools/rocefs/host/join.h"

namespace rocefs {
namespace {

constexpr char kViewPlace[] = "/dev/rocefs";
constexpr char kViewSource[] = "rocefs-attach";   // of the file system at kViewPlace
constexpr char kViewHost[] = "/dev/rocefs/host";  // name of the host
constexpr char kDeviceNodes[] = "/dev/infiniband";
constexpr char kDriverFiles[] = "/etc/libibverbs.d";
constexpr char kHostNames[] = "/etc/hosts";

Error view_failure(const std::string& what, int code = errno) {
  return errorf(code, "{}: {}", what, std::strerror(code));
}

Error failure_there(const std::string& what) {
  return view_failure("in the container: " + what);
}

// A copy of the mount that shows `path`, which is mounted nowhere yet.
Result<Fd> clone_of(const std::string& path) {
  Fd tree(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (tree) return tree;
  if (errno != EPERM) return view_failure(path);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return view_failure(path);
  Fd ours(ends[0]), theirs(ends[1]);
  Result<void> cloned = in_child([&]() -> Result<void> {
    if (Result<void> entered = enter_user_namespace(); !entered) return entered;
    Fd made(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!made) return view_failure(path);
    char octet = 0;
    if (int error = send_message(theirs.get(), &octet, 1, made.get()))
      return view_failure(path, error);
    return {};
  });
  if (!cloned) return cloned.error();
  char octet;
  Fd received[1];
  if (receive_message(ours.get(), &octet, 1, received) != 1 || !received[0]) {
    return view_failure(path, EIO);
  }
  return std::move(received[0]);
}

// Becomes a process of the container: user and mount namespace, root directory.
Result<void> join_container(const Fd& process) {
  Fd space(::openat(process.get(), "ns/mnt", O_RDONLY | O_CLOEXEC));
  Fd root(::openat(process.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!space || !root) return view_failure("the container's files");
  if (::setns(space.get(), CLONE_NEWNS) != 0) {
    if (errno != EPERM) return view_failure("the container's mount namespace");
    Fd owner(::ioctl(space.get(), NS_GET_USERNS));
    if (!owner) return view_failure("the container's user namespace");
    if (Result<void> joined = join_user(owner.get()); !joined) return joined;
    if (::setns(space.get(), CLONE_NEWNS) != 0)
      return view_failure("the container's mount namespace");
  }
  if (::fchdir(root.get()) != 0 || ::chroot(".") != 0) return view_failure("the container's files");
  ::umask(022);  // the view is for all users of the container
  return {};
}

const Mount* mounted_at(const std::vector<Mount>& table, std::string_view point) {
  auto it = std::find_if(table.rbegin(), table.rend(),
                         [&](const Mount& mount) { return mount.point == point; });
  return it == table.rend() ? nullptr : &*it;
}

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return failure_there(path);
  return {};
}

Result<void> place(const Fd& tree, const std::string& path) {
  if (Result<void> made = make_directory(path); !made) return made;
  if (::move_mount(tree.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return failure_there(path);
  }
  return {};
}

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

// Lays a file or directory below kViewPlace over one of the container's, if it has that.
Result<void> cover_by(const std::string& ours, const char* theirs) {
  struct stat status;
  if (::stat(theirs, &status) != 0) return {};
  if (::mount(ours.c_str(), theirs, nullptr, MS_BIND, nullptr) != 0) return failure_there(theirs);
  return {};
}

Result<void> name_driver(const std::string& driver) {
  std::string directory = std::string(kViewPlace) + "/drivers";
  if (Result<void> made = make_directory(directory); !made) return made;
  if (!write_text(directory + "/rocefs.driver", "driver " + driver + "\n")) {
    return failure_there(directory);
  }
  return cover_by(directory, kDriverFiles);
}

// The text of a file of the container, up to its first 64 KiB; empty if it is no regular file. The
// container may have put anything there.
std::string text_of(int directory, const char* path) {
  Fd file(::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(65536, '\0');
  ssize_t size = ::read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

Result<void> name_all(const std::vector<HostDescription>& all) {
  std::string ours = std::string(kViewPlace) + "/hosts";
  std::string text = text_of(AT_FDCWD, kHostNames) + host_names(all);
  if (!write_text(ours, text)) return failure_there(ours);
  return cover_by(ours, kHostNames);
}

struct Clones {
  Fd mount;
  Fd library;          // directory of the provider; may be missing
  std::string driver;  // its name for libibverbs, without the directory
};

Result<Clones> make_clones(const std::string& mount_point) {
  Clones clones;
  Result<Fd> mount = clone_of(mount_point);
  if (!mount) return mount.error();
  clones.mount = std::move(*mount);
  std::filesystem::path provider = provider_of_program();
  if (provider.empty()) return clones;
  Result<Fd> library = clone_of(provider.parent_path());
  if (!library) return library.error();
  clones.library = std::move(*library);
  clones.driver = provider.filename();
  return clones;
}

Result<void> lay_in_container(const Clones& clones, const HostDescription& host,
                              const std::vector<HostDescription>& all) {
  const std::string at = kViewPlace;
  Result<void> done = make_directory(at);
  if (done && ::mount(kViewSource, kViewPlace, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
    done = failure_there(kViewPlace);
  }
  if (done && !write_text(kViewHost, host.name + "\n")) done = failure_there(kViewHost);
  if (done) done = make_directory(kDeviceNodes);  // so that the container's /dev stays as it is
  if (done) done = place(clones.mount, at + "/mount");
  if (done && clones.library) done = place(clones.library, at + "/lib");
  if (done && clones.library) done = name_driver(at + "/lib/" + clones.driver);
  if (done) done = name_all(all);
  if (!done) return done;
  Result<DeviceView> view = DeviceView::of(at + "/mount", host.devices);
  if (!view) return view.error();
  Result<Overlay> overlay = Overlay::of(at + "/mount", std::move(*view));
  if (!overlay) return overlay.error();
  return overlay->lay();
}

// Unmounts what a view has mounted, the newest first.
void take_away(std::vector<Mount> table) {
  const Mount* own = mounted_at(table, kViewPlace);
  if (!own) return;
  dev_t device = own->device;
  std::reverse(table.begin(), table.end());
  for (const Mount& mount : table) {
    bool ours = mount.device == device || mount.source == kOverlaySource ||
                (mount.is_rocefs() &&
                 (mount.point.starts_with("/sys/") || mount.point.starts_with("/dev/")));
    if (ours) (void)::umount2(mount.point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  }
  (void)::rmdir(kViewPlace);
  (void)::rmdir(kDeviceNodes);
}

ino_t number_of(int directory, const char* space) {
  struct stat status {};
  return ::fstatat(directory, space, &status, 0) == 0 ? status.st_ino : 0;
}

bool shares_files(const Fd& process) {
  return number_of(process.get(), "ns/mnt") == number_of(AT_FDCWD, "/proc/self/ns/mnt");
}

// The mount table of a process, of which /proc does not tell once it is the container's.
Result<std::vector<Mount>> table_of(const Fd& process) {
  Fd file(::openat(process.get(), "mountinfo", O_RDONLY | O_CLOEXEC));
  if (!file) return view_failure("the container's mount table");
  return read_mount_table(file.get());
}

Result<void> take_away_in(const Fd& process) {
  Result<std::vector<Mount>> table = table_of(process);
  if (!table) return table.error();
  return in_child([&] {
    Result<void> joined = join_container(process);
    if (joined) take_away(*table);
    return joined;
  });
}

}  // namespace

Result<std::string> reason_against_view(const Fd& process, const std::string& host) {
  if (shares_files(process)) return std::string("its files are this machine's");
  Result<std::vector<Mount>> table = table_of(process);
  if (!table) return table.error();
  const Mount* dev = mounted_at(*table, "/dev");
  if (!dev || dev->type != "tmpfs") return std::string("its /dev is no file system of its own");
  for (const Mount& mount : *table) {
    bool concerned = mount.point == "/" || mount.point == "/dev" || mount.point == "/etc" ||
                     mount.point == "/sys" || mount.point.starts_with("/sys/");
    if (concerned && mount.shared) {
      return fmt::format("its {} is a shared mount: others would see it", mount.point);
    }
  }
  if (!mounted_at(*table, kViewPlace)) return std::string();
  std::string other = text_of(process.get(), fmt::format("root{}", kViewHost).c_str());
  other = other.substr(0, other.find('\n'));
  if (other != host) return errorf(EBUSY, "the container has the devices of host {}", other);
  return std::string();
}

Result<void> lay_view(const Fd& process, const std::string& mount_point,
                      const HostDescription& host, const std::vector<HostDescription>& all) {
  Result<Clones> clones = make_clones(mount_point);
  if (!clones) return clones.error();
  Result<void> laid = in_child([&] {
    Result<void> joined = join_container(process);
    return joined ? lay_in_container(*clones, host, all) : joined;
  });
  if (!laid) (void)take_away_in(process);
  return laid;
}

Result<void> remove_view(const Fd& process) {
  if (shares_files(process)) return {};
  return take_away_in(process);
}

void remove_views(int network) {
  struct stat wanted;
  if (::fstat(network, &wanted) != 0) return;
  std::set<ino_t> seen;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    Fd process(::open(entry.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!process || number_of(process.get(), "ns/net") != wanted.st_ino) continue;
    if (seen.insert(number_of(process.get(), "ns/mnt")).second) (void)remove_view(process);
  }
}

}  // namespace rocefs
