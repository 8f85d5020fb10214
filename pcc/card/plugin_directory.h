// PluginDirectory: the directory of a device's plugins: pcc/plugin_dir. By default a private one,
// created on first use.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/tree/caller_file.h"
#include "core/tree/knob.h"

namespace rocefs {

// Location and owner of private directories.
struct OwnDirectories {
  std::string root;  // exists
  std::string path;  // below the root, without a slash at either end; empty: no directories
  uid_t uid = 0;
  gid_t gid = 0;
};

// Creates PATH/NAME below the root, each part 0755 and owned by uid:gid; returns its path. EPERM if
// a part exists and has another owner. Any thread.
Result<std::string> make_directory(const OwnDirectories& where, const std::string& name);

inline constexpr KnobRow kPluginKnobs[] = {
    {"plugin_dir", KnobType::kText, 0, 1024, "", "", "",
     "the directory of the device's plugins (*.so), a full path; at first one of its own below "
     "/run, XDG_RUNTIME_DIR or /tmp"},
};

// Control thread. Outlives the engine's thread.
class PluginDirectory final : public KnobOwner {
 public:
  // `name` is the device's.
  PluginDirectory(OwnDirectories own, std::string name, Engine& engine, CallerFiles& files);
  // Removes the empty parts of the private directory.
  ~PluginDirectory() override;

  // Adds plugin_dir below `directory`.
  void add_file(Tree& tree, const std::string& directory);
  // Path of the directory, created first if private. ENOENT without a directory.
  Result<std::string> ready() const;

  const std::shared_ptr<KnobSet>& knobs() const { return set_; }
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
