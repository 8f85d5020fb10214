#include "tools/rocefs/sim/stale_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/rocefs/sim/output_files.h"
#include "tools/rocefs/sim/run_summary.h"

namespace rocefs {

std::vector<std::string> files_of_run(const std::string& directory) {
  std::ifstream file(directory + "/summary.json", std::ios::binary);
  SummaryJson json = file ? SummaryJson::parse(file, nullptr, false) : SummaryJson();
  if (!json.is_object() || json.contains("seeds") || !json.contains("configuration")) return {};
  auto runs = json.find("runs");
  if (runs == json.end() || !runs->is_array()) return {};
  std::vector<std::string> files{"flows.csv", "links.csv", "queues.csv", "series.csv",
                                 "plot.gp",   "plot.svg",  "plot.png"};
  for (const SummaryJson& run : *runs) {
    auto variant = run.is_object() ? run.find("variant") : run.end();
    if (variant == run.end() || !variant->is_string()) continue;
    auto name = variant->get<std::string>();
    if (name.find('/') != name.npos) continue;
    files.push_back(packets_name(name));
    files.push_back(view_name(name));
  }
  return files;
}

void remove_stale(const std::string& directory, const std::vector<std::string>& files,
                  const std::vector<std::string>& written) {
  for (const std::string& name : files) {
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    std::error_code failed;
    std::filesystem::remove(directory + "/" + name, failed);
  }
}

}  // namespace rocefs
