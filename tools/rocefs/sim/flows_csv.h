// FlowsCsv: flows.csv, a line for each flow, written as flows end: no flow is kept. Its first line
// says that the file is partial until finish() says that it is complete, so that a run that is
// killed leaves a file that says so.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "tools/rocefs/sim/flow_record.h"

namespace rocefs {

// One thread at a time.
class FlowsCsv final : public FlowSink {
 public:
  // `origin`: where the results come from, for the head. A failure to open or write the file is
  // kept for finish(): the run goes on without it.
  FlowsCsv(std::string path, const std::string& origin);

  // Names the variant of the flows that follow.
  void begin(std::string variant) { variant_ = std::move(variant); }
  void flow_ended(const FlowRecord& flow) override;
  // Closes the file; call once. The reason of a failure names the file.
  Result<void> finish(bool complete);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& text);
  void flush_seldom();
  void note_failure();

  const std::string path_;
  const long mark_;  // place of the mark in the first line
  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;       // errno of the first failure
  TimeNs flushed_ = 0;  // wall time
  std::string variant_;
};

}  // namespace rocefs
