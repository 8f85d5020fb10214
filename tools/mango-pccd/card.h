// Card: executes the daemon's orders in mango-pccd: holds and runs the algorithms of a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "pcc/api/register_pages.h"
#include "pcc/card/messages.h"
#include "pcc/run/controller.h"
#include "pcc/run/handle.h"
#include "pcc/run/poller_threads.h"
#include "tools/mango-pccd/plugins.h"
#include "tools/mango-pccd/watchdog.h"

namespace rocefs {

// Main thread.
class Card {
 public:
  // `log` may be called on any thread.
  Card(uint64_t seed, bool debug, const PccLog& log);

  // `signals` and `control`: descriptors of the register pages, if sent with the order.
  CardAnswer obey(const CardOrder& order, const Fd& signals, const Fd& control);

 private:
  using What = decltype(CardAnswer::what);
  What act(const CardOrder::Load& load);
  What act(const CardOrder::Unload& unload);
  What act(const CardOrder::Apply& apply);
  What start(const CardOrder::Start& start, const Fd& signals, const Fd& control);
  What act(const CardOrder::Stop& stop);
  What act(const CardOrder::SetInterval& set);
  What act(const CardOrder::Update& update);
  What act(const CardOrder::Echo& echo);
  What act(const CardOrder::Round& round);
  What act(const CardOrder::Debug& debug);
  What act(const CardOrder::Read& read);
  What act(const CardOrder::Dump& dump);

  PccHandle handle_;
  PccController& controller_;
  Watchdog watchdog_;
  Plugins plugins_;
  RegisterPages pages_;
  std::unique_ptr<PollerThreads> threads_;
  std::unique_ptr<Watchdog::Watch> running_;  // during a run with threads
};

}  // namespace rocefs
