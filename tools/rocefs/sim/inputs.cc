#include "tools/rocefs/sim/inputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/assignment.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "rdma/workload/size_distribution.h"

namespace rocefs {
namespace {

constexpr std::string_view kFile = "file=";

// Hash of all content so far. A file's length separates it from the next one.
class InputHash {
 public:
  void add(const std::string& path) {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(path, failed)) return;
    std::ifstream file(path, std::ios::binary);
    std::vector<char> chunk(1 << 20);
    uint64_t length = 0;
    while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), file.gcount() > 0) {
      std::string_view read(chunk.data(), static_cast<size_t>(file.gcount()));
      hash_ = fnv1a64(read, hash_);
      length += read.size();
    }
    hash_ = fnv1a64(fmt::format("{};", length), hash_);
    any_ = true;
  }

  // Files of a flow's line are relative to the directory of the process.
  void add_flow(std::string_view line) {
    for (std::string_view word : split(line, " \t")) {
      if (word.starts_with(kFile)) add(std::string(word.substr(kFile.size())));
    }
  }

  void add_load(const Config& config, std::string_view key, const std::string& value) {
    if (key != "file" && (key != "cdf" || SizeDistribution::named(value))) return;
    add(value.starts_with('/') ? value : config.directory + value);
  }

  uint64_t value() const { return any_ ? hash_ : 0; }

 private:
  uint64_t hash_ = fnv1a64("");
  bool any_ = false;
};

}  // namespace

void add_inputs(Config& config) {
  InputHash hash;
  const Scenario& scenario = config.scenario;
  for (const Scenario::Line& line : scenario.flows) hash.add_flow(line.value);
  for (const Scenario::Line& line : scenario.stores) {
    Result<std::vector<Assignment>> stores = parse_assignments(line.value);
    if (!stores) continue;
    for (const Assignment& store : *stores) hash.add_flow(store.value);
  }
  for (const Scenario::Load& load : scenario.loads) {
    for (const Scenario::Line& line : load.keys) hash.add_load(config, line.key, line.value);
  }
  for (const Scenario::Variant& variant : scenario.variants) {
    for (const Scenario::Line& line : variant.loads) {
      hash.add_load(config, line.key.substr(line.key.rfind('/') + 1), line.value);
    }
  }
  set_inputs(config, hash.value());
}

void set_inputs(Config& config, uint64_t inputs) {
  if (inputs == 0) return;
  config.inputs = inputs;
  config.hash = fnv1a64(fmt::format("{:016x}", inputs), config.hash);
}

}  // namespace rocefs
