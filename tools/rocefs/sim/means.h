// Mean of a figure over the seeds of a sweep, with its confidence interval.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/rocefs/sim/run_summary.h"
#include "tools/rocefs/sim/text_table.h"

namespace rocefs {

struct Mean {
  size_t count = 0;
  double value = 0;
  // Half of the 95 % confidence interval by Student's t distribution, for samples of a normal
  // distribution; nothing for a single one.
  std::optional<double> half_width;
};
Mean mean_of(const std::vector<double>& samples);

// Quantile 0.975 of Student's t distribution, to within 0.001. Precondition: freedom is not 0.
double student_t(size_t freedom);

// Runs that were cut off: their flows that are done are the fast ones.
enum class PartialRuns : uint8_t {
  kLeftOut,
  kIfAlone,  // counted if the variant has no complete run
};

struct SizeMeans {
  uint64_t size = 0;  // largest; 0: all sizes
  Mean flows;
  std::vector<Mean> fct_ns, slowdown;  // in the order of kFigureNames
};
struct VariantMeans {
  std::string variant;
  size_t runs = 0, complete = 0;
  size_t counted = 0;            // runs that the means are over
  std::vector<SizeMeans> sizes;  // all sizes last
  // Numbers of RunSummary::rest by their keys, inner ones behind dots: queues.octets.p99. Over the
  // runs that have them. Also flows.STATE and flows.not_done, because the figures are of flows that
  // are done.
  std::map<std::string, Mean> totals;
};

// Columns of a table of totals.
struct TotalColumn {
  const char *heading, *key;
  std::string (*text_of)(double);
};
extern const std::vector<TotalColumn> kTotalColumns;
// The mean as text, with its interval; - without runs.
std::string total_text(const VariantMeans& means, const TotalColumn& column);

// Completion times of the rounds of each load that is a collective, below a heading; empty without.
std::vector<TableRow> rounds_of(const std::vector<VariantMeans>& means);

// One for each variant, in the order in which they first occur.
std::vector<VariantMeans> means_of(const std::vector<RunSummary>& runs,
                                   PartialRuns partial = PartialRuns::kLeftOut);

SummaryJson means_json(const std::vector<VariantMeans>& means);
// Tables for people: FCT, slowdown, then totals.
std::string means_table(const std::vector<VariantMeans>& means);

}  // namespace rocefs
