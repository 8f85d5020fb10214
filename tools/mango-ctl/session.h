// Session: one run of the command line: the tree, what it prints, and what failed.
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

// What a shell sees.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNoDevice = 3,
  kWrongState = 4,
};
ExitStatus exit_status(const Error& error);
// `mango-ctl: error: TEXT` on stderr, in one line.
void complain(std::string_view text);

class Session {
 public:
  Session(NicTree tree, bool json) : tree_(std::move(tree)), json_(json) {}

  const NicTree& tree() const { return tree_; }
  bool json() const { return json_; }

  // Text for stdout, held back until finish(): after an error nothing is printed there.
  void print(std::string_view text) { text_ += text; }
  // One of the objects that --json prints, as one array.
  void add(Json row) { rows_.push_back(std::move(row)); }
  // finish() prints nothing: the command does so by itself, or has nothing to say.
  void streams() { streamed_ = true; }
  // Prints now, what comes without end; false when nobody reads it any more.
  bool stream(std::string_view text);
  // On stderr, at once.
  void notice(std::string_view text);
  void warn(std::string_view text);
  void fail(const Error& error) { errors_.push_back(error); }
  bool failed() const { return !errors_.empty(); }

  // Runs `each` for a device, or for every one if it is called `all`; what fails is said with the
  // name of its device if there are several, and the others are done all the same.
  void each_device(const std::string& device,
                   const std::function<Result<void>(const std::string& name)>& each);

  // Prints all, and says how it went: the first error counts.
  ExitStatus finish();

 private:
  NicTree tree_;
  bool json_;
  bool streamed_ = false;
  std::string text_;
  Json rows_ = Json::array();
  std::vector<Error> errors_;
};

// D/FILE, as the tree has it.
std::string device_file(const std::string& device, std::string_view file);

// Files of one device that are read one after the other; the first failure is kept.
class DeviceReader {
 public:
  DeviceReader(const NicTree& tree, std::string device) : tree_(tree), device_(std::move(device)) {}

  std::string text(std::string_view file);
  bool flag(std::string_view file) { return text(file) == "1"; }
  // 0 if it is none.
  uint64_t number(std::string_view file);
  Result<void> outcome() const { return outcome_; }

 private:
  const NicTree& tree_;
  std::string device_;
  Result<void> outcome_;
};

// Without a newline; what is no UTF-8 is replaced.
std::string one_line(const Json& json);
// A number where the text is one, else the text.
Json number_or_text(const std::string& text);
// The same, but null where it is nothing: empty, `-` or `none`.
Json name_or_null(const std::string& text);

}  // namespace rocefs
