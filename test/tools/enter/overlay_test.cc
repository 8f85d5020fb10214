// Overlays of made-up trees and machines. Real ones: test/system/enter.sh.
#include "tools/rocefs/enter/overlay.h"
#include "test/here.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "fs/namespaces.h"
#include "test/skip.h"

namespace rocefs {
namespace {

namespace files = std::filesystem;

constexpr int kCannot = 77;

// Two made-up file systems, /sys and /tmp/tree, in a mount namespace of their own.
struct World {
  static constexpr const char* kTree = "/tmp/tree";

  static bool mount_empty(const char* at) {
    return ::mount("none", at, "tmpfs", 0, "mode=755") == 0;
  }
  bool make() {
    return enter_private_mounts({"/sys", "/dev"}) && mount_empty("/sys") && mount_empty("/tmp") &&
           ::mkdir(kTree, 0755) == 0;
  }

  void add(const std::string& path, const std::string& text = "") {
    files::create_directories(files::path(path).parent_path());
    std::ofstream(path) << text << "\n";
  }
  void machine(const std::string& path, const std::string& text = "machine") {
    add("/sys/" + path, text);
  }
  void tree(const std::string& path, const std::string& text = "tree") {
    add(std::string(kTree) + "/" + path, text);
  }
  void link(const std::string& path, const std::string& text) {
    files::create_directories(files::path(path).parent_path());
    files::create_symlink(text, path);
  }

