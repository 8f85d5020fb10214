#include "pcc/card/card_backend.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/process/process_status.h"
#include "pcc/algorithms/built_ins.h"
#include "pcc/card/algorithm_info.h"

namespace rocefs {
namespace {

// Index of alternative T in a variant.
template <class T, class... Kinds>
constexpr size_t index_in(const std::variant<Kinds...>*) {
  size_t index = 0;
  for (bool same : {std::is_same_v<T, Kinds>...}) {
    if (same) break;
    ++index;
  }
  return index;
}

}  // namespace

CardBackend::CardBackend(PollLoop& loop, Options options, PccBackend::Listener& listener)
    : loop_(loop),
      options_(std::move(options)),
      listener_(listener),
      timer_(loop, [this] { time_out(); }),
      pulse_(loop, [this] { feel_pulse(); }),
      read_timer_(loop, [this] { give_up_reading(); }) {}

// Drops pending answers.
CardBackend::~CardBackend() = default;

std::vector<PccAlgorithmInfo> CardBackend::built_ins() const {
  PccController controller(options_.seed, [](mango_log_level_e, std::string_view) {});
  add_built_ins(controller);
  return describe_all(controller);
}

void CardBackend::load(const std::string& directory, bool force, Answer<PccLoaded> answer) {
  ask<PccLoaded>(CardOrder::Load{directory, force}, std::move(answer),
                 [](PccLoaded loaded) { return loaded; });
}

void CardBackend::unload(unsigned slot, Answer<void> answer) {
  ask_done(CardOrder::Unload{slot}, std::move(answer));
}

void CardBackend::apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) {
  ask_done(CardOrder::Apply{slot, qpn}, std::move(answer));
}

void CardBackend::start(const Run& run, Answer<void> answer) {
  auto started = [this, polls = run.pollers > 0,
                  answer = std::move(answer)](Result<void> result) mutable {
    if (result) set_pulse(polls);
    answer(std::move(result));
  };
  ask_done(CardOrder::Start{run.pollers, run.interval_us}, std::move(started),
           {run.signals, run.control});
}

void CardBackend::stop(Answer<void> answer) {
  if (!process_ && !telling_) return answer({});  // no process, no run
  auto stopped = [this, answer = std::move(answer)](Result<void> result) mutable {
    if (result) set_pulse(false);
    answer(std::move(result));
  };
  ask_done(CardOrder::Stop{}, std::move(stopped));
}

void CardBackend::set_debug(bool on) {
  if (std::exchange(debug_, on) == on || !process_) return;
  ask_done(CardOrder::Debug{on}, [](Result<void>) {});
}

void CardBackend::set_interval(unsigned interval_us, Answer<void> answer) {
  ask_done(CardOrder::SetInterval{interval_us}, std::move(answer));
}

void CardBackend::update(unsigned slot, const Assignments& changes,
                         Answer<PccAlgorithmInfo> answer) {
  ask<PccAlgorithmInfo>(
      CardOrder::Update{slot, changes}, std::move(answer),
      [](PccAlgorithmInfo algorithm) { return algorithm; },
      [slot](const PccAlgorithmInfo& said) { return said.slot == slot; });
}

// One order at a time for a slot: its answer is for all who have asked meanwhile.
void CardBackend::read(unsigned slot, Answer<PccAlgorithmInfo> answer) {
  if (!process_ || telling_) return answer(Error{ESRCH, "there is no mango-pccd"});
  auto [found, fresh] = readings_.try_emplace(slot);
  if (fresh) found->second.deadline = monotonic_ns() + kReadPatience;
  if (monotonic_ns() >= found->second.deadline) {
    return answer(Error{ETIMEDOUT, "mango-pccd is busy"});
  }
  found->second.readers.push_back(std::move(answer));
  read_timer_.arm(found->second.deadline - monotonic_ns());
  if (!fresh) return;
  Answer<PccAlgorithmInfo> tell = [this, slot](Result<PccAlgorithmInfo> said) {
    Reading reading = std::move(readings_[slot]);
    readings_.erase(slot);
    for (auto& reader : reading.readers) reader(said);
  };
  ask<PccAlgorithmInfo>(
      CardOrder::Read{slot}, std::move(tell), [](PccAlgorithmInfo algorithm) { return algorithm; },
      [slot](const PccAlgorithmInfo& said) { return said.slot == slot; });
}

