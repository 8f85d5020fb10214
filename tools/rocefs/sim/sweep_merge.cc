#include "tools/rocefs/sim/sweep_merge.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/sim/html_report.h"
#include "tools/rocefs/sim/means.h"
#include "tools/rocefs/sim/output_files.h"
#include "tools/rocefs/sim/stale_files.h"

namespace rocefs {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return (std::ostringstream() << file.rdbuf()).str();
}

std::string place_of(const std::string& directory, const SweepRun& run) {
  return directory + "/" + run.directory();
}

// Summary of a run in that directory; nothing if there is none.
std::optional<RunSummary> summary_in(const std::string& place) {
  std::ifstream file(place + "/summary.json", std::ios::binary);
  if (!file) return std::nullopt;
  try {
    SummaryJson json = SummaryJson::parse(file);
    return RunSummary::from(json.at("runs").at(0));
  } catch (const SummaryJson::exception&) {
    return std::nullopt;
  }
}

// A run that met its limit meets it again.
bool repeatable(const RunSummary& run) {
  return !run.partial() || run.end == "limit";
}

Result<void> copy_run(const std::string& from, const std::string& to) {
  std::error_code failed;
  std::string part = to + ".part";
  std::filesystem::create_directories(std::filesystem::path(to).parent_path(), failed);
  std::filesystem::remove_all(part, failed);
  std::filesystem::copy(from, part, std::filesystem::copy_options::recursive, failed);
  if (!failed) std::filesystem::remove_all(to, failed);
  if (!failed) std::filesystem::rename(part, to, failed);
  if (failed) return errorf(failed.value(), "{}: {}", to, failed.message());
  return {};
}

// Chooses the directory of a run: a complete one before a partial one.
Result<void> collect_run(const SweepRun& run, const std::vector<std::string>& places,
                         const std::string& out) {
  std::string chosen, text;
  bool complete = false;
  for (const std::string& directory : places) {
    std::string place = place_of(directory, run);
    std::optional<RunSummary> summary = summary_in(place);
    if (!summary || (complete && !repeatable(*summary))) continue;
    std::string own = text_of_file(place + "/summary.json");
    if (complete && own != text) {
      return errorf(EEXIST, "{}: {} and {} have different results", run.name(), chosen, place);
    }
    if (!chosen.empty() && (complete || !repeatable(*summary))) continue;
    chosen = place;
    text = own;
    complete = repeatable(*summary);
  }
  if (chosen.empty() || chosen == place_of(out, run)) return {};
  return copy_run(chosen, place_of(out, run));
}

class SweepMerge {
 public:
  SweepMerge(const SweepPlan& plan, const std::string& out) : plan_(plan), out_(out) {}

  int merge() {
    read();
    means_ = means_of(runs_);
    remove_stale(out_, files_of_run(out_), {});
    std::fputs(table().c_str(), stdout);
    note(finish_output(0));
    note(write_file(out_ + "/summary.json", summary()));
    note(write_file(out_ + "/timing.csv", timing_));
    note(write_file(out_ + "/report.html", page()));
    return status_;
  }

 private:
  void note(int status) { status_ = std::max(status_, status); }
  void note(const Result<void>& written) {
    if (!written) note(print_failure({1, written.error().reason}));
  }

  void read() {
    timing_ = "# " + plan_.origin() + "\n" + timing_csv_head();
    for (const SweepRun& run : plan_.runs()) {
      std::string place = place_of(out_, run);
      std::optional<RunSummary> summary = summary_in(place);
      if (!summary) {
        missing_.push_back(run.name());
        continue;
      }
      runs_.push_back(std::move(*summary));
      std::ifstream timing(place + "/timing.csv");
      std::string line;
      for (int i = 0; std::getline(timing, line); ++i) {
        if (i >= 2) timing_ += line + "\n";
      }
    }
    partial_ = !missing_.empty() || std::any_of(runs_.begin(), runs_.end(),
                                                [](const auto& run) { return run.partial(); });
    bool good = std::all_of(runs_.begin(), runs_.end(), [](const auto& run) { return run.good(); });
    if (partial_ || !good) note(1);
  }

  std::string table() const {
    const std::string& title = plan_.config().scenario.title;
    std::string text = fmt::format("# {}{}{}\n", title, title.empty() ? "" : ": ", plan_.origin());
    for (const RunSummary& run : runs_) {
      std::string name = run.variant.empty() ? "" : run.variant + ", ";
      if (run.partial())
        text += fmt::format("# partial: {}seed {}: {}\n", name, run.seed, run.reason);
    }
    for (const std::string& name : missing_) text += fmt::format("# missing: {}\n", name);
    text += means_table(means_);
    size_t complete = 0;
    for (const VariantMeans& means : means_) complete += means.complete;
    return text + fmt::format("{} of {} runs complete; ± is half of the 95 % confidence interval\n",
                              complete, plan_.runs().size());
  }

  std::string summary() const {
    SummaryJson json = summary_head(plan_.config());
    json["seeds"] = format_seeds(plan_.seeds());
    json["partial"] = partial_;
    json["missing"] = missing_;
    json["means"] = means_json(means_);
    json["runs"] = SummaryJson::array();
    for (const RunSummary& run : runs_) json["runs"].push_back(run.json());
    return summary_text(json);
  }

  // Samples and recordings are those of the first complete seed of each variant that has them.
  std::string page() const {
    const Config& config = plan_.config();
    std::string title = config.scenario.title.empty() ? config.name : config.scenario.title;
    HtmlReport page{title, plan_.origin(), missing_, {config, runs_}};
    for (const SweepRun& run : plan_.runs()) {
      bool there =
          std::any_of(page.input.series.begin(), page.input.series.end(),
                      [&](const auto& series) { return series.variant == run.variant_name(); });
      if (there || !is_complete(out_, run)) continue;
      page.input.series.push_back({run.variant_name(), run.seed,
                                   read_series(place_of(out_, run) + "/series.csv"),
                                   run.directory() + "/series.csv"});
    }
    for (const SweepRun& run : plan_.runs()) {
      bool there = std::any_of(
          page.input.recordings.begin(), page.input.recordings.end(),
          [&](const ReportRecording& one) { return one.variant == run.variant_name(); });
      if (there || !is_complete(out_, run) || !has_recording(out_, run)) continue;
      page.input.recordings.push_back({run.variant_name(),
                                       view_path(place_of(out_, run), run.variant_name()),
                                       view_path(run.directory(), run.variant_name())});
    }
    return page.text();
  }

  const SweepPlan& plan_;
  const std::string& out_;
  std::vector<RunSummary> runs_;
  std::vector<std::string> missing_;
  std::vector<VariantMeans> means_;
  std::string timing_;
  bool partial_ = false;
  int status_ = 0;
};

}  // namespace

bool has_recording(const std::string& directory, const SweepRun& run) {
  return std::filesystem::exists(view_path(place_of(directory, run), run.variant_name()));
}

bool is_complete(const std::string& directory, const SweepRun& run) {
  std::optional<RunSummary> summary = summary_in(place_of(directory, run));
  return summary && repeatable(*summary);
}

Result<void> collect_runs(const SweepPlan& plan, const std::vector<std::string>& sources,
                          const std::string& out) {
  std::vector<std::string> places{out};
  places.insert(places.end(), sources.begin(), sources.end());
  for (const SweepRun& run : plan.runs()) {
    if (Result<void> collected = collect_run(run, places, out); !collected) return collected;
  }
  return {};
}

int merge_sweep(const SweepPlan& plan, const std::string& out) {
  return SweepMerge(plan, out).merge();
}

}  // namespace rocefs
