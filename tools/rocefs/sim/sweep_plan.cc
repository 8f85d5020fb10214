#include "tools/rocefs/sim/sweep_plan.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/kstrto.h"
#include "tools/rocefs/sim/inputs.h"
#include "tools/rocefs/sim/output_files.h"

namespace rocefs {
namespace {

using PlanJson = nlohmann::ordered_json;

std::string plan_path(const std::string& directory) {
  return directory + "/sweep.json";
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Whether a run, whole or in progress, is in the directory of a sweep.
bool has_run(const std::string& directory) {
  std::error_code failed;
  std::filesystem::recursive_directory_iterator entry(directory + "/runs", failed), end;
  for (; !failed && entry != end; entry.increment(failed)) {
    const std::filesystem::path& path = entry->path();
    if (path.filename() == "summary.json" || path.extension() == ".part") return true;
  }
  return false;
}

}  // namespace

std::string SweepRun::name() const {
  return variant ? fmt::format("{}, seed {}", variant->name, seed) : fmt::format("seed {}", seed);
}

std::string SweepRun::directory() const {
  return variant ? fmt::format("runs/{}/seed-{}", variant->name, seed)
                 : fmt::format("runs/seed-{}", seed);
}

std::vector<SweepRun> SweepPlan::runs(Shard shard) const {
  std::vector<const Scenario::Variant*> variants;
  for (const Scenario::Variant& variant : config_.scenario.variants) variants.push_back(&variant);
  if (variants.empty()) variants.push_back(nullptr);
  std::vector<SweepRun> runs;
  uint64_t number = 0;
  for (const Scenario::Variant* variant : variants) {
    for (uint64_t seed : seeds_) {
      if (number++ % shard.count == shard.index - 1) runs.push_back({variant, seed});
    }
  }
  return runs;
}

std::string SweepPlan::origin() const {
  return fmt::format("{}, seeds {}, configuration {:016x}", base_name(config_.name),
                     format_seeds(seeds_), config_.hash);
}

// Shards may claim one directory at a time: each renames a whole file of the same content.
Result<void> SweepPlan::claim(const std::string& directory) const {
  Result<SavedPlan> saved = read_plan(directory);
  if (!saved && saved.error().code != ENOENT) return saved.error();
  if (saved && saved->config.hash != config_.hash && has_run(directory)) {
    return errorf(EEXIST, "{} has runs of another configuration, {:016x}, not {:016x}", directory,
                  saved->config.hash, config_.hash);
  }
  if (saved && saved->config.hash == config_.hash && saved->seeds == seeds_) return {};
  PlanJson json = PlanJson::object();
  json["file"] = base_name(config_.name);
  json["configuration"] = fmt::format("{:016x}", config_.hash);
  if (config_.inputs) json["inputs"] = fmt::format("{:016x}", config_.inputs);
  json["seeds"] = format_seeds(seeds_);
  json["text"] = config_.text;
  std::string path = plan_path(directory);
  // Processes of other machines may have the same number.
  std::string next = fmt::format("{}.{}.{}", path, ::getpid(), monotonic_ns());
  std::string text = json.dump(1, ' ', false, PlanJson::error_handler_t::replace) + "\n";
  if (PlanJson::parse(text).at("text") != config_.text) {
    return errorf(EINVAL, "{}: a sweep wants a file of UTF-8", config_.name);
  }
  if (Result<void> written = write_file(next, text); !written) return written;
  if (std::rename(next.c_str(), path.c_str()) == 0) return {};
  return errorf(errno, "{}: {}", path, std::strerror(errno));
}

Result<SavedPlan> read_plan(const std::string& directory) {
  std::string path = plan_path(directory);
  std::ifstream file(path, std::ios::binary);
  if (!file) return errorf(errno ? errno : EIO, "{}: {}", path, std::strerror(errno ? errno : EIO));
  PlanJson json = PlanJson::parse(file, nullptr, false);
  auto text_of = [&](const char* key) {
    auto value = json.is_object() ? json.find(key) : json.end();
    return value != json.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  Result<std::vector<uint64_t>> seeds = parse_seeds(text_of("seeds"));
  Result<Config> config = parse_config(text_of("text"), text_of("file"));
  // The files of the inputs may be on another machine.
  Result<uint64_t> inputs = kstrtou64(text_of("inputs"), 16);
  if (config && inputs) set_inputs(*config, *inputs);
  if (!seeds || !config || text_of("configuration") != fmt::format("{:016x}", config->hash)) {
    return errorf(EINVAL, "{}: not the plan of a sweep", path);
  }
  return SavedPlan{std::move(*config), std::move(*seeds)};
}

}  // namespace rocefs