void CardBackend::give_up_reading() {
  TimeNs now = monotonic_ns(), next = kNever;
  std::vector<Answer<PccAlgorithmInfo>> late;
  for (auto& [slot, reading] : readings_) {
    if (reading.readers.empty()) continue;
    if (reading.deadline > now) {
      next = std::min(next, reading.deadline);
      continue;
    }
    for (auto& reader : std::exchange(reading.readers, {})) late.push_back(std::move(reader));
  }
  if (next != kNever) read_timer_.arm(next - now);
  for (auto& reader : late) reader(Error{ETIMEDOUT, "mango-pccd is busy"});
}

// Ends the process; the next order starts another.
void CardBackend::forget(Answer<void> answer) {
  process_.reset();
  timer_.disarm();
  set_pulse(false);
  waiting_.clear();
  held_.clear();
  for (auto& [slot, reading] : std::exchange(readings_, {})) {
    for (auto& reader : reading.readers) reader(Error{ESRCH, "mango-pccd was ended"});
  }
  answer({});
}

void CardBackend::echo(const std::string& message, Answer<std::string> answer) {
  ask<CardAnswer::Echoed>(
      CardOrder::Echo{message}, std::move(answer),
      [](CardAnswer::Echoed echoed) { return std::move(echoed.message); },
      [message](const auto& said) { return said.message == message; });
}

void CardBackend::dump(uint32_t qpn, Answer<std::string> answer) {
  ask<CardAnswer::Dumped>(
      CardOrder::Dump{qpn}, std::move(answer),
      [](CardAnswer::Dumped dumped) { return std::move(dumped.text); },
      [](const auto&) { return true; });
}

void CardBackend::round(TimeNs now, Answer<TimeNs> answer) {
  ask<CardAnswer::NextRound>(
      CardOrder::Round{now}, std::move(answer), [](CardAnswer::NextRound next) { return next.due; },
      [now](CardAnswer::NextRound next) { return next.due > now; });
}

template <class Said, class T, class Value>
void CardBackend::ask(decltype(CardOrder::what) what, Answer<T> answer, Value value,
                      std::function<bool(const Said&)> fits, Pages pages) {
  Waiting waiting;
  waiting.expected = index_in<Said>(static_cast<decltype(CardAnswer::what)*>(nullptr));
  waiting.fits = [fits = std::move(fits)](const CardAnswer& given) {
    const Said* said = std::get_if<Said>(&given.what);
    return !said || !fits || fits(*said);
  };
  waiting.give = [answer = std::move(answer), value](CardAnswer said) mutable {
    if (const auto* error = std::get_if<Error>(&said.what)) return answer(*error);
    answer(value(std::move(std::get<Said>(said.what))));
  };
  send({0, std::move(what)}, std::move(waiting), pages);
}

void CardBackend::ask_done(decltype(CardOrder::what) what, Answer<void> answer, Pages pages) {
  ask<CardAnswer::Done>(
      std::move(what), std::move(answer), [](CardAnswer::Done) { return Result<void>(); }, nullptr,
      std::move(pages));
}

void CardBackend::send(CardOrder order, Waiting waiting, const Pages& pages) {
  if (telling_) {
    held_.push_back([this, order = std::move(order), waiting = std::move(waiting),
                     pages]() mutable { send(std::move(order), std::move(waiting), pages); });
    return;
  }
  order.id = next_id_++;
  waiting.verb = verb_of(order);
  std::string message = format_order(order);
  if (message.size() > kMaxCardMessage) {
    return waiting.give({order.id, errorf(E2BIG, "it is too long for mango-pccd")});
  }
  if (auto there = ensure_process(); !there) return waiting.give({order.id, there.error()});
  bool loads = std::holds_alternative<CardOrder::Load>(order.what);
  waiting.deadline =
      monotonic_ns() + (loads ? std::max(kLoadPatience, options_.patience) : options_.patience);
  // The process answers in turn: nothing behind a load before that.
  for (const auto& [id, other] : waiting_) {
    if (other.loads) waiting.deadline = std::max(waiting.deadline, other.deadline);
  }
  waiting.loads = loads;
  std::vector<int> descriptors;
  for (const auto& page : pages) descriptors.push_back(page->descriptor());
  waiting_.emplace(order.id, std::move(waiting));
  arm();
  if (process_->send(message, descriptors)) return;
  // A failed send means that the process has ended, which card_ended() reports, or that it reads
  // too slowly: then the order's deadline expires.
}

Result<void> CardBackend::ensure_process() {
  if (process_) return {};
  CardProcess::Program program{
      options_.program,
      {options_.device, std::to_string(options_.seed), std::to_string(options_.uid),
       std::to_string(options_.gid), std::to_string(options_.open_files), debug_ ? "1" : "0"},
      options_.uid != ::geteuid()};
  auto started = CardProcess::start(loop_, program, *this);
  if (!started) return started.error();
  process_ = std::move(*started);
  last_words_.clear();
  return {};
}

