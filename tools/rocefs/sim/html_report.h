// HTML report: one page that needs no network: tables, curves of the variants over each other, the
// picture of the network over time, the file and the seeds. Scripts and styles: tools/page.
#pragma once

#include <string>
#include <vector>

#include "tools/rocefs/sim/report_data.h"

namespace rocefs {

struct HtmlReport {
  std::string title, origin;
  std::vector<std::string> missing;  // runs of a sweep that are not there
  ReportInput input;

  // The same input gives the same text.
  std::string text() const;
};

}  // namespace rocefs
