// Report data: what the scripts of an HTML report draw, as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/means.h"
#include "tools/rocefs/sim/run_summary.h"

namespace rocefs {

// Samples of a run, in the order of [sample].
struct ReportSeries {
  std::string variant;
  uint64_t seed = 1;
  std::vector<Sample> samples;
  std::string name;  // path of the file that has all, from the report's directory
};

// A recording of a run, for the picture of the network.
struct ReportRecording {
  std::string variant;
  std::string path;  // of the file
  std::string name;  // the path from the report's directory
};

struct ReportInput {
  const Config& config;
  const std::vector<RunSummary>& runs;
  std::vector<ReportSeries> series = {};         // one of each variant
  std::vector<ReportRecording> recordings = {};  // likewise, as far as there are any
};

struct ReportData {
  std::string json;  // without <: it can stand in a script element
  // About recordings, for people, as HTML: why one is not there, or how many looks it has.
  std::vector<std::string> notes;
  bool has_network = false;  // a recording is in `json`
};
// `means`: means_of(input.runs), of partial runs if a variant has no others. Reads the recordings.
ReportData report_data(const ReportInput& input, const std::vector<VariantMeans>& means);

// Reads the samples of one run from its series.csv; none without the file.
std::vector<Sample> read_series(const std::string& path);

}  // namespace rocefs
