// OutgoingFlow: the near end of a flow to another mount: it posts the requests.
//
// Core thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rdma/traffic/active_flow.h"

namespace rocefs {

class OutgoingFlow final : public ActiveFlow {
 public:
  // `file`: bytes of the file that leaves from here; any number for a file that is read, whose
  // length comes from the far end.
  OutgoingFlow(FlowParts parts, const AddressVector& path, std::optional<uint64_t> file);
  ~OutgoingFlow() override;

  // Makes the queue pairs; returns this end as the far one needs it.
  Result<EndpointInfo> open();
  // Joins them to the far end's and begins. EINVAL for an impossible far end.
  Result<void> connect(const EndpointInfo& far);
  // Adds the far end's report to the stats, once the flow has ended.
  void conclude(const FlowReport& report);

  std::shared_ptr<LocalMemory> received() const override { return end_.memory(); }
  void account() override { end_.account(); }

 private:
  bool reads_file() const { return reads() && file_; }
  Result<void> set_plan(std::optional<uint64_t> file);
  void before_post(uint32_t pair, uint64_t position) override;
  void after_send(uint32_t pair, uint64_t position) override;
  void on_completions(TimeNs now) override;
  void close() override { end_.close(); }

  const AddressVector path_;
  const std::optional<uint64_t> file_;
  FlowEndpoint end_;
};

}  // namespace rocefs
