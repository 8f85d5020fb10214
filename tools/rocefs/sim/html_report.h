// HTML report: one page that needs no network: tables, curves of the variants over each other, the
// picture of the network over time, the file and the seeds. Scripts and styles: tools/page.
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
};

// A recording of a run, for the picture of the network.
struct ReportRecording {
  std::string variant;
  std::string path;  // of the file
};

struct HtmlReport {
  const Config& config;
  std::string title, origin;
  const std::vector<RunSummary>& runs;
  std::vector<std::string> missing;         // runs of a sweep that are not there
  std::vector<ReportSeries> series;         // one of each variant
  std::vector<ReportRecording> recordings;  // likewise, as far as there are any

  // The same input gives the same text.
  std::string text() const;
};

// Reads the samples of one run from its series.csv; none without the file.
std::vector<Sample> read_series(const std::string& path);

}  // namespace rocefs
