// PccFiles: pcc/ of one device, while the driver is bound.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "core/tree/trigger.h"
#include "pcc/card/pcc_device.h"
#include "pcc/card/plugin_directory.h"
#include "pcc/card/qp_files.h"

namespace rocefs {

// Mode: place where the card's algorithms run.
enum class PccMode : uint8_t { kSoc, kHost };
inline constexpr KnobRow kPccModeKnobs[] = {
    {"mode", KnobType::kWord, 0, 0, "soc", "soc host", "",
     "where algorithms run: on the card's processor, or on the host. Takes effect when the driver "
     "takes the device again"},
};

// Control thread.
class PccFiles {
 public:
  struct Parts {
    Tree& tree;
    PccDevice& device;
    Engine& engine;
    std::shared_ptr<KnobSet> mode;  // kPccModeKnobs
    PluginDirectory& plugins;
    std::function<PccMode()> mode_active;
    // Error if no message can be sent to the card's processor.
    std::function<Result<void>()> may_send;
    // Whether queue pairs have become active, or ceased to be, since the last call.
    std::function<bool()> qps_changed;
  };

  // All parts outlive the object, which outlives the files.
  explicit PccFiles(Parts parts);

  bool bound() const { return bound_; }
  // Adds all files in a new directory, at a bind, when somebody looks for them. Settings have their
  // defaults.
  void bind(const std::string& directory);
  // Before the directory is removed.
  void unbind();

 private:
  using Act = std::function<void(const std::string& order, Answer<void> answer)>;
  void trigger(const TriggerRow& row, Act act, TriggerFile::Show show = nullptr);
  void value(std::string_view name, std::string_view doc, FunctionAttribute::Show show);
  void add_files();
  void add_settings();
  void add_algorithms();
  void add_plugins();
  void add_views();
  void change_state(const std::string& order, Answer<void> answer);
  // Program that has claimed the windows, and its process; empty if none has.
  std::string program() const;
  std::string status() const;
  // Rebuilds params/ for the applied algorithm.
  void update_parameters();
  void add_parameter(const std::string& directory, const std::string& name);
  unsigned setting(size_t index) const;
  // Threads that call algorithms, or that a start would use.
  unsigned threads() const;

  const Parts parts_;
  std::string directory_;
  std::shared_ptr<KnobSet> settings_;
  std::unique_ptr<QpFiles> qps_;  // while bound, when somebody has looked for the files
  bool bound_ = false;
  std::weak_ptr<Attribute> state_;
  std::string shown_;  // algorithm shown in params/
  std::vector<std::string> parameters_;
};

}  // namespace rocefs
