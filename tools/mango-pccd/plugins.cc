#include "tools/mango-pccd/plugins.h"

#include <fmt/format.h>
#include <limits.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "pcc/card/algorithm_info.h"
#include "pcc/card/messages.h"
#include "tools/mango-pccd/last_words.h"

namespace rocefs {
namespace {

namespace files = std::filesystem;

// Share of a message for files and reasons of refusal; the rest is for algorithms.
constexpr size_t kRoomForFiles = kMaxCardMessage / 4;
constexpr size_t kMaxReason = 300;
// Escaping triples a word at most; kLine is the rest of its line.
constexpr size_t kTimes = 3, kLine = 16;
// Limit of loaded files by slots, with names of maximum length.
constexpr size_t kRoomForLoaded = MANGO_PCC_MAX_SLOTS * (kTimes * (NAME_MAX + 31) + kLine);
constexpr size_t kRoomForTheRest = 200;
static_assert(kRoomForFiles > 2 * (kRoomForLoaded + kRoomForTheRest));

Result<std::vector<std::string>> libraries_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  files::directory_iterator entries(directory, error);
  for (; !error && entries != files::directory_iterator(); entries.increment(error)) {
    if (entries->path().extension() == ".so") names.push_back(entries->path().filename());
  }
  if (error) return errorf(error.value(), "{}: {}", directory, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<PccLoaded> Plugins::load(const std::string& directory) {
  Result<std::vector<std::string>> names = libraries_in(directory);
  if (!names) return names.error();
  PccLoaded loaded;
  size_t room = kRoomForFiles - kRoomForLoaded - kRoomForTheRest, rest = 0;
  for (const std::string& name : *names) {
    if (is_loaded(files::path(directory) / name)) continue;
    PccLoaded::File file = load_file(directory, name);
    size_t needed =
        file.loaded.empty() ? kTimes * (file.name.size() + file.reason.size()) + kLine : 0;
    if (needed > room) {
      ++rest;
      continue;
    }
    room -= needed;
    loaded.files.push_back(std::move(file));
  }
  if (rest > 0) {
    loaded.files.push_back({fmt::format("{} more files", rest), "", "there is no room to say why"});
  }
  loaded.algorithms = describe_all(handle_.controller());
  return loaded;
}

PccLoaded::File Plugins::load_file(const std::string& directory, const std::string& name) {
  PccLoaded::File file{name, "", ""};
  std::string path = files::path(directory) / name;
  LoadingHere here(name.c_str());
  watchdog_.set_loading(name);
  Result<std::unique_ptr<PccPlugin>> plugin = PccPlugin::load(handle_, path);
  watchdog_.set_loading("");
  if (!plugin) {
    file.reason = plugin.error().reason.substr(0, kMaxReason);
    return file;
  }
  if (!fits_in_a_message()) {
    file.reason = "what it says of itself and its parameters is too long";
    return file;
  }
  file.loaded = (*plugin)->name();
  plugins_.push_back(std::move(*plugin));
  return file;
}

mango_status_e Plugins::unload(unsigned slot) {
  auto found = std::find_if(plugins_.begin(), plugins_.end(),
                            [&](const auto& plugin) { return plugin->slot() == slot; });
  if (found == plugins_.end()) return MANGO_STATUS_NOT_FOUND;
  mango_status_e status = (*found)->remove();
  if (status != MANGO_STATUS_OK) return status;
  LoadingHere here((*found)->file().c_str());
  plugins_.erase(found);
  return status;
}

bool Plugins::is_loaded(const std::string& file) const {
  return std::any_of(plugins_.begin(), plugins_.end(),
                     [&](const auto& plugin) { return plugin->file() == file; });
}

bool Plugins::fits_in_a_message() const {
  PccLoaded loaded;
  loaded.algorithms = describe_all(handle_.controller());
  return format_word(CardAnswer{1, std::move(loaded)}).size() <= kMaxCardMessage - kRoomForFiles;
}

}  // namespace rocefs
