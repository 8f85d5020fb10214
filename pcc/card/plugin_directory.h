// PluginDirectory: where the plugins of a device lie: pcc/plugin_dir. One of its own, made when it
// is first asked for, unless it is told another.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/tree/caller_file.h"
#include "core/tree/knob.h"

namespace rocefs {

// What a directory of one's own is made of.
struct OwnDirectories {
  std::string root;  // is there already
  std::string path;  // below it, without a slash at either end; empty: there are no directories
  uid_t uid = 0;
  gid_t gid = 0;
};

// Makes PATH/NAME below the root, each part 0755 and uid:gid's. EPERM when a part is there and is
// somebody else's. Any thread; answers its path.
Result<std::string> make_directory(const OwnDirectories& where, const std::string& name);

inline constexpr KnobRow kPluginKnobs[] = {
    {"plugin_dir", KnobType::kText, 0, 1024, "", "", "",
     "the directory of the device's plugins (*.so), a full path; at first one of its own below "
     "/run, XDG_RUNTIME_DIR or /tmp"},
};

// Control thread. It outlives the engine's thread.
class PluginDirectory final : public KnobOwner {
 public:
  // `name` is the device's.
  PluginDirectory(OwnDirectories own, std::string name, Engine& engine, CallerFiles& files);
  // What is empty of its own directory is left to nobody.
  ~PluginDirectory() override;

  // Adds plugin_dir below `directory`.
  void add_file(Tree& tree, const std::string& directory);
  // It is there now, if it is one's own; ENOENT where there is none at all.
  Result<std::string> ready() const;

  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue>) override {}

 private:
  class PathFile;

  const std::string& path() const;
  bool is_own() const;

  const OwnDirectories own_;
  const std::string name_;
  CallerFiles& files_;
  std::shared_ptr<KnobSet> set_;
};

}  // namespace rocefs
