// Mounting over existing mounts: as root, as an ordinary user, after a daemon's death.
#include <sys/stat.h>

#include "test/fs/child.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")

namespace {

// Directory that is left with nothing mounted on it in any case.
class MountDirectory {
 public:
  MountDirectory() {
    char name[] = "/tmp/rocefs-fs-test.XXXXXX";
    base = ::mkdtemp(name);
    path = base + "/mnt";
    ::mkdir(path.c_str(), 0755);
  }
  ~MountDirectory() {
    ::umount2(path.c_str(), MNT_DETACH);
    ::unlink((base + "/link").c_str());
    ::rmdir(path.c_str());
    ::rmdir(base.c_str());
  }
  std::string base, path;
};

// Smallest daemon: one file, served on this thread until the mount is gone.
int serve(const std::string& path, SessionOptions options, std::function<void()> when_mounted) {
  Tree tree(::getuid(), ::getgid());
  tree.add_file("value", constant("7"));
  PollLoop loop;
  options.unmounted = [&] { loop.stop(); };
  auto session = Session::create(std::move(options), tree, loop);
  if (!session) return 2;
  if (!(*session)->mount(path)) return 3;
  loop.post([&] { when_mounted(); });
  loop.run();
  return 0;
}

// Daemon that dies and leaves its mount; the kernel has cached the root.
void leave_dead_mount(const MountDirectory& directory) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  pid_t daemon = ::fork();
  if (daemon == 0) {
    ::_exit(serve(directory.path, {}, [&] { (void)!::write(ready[1], "k", 1); }));
  }
  char word;
  CHECK(::read(ready[0], &word, 1) == 1);
  CHECK(Mounted::read(directory.path + "/value") == "7\n");
  struct stat status;
  CHECK(::stat(directory.path.c_str(), &status) == 0);
  ::kill(daemon, SIGKILL);
  status_of(daemon);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(mounted_device(directory.path).has_value());
}

}  // namespace

TEST_CASE("fs: a dead mount of an earlier daemon is removed, by any name of its path") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone may unmount what another process mounted");
  MountDirectory directory;
  REQUIRE(::symlink("mnt", (directory.base + "/link").c_str()) == 0);
  std::string relative = "../../../../../../../../../../../.." + directory.path;
  for (const std::string& name : {directory.path, directory.path + "//", directory.base + "/link",
                                  directory.base + "/./mnt", relative}) {
    INFO(name);
    leave_dead_mount(directory);
    auto checked = check_mount_point(name);
    REQUIRE(checked);
    CHECK(*checked == directory.path);
    CHECK_FALSE(mounted_device(directory.path).has_value());
  }
}

TEST_CASE("fs: a mount whose connection was cut is unmounted when its session ends") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone may cut a connection");
  Mounted mounted;
  int fd = ::open(mounted.at("uint").c_str(), O_RDONLY);
  CHECK(::umount2(mounted.path.c_str(), MNT_FORCE) == -1);
  CHECK(errno == EBUSY);
  mounted.stop();
  CHECK(mounted_device(mounted.path).has_value());
  mounted.session.reset();
  CHECK_FALSE(mounted_device(mounted.path).has_value());
  ::close(fd);
}

TEST_CASE("fs: a session ends no mount but its own when a directory above was exchanged") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone may mount");
  MountDirectory directory;
  const std::string above = directory.path + "/above", aside = directory.path + "/aside";
  const std::string own = above + "/mnt", other = aside + "/mnt";
  for (const std::string& each : {above, own, aside, other}) ::mkdir(each.c_str(), 0755);
  REQUIRE(::mount("other", other.c_str(), "tmpfs", 0, nullptr) == 0);
  const bool by_link = GENERATE(false, true);
  Mounted mounted({}, own);
  const std::string moved = directory.path + "/moved";
  REQUIRE(::rename(above.c_str(), moved.c_str()) == 0);
  if (by_link) {
    REQUIRE(::symlink(aside.c_str(), above.c_str()) == 0);
  } else {
    REQUIRE(::rename(aside.c_str(), above.c_str()) == 0);
  }
  const std::string now = by_link ? other : own;
  struct stat before {
  }, after{};
  REQUIRE(::stat(now.c_str(), &before) == 0);
  mounted.stop();
  mounted.session.reset();
  CHECK(::stat(now.c_str(), &after) == 0);
  CHECK(before.st_dev == after.st_dev);
  mounted.path = moved + "/mnt";
  ::umount2(now.c_str(), MNT_DETACH);
  ::umount2(mounted.path.c_str(), MNT_DETACH);
  if (by_link) ::unlink(above.c_str());
  for (const std::string& each : {now, by_link ? aside : above, moved + "/mnt", moved}) {
    ::rmdir(each.c_str());
  }
}

