#include "tools/mango-pccd/card.h"

#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "pcc/algorithms/built_ins.h"
#include "pcc/card/algorithm_info.h"
#include "tools/mango-pccd/last_words.h"

namespace rocefs {
namespace {

Error error_of(mango_status_e status, std::string_view what) {
  auto as = [&](int code, std::string_view why) { return errorf(code, "{}: {}", what, why); };
  switch (status) {
    case MANGO_STATUS_NOT_FOUND:
      return as(ENOENT, "there is no such thing");
    case MANGO_STATUS_BUSY:
      return as(EBUSY, "it is in use");
    case MANGO_STATUS_NO_MEMORY:
      return as(ENOMEM, "no memory is left");
    case MANGO_STATUS_INVALID_PARAM:
    case MANGO_STATUS_BAD_STATE:
      return as(EINVAL, mango_status_str(status));
    default:
      return as(EIO, mango_status_str(status));
  }
}

// Session for log lines of plugins. The daemon takes and returns the windows.
class CardSession final : public EngineSession {
 public:
  explicit CardSession(const PccLog& log) : log_(log) {}
  mango_status_e run(unsigned, Pages*) override { return MANGO_STATUS_NOT_SUPPORTED; }
  void stop() override {}
  void log(mango_log_level_e level, std::string_view text) override { log_(level, text); }

 private:
  const PccLog log_;
};

}  // namespace

Card::Card(uint64_t seed, bool debug, const PccLog& log)
    : handle_(std::make_unique<CardSession>(log), seed),
      controller_(handle_.controller()),
      watchdog_(controller_, [log](std::string_view line) { log(MANGO_LOG_LEVEL_WARN, line); }),
      plugins_(handle_, watchdog_) {
  add_built_ins(controller_);
  act(CardOrder::Debug{debug});
}

CardAnswer Card::obey(const CardOrder& order, const Fd& signals, const Fd& control) {
  Watchdog::Watch watch(watchdog_);
  return {order.id, std::visit(
                        [&](const auto& what) -> What {
                          using Kind = std::decay_t<decltype(what)>;
                          if constexpr (std::is_same_v<Kind, CardOrder::Start>) {
                            return start(what, signals, control);
                          } else {
                            return act(what);
                          }
                        },
                        order.what)};
}

Card::What Card::act(const CardOrder::Load& load) {
  Result<PccLoaded> loaded = plugins_.load(load.directory, load.force);
  if (!loaded) return loaded.error();
  watchdog_.expect_change();
  return std::move(*loaded);
}

Card::What Card::act(const CardOrder::Unload& unload) {
  if (unload.slot < kBuiltIns) return Error{EPERM, "it is built in"};
  mango_status_e status = plugins_.unload(unload.slot);
  if (status != MANGO_STATUS_OK) return error_of(status, "unload");
  return CardAnswer::Done{};
}

Card::What Card::act(const CardOrder::Apply& apply) {
  mango_status_e status =
      apply.qpn ? controller_.apply(apply.slot, {&*apply.qpn, 1}) : controller_.apply(apply.slot);
  if (status == MANGO_STATUS_NOT_FOUND && apply.qpn && controller_.algorithm(apply.slot)) {
    return errorf(ENOENT, "QP {} is not active", *apply.qpn);
  }
  if (status != MANGO_STATUS_OK) return error_of(status, "apply");
  watchdog_.expect_change();
  return CardAnswer::Done{};
}

Card::What Card::start(const CardOrder::Start& start, const Fd& signals, const Fd& control) {
  if (controller_.running()) return Error{EBUSY, "it runs already"};
  if (start.pollers > MANGO_PCC_MAX_THREADS) return Error{EINVAL, "too many pollers"};
  if (!signals || !control) return Error{EINVAL, "the register pages did not come"};
  if (int code = pages_.map(signals.get(), control.get())) {
    return errorf(code, "the register pages cannot be mapped: {}", std::strerror(code));
  }
  controller_.set_interval(start.interval_us * kMicrosecond);
  unsigned pollers = std::max(start.pollers, 1u);
  mango_status_e status = controller_.begin(pages_.signals(), pages_.control(), pollers);
  if (status != MANGO_STATUS_OK) {
    pages_.reset();
    return error_of(status, "start");
  }
  watchdog_.set_pollers(pollers);
  watchdog_.expect_change();
  if (start.pollers == 0) return CardAnswer::Done{};
  try {
    threads_ = std::make_unique<PollerThreads>(controller_, *pages_.signals(), pollers,
                                               announce_own_death);
  } catch (const std::system_error& error) {
    controller_.end();
    pages_.reset();
    return errorf(EAGAIN, "threads cannot be made: {}", error.what());
  }
  running_ = std::make_unique<Watchdog::Watch>(watchdog_);
  return CardAnswer::Done{};
}

Card::What Card::act(const CardOrder::Stop&) {
  if (!controller_.running()) return CardAnswer::Done{};
  threads_.reset();
  controller_.end();
  running_.reset();
  pages_.reset();
  return CardAnswer::Done{};
}

Card::What Card::act(const CardOrder::SetInterval& set) {
  controller_.set_interval(set.interval_us * kMicrosecond);
  return CardAnswer::Done{};
}

Card::What Card::act(const CardOrder::Update& update) {
  if (!controller_.algorithm(update.slot)) return Error{ENOENT, "there is no such algorithm"};
  std::vector<PccController::Change> changes;
  for (const auto& [name, value] : update.changes) changes.push_back({name, value});
  Result<void> updated = controller_.update(update.slot, changes);
  if (!updated) return updated.error();
  return describe(controller_, update.slot);
}

Card::What Card::act(const CardOrder::Read& read) {
  if (!controller_.algorithm(read.slot)) return Error{ENOENT, "there is no such algorithm"};
  return describe(controller_, read.slot);
}

Card::What Card::act(const CardOrder::Echo& echo) {
  return CardAnswer::Echoed{echo.message};
}

// The owner may then attach to the process, and keep its core, although it began as another user.
Card::What Card::act(const CardOrder::Debug& debug) {
  if (debug.on) (void)::prctl(PR_SET_DUMPABLE, 1);
  watchdog_.set_debug(debug.on);
  return CardAnswer::Done{};
}

Card::What Card::act(const CardOrder::Dump& dump) {
  Result<std::string> text = controller_.dump(dump.qpn);
  if (!text) return text.error();
  return CardAnswer::Dumped{std::move(*text)};
}

Card::What Card::act(const CardOrder::Round& round) {
  if (!controller_.running() || threads_) return Error{EINVAL, "it does not run in lockstep"};
  return CardAnswer::NextRound{controller_.poll(0, round.now)};
}

}  // namespace rocefs