void CardBackend::card_said(std::string_view message) {
  Result<CardWord> word = parse_word(message);
  if (!word) return lose(EIO, fmt::format("{}: {}", name(), word.error().reason));
  if (auto* answer = std::get_if<CardAnswer>(&*word)) return take_answer(std::move(*answer));
  if (!may_say_more()) return lose(EIO, fmt::format("{} says too much", name()));
  if (const auto* log = std::get_if<CardLog>(&*word)) {
    return listener_.pcc_log(log->level, log->text.substr(0, kMaxLine));
  }
  if (!last_words_.empty())
    return;  // several threads die at once; the first message names the cause
  last_words_ = in_one_line(std::get<CardDied>(*word).text.substr(0, kMaxLine));
  if (!last_words_.empty()) process_->await_end();
}

void CardBackend::card_printed(std::string_view line) {
  auto say = [this](const std::string& left_out) { return say_left_out(left_out); };
  if (!printed_.admit(monotonic_ns(), say)) return;
  listener_.pcc_log(LogLevel::kInfo, fmt::format("output: {}", line));
}

bool CardBackend::say_left_out(const std::string& left_out) {
  listener_.pcc_log(LogLevel::kInfo, "output: " + left_out);
  return true;
}

// mango-pccd limits its own lines; more come from code that has taken over the process.
bool CardBackend::may_say_more() {
  TimeNs now = monotonic_ns();
  if (now - unasked_since_ >= kSecond) {
    unasked_since_ = now;
    unsolicited_ = 0;
  }
  return ++unsolicited_ <= kMaxUnsolicited;
}

void CardBackend::take_answer(CardAnswer answer) {
  auto found = waiting_.find(answer.id);
  size_t kind = answer.what.index();
  if (found == waiting_.end() || (kind != found->second.expected && kind != 0) ||
      !found->second.fits(answer)) {
    return lose(EIO, fmt::format("{} answers what was not asked", name()));
  }
  auto give = std::move(found->second.give);
  waiting_.erase(found);
  arm();
  give(std::move(answer));
}

void CardBackend::card_ended(std::string_view how, End end) {
  std::string why = fmt::format("{} {}", name(), how);
  if (!last_words_.empty()) {
    why = end == End::kExit ? fmt::format("{} ended: {}", name(), last_words_)
                            : fmt::format("{} {}", why, last_words_);
  }
  if (end == End::kCore) why += ", core dumped";
  lose(EIO, why, !last_words_.empty());
}

void CardBackend::time_out() {
  TimeNs now = monotonic_ns();
  for (auto& [id, waiting] : waiting_) {
    if (waiting.deadline > now) continue;
    if (debug_ && is_traced(pid())) {
      waiting.deadline = now + options_.patience;
      continue;
    }
    return lose(ETIMEDOUT, fmt::format("{} did not answer '{}' in time", name(), waiting.verb));
  }
  arm();
}

void CardBackend::arm() {
  TimeNs first = kNever;
  for (const auto& [id, waiting] : waiting_) first = std::min(first, waiting.deadline);
  if (first == kNever) return timer_.disarm();
  timer_.arm(first - monotonic_ns());
}

void CardBackend::lose(int code, const std::string& why, bool named) {
  if (process_) process_->take_output();
  printed_.settle([this](const std::string& left_out) { return say_left_out(left_out); });
  printed_ = {};
  process_.reset();
  timer_.disarm();
  set_pulse(false);
  telling_ = true;
  for (auto& [id, waiting] : std::exchange(waiting_, {})) waiting.give({id, Error{code, why}});
  listener_.pcc_died(why, named);
  telling_ = false;
  for (Task& order : std::exchange(held_, {})) order();
}

void CardBackend::set_pulse(bool on) {
  has_pollers_ = on;
  if (on) {
    pulse_.arm(kPulse);
  } else {
    pulse_.disarm();
  }
}

// A pending order replaces the echo, which would also be late behind a Load.
void CardBackend::feel_pulse() {
  if (!waiting_.empty()) return pulse_.arm(kPulse);
  echo("", [this](const Result<std::string>& echoed) {
    if (echoed && has_pollers_) pulse_.arm(kPulse);
  });
}

std::string CardBackend::name() const {
  return fmt::format("mango-pccd (pid {})", pid());
}

}  // namespace rocefs