TEST_CASE("fs: the daemon ends when its mount is unmounted") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone may call umount(2)");
  MountDirectory directory;
  auto served = [&] {
    return serve(directory.path, {}, [&] { ::umount2(directory.path.c_str(), MNT_DETACH); });
  };
  CHECK(served() == 0);  // it returns
}

TEST_CASE("fs: an ordinary user mounts, uses and unmounts") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone can become another user");
  if (std::system("command -v fusermount3 >/dev/null") != 0) skip("no fusermount3");
  if (::access("/etc/mtab", R_OK) != 0) skip("no /etc/mtab, where fusermount3 -u looks");
  MountDirectory directory;
  REQUIRE(::chmod(directory.base.c_str(), 0755) == 0);
  int status = as_nobody([&] { return check_mount_point(directory.path).error().code; });
  if (status == kCannot) skip("/dev/fuse cannot be given to everybody here");
  CHECK(status == EACCES);
  REQUIRE(::chown(directory.path.c_str(), 65534, 65534) == 0);
  status = as_nobody([&] {
    if (!check_mount_point(directory.path)) return 10;
    std::thread user;
    std::atomic<bool> right{false};
    int served = serve(directory.path, {}, [&] {
      user = std::thread([&] {
        struct stat root;
        right = Mounted::read(directory.path + "/value") == "7\n" &&
                ::stat(directory.path.c_str(), &root) == 0 && root.st_uid == 65534;
        if (std::system(("fusermount3 -u -z " + directory.path).c_str()) != 0) ::_exit(13);
      });
    });
    if (user.joinable()) user.join();
    if (served != 0) return served;
    return !right ? 11 : mounted_device(directory.path) ? 12 : 0;
  });
  CHECK(status == 0);
}

TEST_CASE("fs: a failure of fusermount3 is returned as an error") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("root alone can become another user");
  if (std::system("command -v fusermount3 >/dev/null") != 0) skip("no fusermount3");
  MountDirectory directory;
  REQUIRE(::chmod(directory.base.c_str(), 0755) == 0);
  int status = as_nobody([&] {
    Tree tree(::getuid(), ::getgid());
    PollLoop loop;
    auto session = Session::create({}, tree, loop);
    if (!session) return 10;
    auto mounted = (*session)->mount(directory.path);
    if (mounted) return 11;
    return mounted.error().reason.find("fusermount3") == std::string::npos ? 12 : 0;
  });
  if (status == kCannot) skip("/dev/fuse cannot be given to everybody here");
  CHECK(status == 0);
}

TEST_CASE("fs: a source may contain commas and backslashes") {
  NEEDS_FUSE();
  MountDirectory directory;
  SessionOptions options;
  options.source = "a,b\\c,suid";
  std::string line;
  auto look = [&] {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string each; std::getline(mounts, each);) {
      if (each.find(directory.path) != each.npos) line = each;
    }
    ::umount2(directory.path.c_str(), MNT_DETACH);
  };
  REQUIRE(serve(directory.path, std::move(options), look) == 0);
  CHECK(line.find("a,b\\134c,suid " + directory.path + " fuse.rocefs ") == 0);
  CHECK(line.find("default_permissions") != line.npos);
}