  std::string lay() {
    Result<Overlay> overlay = Overlay::of(kTree);
    if (!overlay) return overlay.error().reason;
    Result<void> laid = overlay->lay();
    return laid ? "" : laid.error().reason;
  }
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  return std::getline(file, text) ? text : "nothing";
}

// Sorted names in a directory.
std::string list(const std::string& path) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : files::directory_iterator(path, error)) {
    names.insert(entry.path().filename());
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// Runs `look` in a world of its own; returns its result.
std::string in_a_world(const std::function<std::string(World&)>& look) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t pid = ::fork();
  if (pid == 0) {
    World world;
    if (!world.make()) ::_exit(kCannot);
    std::string seen;
    try {
      seen = look(world);
    } catch (const std::exception& error) {
      seen = error.what();
    }
    (void)!::write(ends[1], seen.data(), seen.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string seen;
  char buffer[4096];
  for (ssize_t size; (size = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    seen.append(buffer, size);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot) test::skip("no mount namespace");
  CHECK(status == 0);
  return seen;
}

void expect(const std::string& wanted, const std::function<std::string(World&)>& look) {
  if (!test::has_open_tree()) test::skip("no open_tree(2) here");
  CHECK(in_a_world(look) == wanted);
}

}  // namespace

TEST_CASE("overlay: the tree's entries appear beside the machine's, and are live") {
  expect("block infiniband infiniband_verbs; machine; mb_0; uverbs0", [](World& world) {
    world.machine("class/block/vda/size");
    world.tree("class/infiniband/mb_0/node_type");
    world.tree("class/infiniband_verbs/abi_version");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    files::remove(std::string(World::kTree) + "/class/infiniband_verbs/abi_version");
    world.tree("class/infiniband_verbs/uverbs0");
    return list("/sys/class") + "; " + text_of("/sys/class/block/vda/size") + "; " +
           list("/sys/class/infiniband") + "; " + list("/sys/class/infiniband_verbs");
  });
}

TEST_CASE("overlay: an empty /sys becomes the tree") {
  expect("class kernel; tree", [](World& world) {
    world.tree("class/infiniband/mb_0");
    world.tree("kernel/debug/rocefs/seed");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    return list("/sys") + "; " + text_of("/sys/kernel/debug/rocefs/seed");
  });
}

TEST_CASE(
    "overlay: when the machine has all directories of the tree, its other entries stay live") {
  expect("infiniband input; mb_0", [](World& world) {
    world.machine("class/infiniband/mlx5_0/node_type");
    world.tree("class/infiniband/mb_0/node_type");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    world.machine("class/input/mouse0");
    return list("/sys/class") + "; " + list("/sys/class/infiniband");
  });
}

TEST_CASE("overlay: a real NIC is hidden, even in a class that the tree lacks") {
  expect("block infiniband; mb_0", [](World& world) {
    world.machine("class/block/vda");
    world.machine("class/infiniband/mlx5_0/node_type");
    world.machine("class/infiniband_verbs/uverbs0/ibdev");
    world.tree("class/infiniband/mb_0/node_type");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    return list("/sys/class") + "; " + list("/sys/class/infiniband");
  });
}

TEST_CASE("overlay: a root complex in both keeps the machine's devices") {
  expect("0000:2b:00.0 0000:2b:01.0 power; tree; machine", [](World& world) {
    world.machine("devices/pci0000:2b/power/control");
    world.machine("devices/pci0000:2b/0000:2b:00.0/vendor");
    world.machine("devices/pci0000:2b/0000:2b:01.0/vendor");
    world.tree("devices/pci0000:2b/0000:2b:00.0/vendor");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    std::string complex = "/sys/devices/pci0000:2b/";
    return list(complex) + "; " + text_of(complex + "0000:2b:00.0/vendor") + "; " +
           text_of(complex + "0000:2b:01.0/vendor");
  });
}

TEST_CASE("overlay: links keep their targets, and of two with one name the tree's wins") {
  expect("eth0 lo; tree; machine", [](World& world) {
    world.machine("devices/virtual/net/lo/mtu");
    world.machine("devices/virtual/net/eth0/mtu");
    world.tree("devices/pci0000:2b/net/eth0/mtu");
    world.link("/sys/class/net/lo", "../../devices/virtual/net/lo");
    world.link("/sys/class/net/eth0", "../../devices/virtual/net/eth0");
    world.link(std::string(World::kTree) + "/class/net/eth0", "../../devices/pci0000:2b/net/eth0");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    return list("/sys/class/net") + "; " + text_of("/sys/class/net/eth0/mtu") + "; " +
           text_of("/sys/class/net/lo/mtu");
  });
}

TEST_CASE("overlay: a directory that others cannot read stays so, and is read-only") {
  expect("700; other rocefs; machine; Read-only file system", [](World& world) {
    world.machine("kernel/debug/other/value");
    world.tree("kernel/debug/rocefs/seed");
    ::chmod("/sys/kernel/debug", 0700);
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    struct stat status {};
    ::stat("/sys/kernel/debug", &status);
    ::mkdir("/sys/kernel/debug/new", 0755);
    std::string refused = std::strerror(errno);
    return fmt::format("{:o}; {}; {}; {}", status.st_mode & 07777, list("/sys/kernel/debug"),
                       text_of("/sys/kernel/debug/other/value"), refused);
  });
}

TEST_CASE("overlay: the tree's dev lies over a private /dev with working devices and terminals") {
  expect("uverbs0; a device 1:3; null 1:3; terminal; no /sys/dev; all", [](World& world) {
    world.tree("class/infiniband/mb_0/node_type");
    std::string wanted = list("/dev");
    world.link(std::string(World::kTree) + "/dev/infiniband/uverbs0", "/dev/null");
    if (std::string failed = world.lay(); !failed.empty()) return failed;
    std::string seen = list("/dev/infiniband");
    for (const char* path : {"/dev/infiniband/uverbs0", "/dev/null"}) {
      int fd = ::open(path, O_RDWR);
      struct stat status {};
      ::fstat(fd, &status);
      seen +=
          fmt::format("; {} {}:{}", seen == "uverbs0" ? "a device" : "null",
                      S_ISCHR(status.st_mode) ? major(status.st_rdev) : 0, minor(status.st_rdev));
    }
    int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    bool opened = terminal >= 0 && ::unlockpt(terminal) == 0 &&
                  ::open(::ptsname(terminal), O_RDWR | O_NOCTTY) >= 0;
    seen += opened ? "; terminal" : fmt::format("; no terminal: {}", std::strerror(errno));
    seen += files::exists("/sys/dev") ? "; /sys/dev" : "; no /sys/dev";
    std::istringstream names(wanted);
    for (std::string name; names >> name;) {
      if (!files::exists(files::symlink_status("/dev/" + name))) return seen + "; lost " + name;
    }
    return seen + "; all";
  });
}

TEST_CASE("overlay: a missing tree is an error that names its path") {
  Result<Overlay> overlay = Overlay::of("/nonexistent/tree");
  REQUIRE_FALSE(overlay);
  CHECK(overlay.error().code == ENOENT);
  CHECK(overlay.error().reason == "/nonexistent/tree: No such file or directory");
}

}  // namespace rocefs
