#include "tools/rocefs/enter/overlay.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {
namespace {

Error failure(const std::string& what, int code = errno) {
  return errorf(code, "{}: {}", what, std::strerror(code));
}

// Names and types (S_IFMT) of a directory's entries.
using Names = std::map<std::string, mode_t>;

Result<std::string> link_text(int directory, const std::string& path) {
  char text[PATH_MAX];
  ssize_t size = ::readlinkat(directory, path.c_str(), text, sizeof text);
  if (size < 0 || size == sizeof text) return failure(path, size < 0 ? errno : ENAMETOOLONG);
  return std::string(text, static_cast<size_t>(size));
}

Result<Names> names_in(int directory, const std::string& path) {
  Fd fd(::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failure(path);
  auto close = [](DIR* dir) { ::closedir(dir); };
  std::unique_ptr<DIR, decltype(close)> open(::fdopendir(fd.get()), close);
  if (!open) return failure(path);
  int listed = fd.release();
  Names names;
  errno = 0;
  while (dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (::fstatat(listed, entry->d_name, &status, flags) == 0) {
      names[name] = status.st_mode & S_IFMT;
    }
    errno = 0;  // an entry that has just gone is left out
  }
  if (errno != 0) return failure(path);
  return names;
}

// Bind-mounts `path` below `directory`, with the mounts below it, at `target`.
Result<void> show(int directory, const std::string& path, const std::string& target) {
  Fd clone(::open_tree(
      directory, path.c_str(),
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT));
  if (!clone || ::move_mount(clone.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH)) {
    return failure(target);
  }
  return {};
}

// Creates an entry of this type as a mount point; a symbolic link is copied.
Result<void> make_entry(int fresh, const std::string& name, mode_t type, int source,
                        const std::string& path) {
  bool made = false;
  if (S_ISLNK(type)) {
    Result<std::string> text = link_text(source, path);
    if (!text) return text.error();
    made = ::symlinkat(text->c_str(), fresh, name.c_str()) == 0;
  } else if (S_ISDIR(type)) {
    made = ::mkdirat(fresh, name.c_str(), 0755) == 0;
  } else {
    made = bool(Fd(::openat(fresh, name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644)));
  }
  if (!made) return failure(path);
  return {};
}

std::string below(const std::string& directory, const std::string& name) {
  return directory == "." ? name : directory + "/" + name;
}

// Directories that hold entries of the tree beside entries of the machine.
bool may_be_shared(std::string_view path) {
  constexpr std::string_view kShared[] = {
      "bus",        "bus/pci",      "bus/pci/devices",     "bus/pci/drivers",      "class",
      "class/misc", "devices",      "devices/virtual",     "devices/virtual/misc", "kernel",
      "class/net",  "kernel/debug", "devices/virtual/net",
  };
  constexpr std::string_view kRootComplex = "devices/pci";
  if (path.starts_with(kRootComplex)) return path.find('/', kRootComplex.size()) == path.npos;
  return std::find(std::begin(kShared), std::end(kShared), path) != std::end(kShared);
}

// Entries of the machine that are hidden: a real NIC must not be found by a class directory that
// the tree lacks.
bool is_hidden(std::string_view path) {
  return path.starts_with("class/infiniband") || path.starts_with("dev/infiniband/");
}

// A directory of the tree and the machine's directory that it covers.
struct Place {
  std::string path;    // below the tree
  std::string target;  // absolute
  Names ours, theirs;
  bool partial;  // the tree's directory has entries that are not in `ours`

  bool shares(const std::string& name) const {
    auto our = ours.find(name), their = theirs.find(name);
    return our != ours.end() && their != theirs.end() && S_ISDIR(our->second) &&
           S_ISDIR(their->second) && may_be_shared(below(path, name));
  }

  // True if the machine's entry stays visible: alone, or in a shared directory.
  bool keeps(const std::string& name) const {
    if (ours.count(name)) return shares(name);
    if (partial && path == "class/net" && ::if_nametoindex(name.c_str()) == 0) {
      return S_ISREG(theirs.at(name));  // not an interface of this network namespace
    }
    return !is_hidden(below(path, name));
  }

  // True if every entry of the tree can be mounted on an entry of the machine, and none of the
  // machine's must be hidden. The machine's directory then stays live.
  bool fits() const {
    for (auto [name, type] : theirs) {
      if (!ours.count(name) && !keeps(name)) return false;
    }
    return std::all_of(ours.begin(), ours.end(), [&](const auto& our) {
      auto their = theirs.find(our.first);
      return !S_ISLNK(our.second) && their != theirs.end() && !S_ISLNK(their->second) &&
             S_ISDIR(our.second) == S_ISDIR(their->second);
    });
  }
};

// Links /dev/ptmx to the machine's /dev, which is mounted below `fresh`: a bind mount of ptmx alone
// would not find the pts beside it.
constexpr char kMachineDev[] = ".machine";

Result<void> keep_terminals(int fresh, const Fd& whole) {
  if (::mkdirat(fresh, kMachineDev, 0755) != 0 ||
      ::symlinkat(".machine/ptmx", fresh, "ptmx") != 0 ||
      ::move_mount(whole.get(), "", fresh, kMachineDev, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return failure("/dev/ptmx");
  }
  return {};
}

// Bind-mounts the machine's visible entries into a new directory.
Result<void> pass_through(const Place& place, int covered, int fresh) {
  for (auto [name, type] : place.theirs) {
    if (!place.keeps(name)) continue;
    Result<void> passed = make_entry(fresh, name, type, covered, name);
    if (passed && !S_ISLNK(type)) passed = show(covered, name, place.target + "/" + name);
    if (passed) continue;
    if (passed.error().code != ENOENT) return passed;
    ::unlinkat(fresh, name.c_str(), S_ISDIR(type) ? AT_REMOVEDIR : 0);  // the entry has just gone
  }
  return {};
}

// Covers the machine's directory by a tmpfs of the same mode, with the entries of both.
Result<void> renew(const Place& place, int tree, int covered) {
  bool dev = place.target == "/dev";
  Fd whole;
  if (dev) {
    whole = Fd(::open_tree(covered, "",
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH));
  }
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount(kOverlaySource, place.target.c_str(), "tmpfs", kFlags, "mode=0755") != 0) {
    return failure(place.target);
  }
  Fd fresh(::open(place.target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status;
  if (!fresh || ::fstat(covered, &status) != 0) return failure(place.target);
  (void)!::fchown(fresh.get(), status.st_uid,
                  status.st_gid);  // fails for an owner without a uid here
  ::fchmod(fresh.get(), status.st_mode & 07777);
  Place without_ptmx = place;
  auto ptmx = without_ptmx.theirs.find("ptmx");
  if (dev && ptmx != without_ptmx.theirs.end() && S_ISCHR(ptmx->second)) {
    without_ptmx.theirs.erase(ptmx);
    if (Result<void> done = keep_terminals(fresh.get(), whole); !done) return done;
  }
  if (Result<void> passed = pass_through(without_ptmx, covered, fresh.get()); !passed)
    return passed;
  for (auto [name, type] : place.ours) {
    if (place.shares(name)) continue;
    Result<void> made = make_entry(fresh.get(), name, type, tree, below(place.path, name));
    if (!made && made.error().code != ENOENT) return made;  // a device that has just left
  }
  if (dev) return {};
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(fresh.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    return failure(place.target);
  }
  return {};
}

// Removes the tree's entries that are not to be seen.
void leave_out(const DeviceView& view, int tree, const std::string& path, Names& names) {
  for (auto it = names.begin(); it != names.end();) {
    Result<std::string> link = std::string();
    if (S_ISLNK(it->second)) link = link_text(tree, below(path, it->first));
    it = link && view.shows(path, it->first, *link) ? std::next(it) : names.erase(it);
  }
}

Result<void> cover(int tree, const DeviceView& view, const std::string& path,
                   const std::string& target) {
  Fd covered(::open(target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!covered) return failure(target);
  Result<Names> ours = names_in(tree, path);
  if (!ours) return ours.error();
  if (path == ".") ours->erase("dev");  // belongs to /dev, not /sys/dev
  bool partial = view.is_partial(path);
  if (partial) leave_out(view, tree, path, *ours);
  Result<Names> theirs = names_in(covered.get(), ".");
  // A directory that the caller may not list (debugfs is root's) shows nothing to keep.
  if (!theirs && theirs.error().code == EACCES) theirs = Names{};
  if (!theirs) return failure(target, theirs.error().code);
  Place place{path, target, *ours, *theirs, partial};
  if (!place.fits()) {
    if (Result<void> renewed = renew(place, tree, covered.get()); !renewed) return renewed;
  }
  for (auto [name, type] : place.ours) {
    if (S_ISLNK(type)) continue;
    std::string from = below(path, name), to = target + "/" + name;
    bool covers = place.shares(name) || (S_ISDIR(type) && view.is_partial(from));
    Result<void> laid = covers ? cover(tree, view, from, to) : show(tree, from, to);
    if (!laid) return laid;
  }
  return {};
}

}  // namespace

Result<Overlay> Overlay::of(const std::string& tree, DeviceView view) {
  Fd root(::open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return failure(tree);
  Result<Names> names = names_in(root.get(), ".");
  if (!names) return failure(tree, names.error().code);
  Overlay overlay;
  overlay.tree_ = tree;
  overlay.view_ = std::move(view);
  overlay.places_ = {"/sys"};
  if (names->count("dev")) overlay.places_.push_back("/dev");
  return overlay;
}

Result<void> Overlay::lay() const {
  Fd tree(::open(tree_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!tree) return failure(tree_);
  for (const std::string& place : places_) {
    Result<void> laid = cover(tree.get(), view_, place == "/dev" ? "dev" : ".", place);
    if (!laid) return laid;
  }
  return {};
}

}  // namespace rocefs
