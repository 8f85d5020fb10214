// Session: one run of a command: the tree, the output, and the errors.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "tools/mango-ctl/nic_tree.h"

namespace rocefs {

using Json = nlohmann::ordered_json;

// Exit status.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNoDevice = 3,
  kWrongState = 4,
};
ExitStatus exit_status(const Error& error);
// Error with the status kWrongState, whatever errno the file has for it.
Error wrong_state(std::string reason);
// Prints `mango-ctl: error: TEXT` on stderr, in one line.
void complain(std::string_view text);

class Session {
 public:
  Session(NicTree tree, bool json) : tree_(std::move(tree)), json_(json) {}

  const NicTree& tree() const { return tree_; }
  bool json() const { return json_; }

  // Text for stdout, held back until finish(): after an error nothing is printed there.
  void print(std::string_view text) { text_ += text; }
  // Object for the array that --json prints.
  void add(Json row) { rows_.push_back(std::move(row)); }
  // Makes finish() print nothing: the command prints by itself, or has no output.
  void streams() { streamed_ = true; }
  // Prints at once, for output without end; false when no reader is left.
  bool stream(std::string_view text);
  // Print on stderr at once.
  void notice(std::string_view text);
  void warn(std::string_view text);
  void fail(const Error& error) { errors_.push_back(error); }
  // Fails with kUsage: no mount would take such a command line.
  void misused(const Error& error) {
    fail(error);
    misused_ = true;
  }
  // Status of a command that did what it was asked, and found something.
  void end_with(ExitStatus status) { status_ = status; }
  bool failed() const { return !errors_.empty(); }

  // Runs `each` for a device, or for every device if its name is `all`. After a failure of one the
  // others follow; its error then begins with the device's name.
  void each_device(const std::string& device,
                   const std::function<Result<void>(const std::string& name)>& each);

  // Prints the output or the errors; the status is that of the first error.
  ExitStatus finish();

 private:
  NicTree tree_;
  bool json_;
  bool streamed_ = false;
  bool misused_ = false;
  std::string text_;
  Json rows_ = Json::array();
  std::vector<Error> errors_;
  ExitStatus status_ = kDone;
};

// Path of a device's file in the tree.
std::string device_file(const std::string& device, std::string_view file);

// Reader of several files of one device; keeps the first failure.
class DeviceReader {
 public:
  DeviceReader(const NicTree& tree, std::string device) : tree_(tree), device_(std::move(device)) {}

  std::string text(std::string_view file);
  bool flag(std::string_view file) { return text(file) == "1"; }
  // 0 if the text is no number.
  uint64_t number(std::string_view file);
  Result<void> outcome() const { return outcome_; }

 private:
  const NicTree& tree_;
  std::string device_;
  Result<void> outcome_;
};

// JSON text without a newline; octets that are not UTF-8 are replaced.
std::string one_line(const Json& json);
// Number if the text is one, else the text.
Json number_or_text(const std::string& text);
// Text, or null if it stands for none: empty, `-` or `none`.
Json name_or_null(const std::string& text);

}  // namespace rocefs
