#include "tools/mango-pccd/plugins.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "pcc/card/algorithm_info.h"
#include "pcc/card/messages.h"
#include "tools/mango-pccd/last_words.h"
#include "tools/mango-pccd/trial.h"

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

Plugins::Version Plugins::Version::of(const std::string& file) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) return {};
  auto time = [](const timespec& at) { return at.tv_sec * kSecond + at.tv_nsec; };
  return {status.st_dev, status.st_ino, status.st_size, time(status.st_mtim), time(status.st_ctim)};
}

Result<PccLoaded> Plugins::load(const std::string& directory, bool force) {
  Result<std::vector<std::string>> names = libraries_in(directory);
  if (!names) return names.error();
  std::vector<PccLoaded::File> found;  // with the reason of a refusal, if there is one already
  std::vector<LibraryCopy> libraries;
  std::vector<Version> versions;
  for (const std::string& name : *names) {
    const std::string file = files::path(directory) / name;
    const Version version = Version::of(file);
    const Loaded* loaded = find(file);
    if (loaded && loaded->version == version && !force) continue;
    Result<LibraryCopy> library = LibraryCopy::of(file);
    found.push_back({name, "", library ? "" : library.error().reason});
    if (!library) continue;
    libraries.push_back(std::move(*library));
    versions.push_back(version);
  }
  const std::vector<std::string> reasons = try_plugins(libraries);
  PccLoaded loaded;
  size_t room = kRoomForFiles - kRoomForLoaded - kRoomForTheRest, rest = 0, tried = 0;
  for (PccLoaded::File& file : found) {
    if (file.reason.empty()) {
      const size_t i = tried++;
      file.reason = reasons[i];
      if (file.reason.empty()) load_file(libraries[i], versions[i], file);
    }
    file.reason.resize(std::min(file.reason.size(), kMaxReason));
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

void Plugins::load_file(const LibraryCopy& library, const Version& version, PccLoaded::File& file) {
  Loaded* old = find(library.file);
  LoadingHere here(file.name.c_str());
  watchdog_.set_loading(file.name);
  auto fit = [this](unsigned slot, const PccAlgorithm& algorithm) { return fits(slot, algorithm); };
  Result<std::unique_ptr<PccPlugin>> plugin =
      old ? PccPlugin::load_again(*old->plugin, library, fit)
          : PccPlugin::load(handle_, library, fit);
  if (plugin) {
    file.loaded = (*plugin)->name();
    file.again = old != nullptr;
    if (!old) old = &plugins_.emplace_back();
    std::swap(old->plugin, *plugin);
    old->version = version;
    plugin->reset();
  } else {
    file.reason = plugin.error().reason;
  }
  watchdog_.set_loading("");
}

mango_status_e Plugins::unload(unsigned slot) {
  auto found = std::find_if(plugins_.begin(), plugins_.end(),
                            [&](const Loaded& one) { return one.plugin->slot() == slot; });
  if (found == plugins_.end()) return MANGO_STATUS_NOT_FOUND;
  mango_status_e status = found->plugin->remove();
  if (status != MANGO_STATUS_OK) return status;
  const std::string file = files::path(found->plugin->file()).filename();
  LoadingHere here(file.c_str(), "unloaded");
  plugins_.erase(found);
  return status;
}

Plugins::Loaded* Plugins::find(const std::string& file) {
  auto found = std::find_if(plugins_.begin(), plugins_.end(),
                            [&](const Loaded& one) { return one.plugin->file() == file; });
  return found == plugins_.end() ? nullptr : &*found;
}

Result<void> Plugins::fits(unsigned slot, const PccAlgorithm& algorithm) const {
  PccLoaded loaded;
  loaded.algorithms = describe_all(handle_.controller());
  std::erase_if(loaded.algorithms, [slot](const auto& one) { return one.slot == slot; });
  loaded.algorithms.push_back(describe(algorithm, slot));
  size_t size = format_word(CardAnswer{1, std::move(loaded)}).size();
  if (size <= kMaxCardMessage - kRoomForFiles) return {};
  return Error{ENOEXEC, "what it says of itself and its parameters is too long"};
}

}  // namespace rocefs
