// A line to a rendezvous from an untrusted peer.
#include "rdma/traffic/flow_plan.h"
#include "rdma/traffic/rendezvous_message.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

std::string again(const FlowMessage& message) {
  return std::visit([](const auto& one) { return text_of(one); }, message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view line(reinterpret_cast<const char*>(data), size);
  Result<FlowMessage> message = parse_message(line);
  if (!message) {
    fuzz::require(message.error().code > 0 && !message.error().reason.empty());
    fuzz::require(message.error().reason.find('\n') == std::string::npos);
    return 0;
  }
  if (const auto* offer = std::get_if<FlowOffer>(&*message)) {
    const FlowSpec& spec = offer->spec;
    fuzz::require(!spec.name.empty() && spec.name.find('/') == std::string::npos);
    fuzz::require(spec.qps >= 1 && spec.qps == offer->end.qps.size() && spec.count >= 1);
    fuzz::require(!offer->file || spec.size > 0);
    Result<FlowPlan> plan = FlowPlan::of(spec, std::nullopt);
    fuzz::require(!plan || plan->receive_bytes() <= kMaxFlowMemory);
  }
  // A formatted message parses to the same message.
  std::string text = again(*message);
  Result<FlowMessage> other = parse_message(text);
  fuzz::require(other && again(*other) == text && text.find('\n') == std::string::npos);
  return 0;
}
