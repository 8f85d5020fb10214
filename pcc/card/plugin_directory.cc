#include "pcc/card/plugin_directory.h"
#include "core/tree/knob_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/fd.h"
#include "core/base/text.h"

namespace rocefs {
namespace {

Error failure(const std::string& path) {
  return errorf(errno, "{}: {}", path, std::strerror(errno));
}

// Opens a part below its parent without following links: below /tmp others can create entries
// first.
Result<Fd> enter(const Fd& parent, const std::string& part, const std::string& path, uid_t uid,
                 gid_t gid) {
  bool made = ::mkdirat(parent.get(), part.c_str(), 0755) == 0;
  if (!made && errno != EEXIST) return failure(path);
  Fd fd(::openat(parent.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return failure(path);
  if (made) {
    if (::fchmod(fd.get(), 0755) != 0) return failure(path);
    if (uid != ::geteuid() && ::fchown(fd.get(), uid, gid) != 0) return failure(path);
  }
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return failure(path);
  if (status.st_uid != uid && status.st_uid != ::geteuid()) {
    return errorf(EPERM, "{} is somebody else's", path);
  }
  return fd;
}

}  // namespace

Result<std::string> make_directory(const OwnDirectories& where, const std::string& name) {
  Fd at(::open(where.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at) return failure(where.root);
  std::string path = where.root;
  for (std::string_view part : split(where.path, "/")) {
    path += fmt::format("/{}", part);
    Result<Fd> next = enter(at, std::string(part), path, ::geteuid(), ::getegid());
    if (!next) return next.error();
    at = std::move(*next);
  }
  path += "/" + name;
  Result<Fd> last = enter(at, name, path, where.uid, where.gid);
  if (!last) return last.error();
  return path;
}

namespace {

std::string own_path(const OwnDirectories& own, const std::string& name) {
  return own.path.empty() ? "" : fmt::format("{}/{}/{}", own.root, own.path, name);
}

}  // namespace

// A store checks the directory as its writer, in a process that may hang. Values stored
// before the daemon serves, or in one transaction with other knobs, are checked when plugins are
// loaded.
class PluginDirectory::PathFile final : public KnobFile,
                                        public std::enable_shared_from_this<PathFile> {
 public:
  PathFile(const PluginDirectory& owner, CallerFiles& files)
      : KnobFile(owner.set_, 0), owner_(owner), files_(files) {}

  bool keeps_opener() const override { return true; }
  Result<std::string> show() override {
    if (owner_.is_own()) {
      if (Result<std::string> made = owner_.ready(); !made) return made.error();
    }
    return KnobFile::show();
  }

  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    Result<KnobValue> value = parse_knob(row(), text);
    if (!value || operation->caller().pid == 0) {
      return KnobFile::store(text, operation, std::move(answer));
    }
    std::string path = std::get<std::string>(*value);
    if (!path.starts_with('/')) return KnobFile::store(path, operation, std::move(answer));
    const Result<IdentityPtr>& who = operation->identity();
    if (!who) return answer(who.error());
    auto looking = std::make_shared<CallerFilePtr>();
    operation->on_interrupt([looking] {
      if (CallerFilePtr file = *looking) file->give_up(Error{EINTR, "interrupted"});
    });
    *looking = files_.open(*who, path, FileUse::kDirectory,
                           [self = shared_from_this(), path, operation, looking,
                            answer = std::move(answer)](Result<void> there) mutable {
                             looking->reset();
                             if (!there) return answer(there);
                             self->KnobFile::store(path, operation, std::move(answer));
                           });
  }

 private:
  const PluginDirectory& owner_;
  CallerFiles& files_;
};

PluginDirectory::PluginDirectory(OwnDirectories own, std::string name, Engine& engine,
                                 CallerFiles& files)
    : own_(std::move(own)), name_(std::move(name)), files_(files) {
  std::vector<KnobValue> start{own_path(own_, name_)};
  set_ = std::make_shared<KnobSet>(kPluginKnobs, engine, this, std::move(start));
}

// The parent belongs to the mount and is shared by its devices.
PluginDirectory::~PluginDirectory() {
  if (own_.path.empty() || ::rmdir(own_path(own_, name_).c_str()) != 0) return;
  (void)::rmdir(fmt::format("{}/{}", own_.root, own_.path).c_str());
}

void PluginDirectory::add_file(Tree& tree, const std::string& directory) {
  add_knob_file(tree, directory, std::make_shared<PathFile>(*this, files_));
}

const std::string& PluginDirectory::path() const {
  return std::get<std::string>(set_->value(0));
}

bool PluginDirectory::is_own() const {
  return !own_.path.empty() && path() == own_path(own_, name_);
}

Result<std::string> PluginDirectory::ready() const {
  if (is_own()) return make_directory(own_, name_);
  if (path().empty()) return Error{ENOENT, "plugin_dir names no directory"};
  return path();
}

Result<void> PluginDirectory::check(std::span<const KnobValue> proposed) const {
  const std::string& path = std::get<std::string>(proposed[0]);
  if (path.empty() || path[0] == '/') return {};
  return errorf(EINVAL, "'{}': a full path is wanted", path);
}

}  // namespace rocefs
