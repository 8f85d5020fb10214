// A flow's state: its words, and the wake-ups of its pollers.
#include "rdma/traffic/flow_entry.h"

#include <catch2/catch.hpp>

using namespace rocefs;

namespace {

struct Shown final : Attribute {
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  Result<std::string> show() override { return std::string(); }
};

}  // namespace

TEST_CASE("flow entry: a change of the state's text wakes its pollers") {
  FlowEntry entry;
  auto file = std::make_shared<Shown>();
  int woken = 0;
  file->set_change_listener([&] { ++woken; });
  entry.state_file = file;
  auto texts = [&](std::initializer_list<FlowState> states) {
    std::string all;
    for (FlowState state : states) {
      entry.become(state, state == FlowState::kFailed ? "no way" : "");
      all += fmt::format("{} {}, ", entry.state_text(), woken);
    }
    return all;
  };
  using enum FlowState;
  CHECK(texts({kConnecting, kRunning, kReporting, kWriting, kDone}) ==
        "connecting 1, running 2, running 2, running 2, done 3, ");
  CHECK(texts({kWaiting, kServing, kFinishing, kStopped, kFailed}) ==
        "waiting 4, running 5, running 5, stopped 6, failed: no way 7, ");
}

TEST_CASE("flow entry: a flow is live until it is done, stopped or failed") {
  FlowEntry entry;
  for (const FlowStateRow& row : kFlowStates) {
    INFO(row.word);
    entry.become(row.state);
    bool over = row.word == "done" || row.word == "stopped" || row.word == "failed";
    CHECK(entry.live() == !over);
  }
}
