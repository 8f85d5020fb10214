// FakeSession: a session with a test's register pages.
#pragma once

#include <string>
#include <vector>

#include "pcc/run/handle.h"
#include "test/pcc/pages.h"

namespace rocefs::test {

struct SessionState {
  PccPages pages;
  mango_status_e answer = MANGO_STATUS_OK;  // of run()
  unsigned runs = 0, stops = 0;
  bool taken = false;
  std::mutex lock;
  std::vector<std::string> logged;
};

class FakeSession final : public EngineSession {
 public:
  explicit FakeSession(SessionState& state) : state_(state) {}
  mango_status_e run(unsigned, Pages* pages) override {
    ++state_.runs;
    if (state_.answer != MANGO_STATUS_OK) return state_.answer;
    state_.taken = true;
    *pages = {state_.pages.signals.get(), state_.pages.control.get()};
    return MANGO_STATUS_OK;
  }
  void stop() override {
    ++state_.stops;
    state_.taken = false;
  }
  void log(mango_log_level_e, std::string_view text) override {
    std::lock_guard guard(state_.lock);
    state_.logged.emplace_back(text);
  }

 private:
  SessionState& state_;
};

// Handle on a fake session, destroyed by mango_pcc_destroy().
struct FakeHandle {
  SessionState state;
  mango_pcc_h pcc = (new PccHandle(std::make_unique<FakeSession>(state), 1))->c_handle();
  PccHandle& handle() { return *PccHandle::of(pcc); }
  ~FakeHandle() {
    if (pcc) CHECK(mango_pcc_destroy(pcc) == MANGO_STATUS_OK);
  }
};

}  // namespace rocefs::test
