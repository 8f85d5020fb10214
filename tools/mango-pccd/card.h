// Card: what mango-pccd does when it is told to: it has the algorithms of a device, and runs them.
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
  Card(uint64_t seed, const PccLog& log);

  // The descriptors are those of the pages, where they came with the order.
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

  PccHandle handle_;
  PccController& controller_;
  Watchdog watchdog_;
  Plugins plugins_;
  RegisterPages pages_;
  std::unique_ptr<PollerThreads> threads_;
  std::unique_ptr<Watchdog::Watch> running_;  // while there are threads
};

}  // namespace rocefs
