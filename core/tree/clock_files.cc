#include "core/tree/clock_files.h"
#include "core/tree/knob_file.h"

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/units.h"
#include "core/tree/function_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr TimeNs kIdleLimit = 60 * kSecond;

constexpr TriggerRow kAdvance{
    "advance", "DURATION, idle, or idle LIMIT",
    "virtual clock: advances by DURATION, or until no packet, work request, flow or scheduled "
    "store is outstanding (ETIMEDOUT after 60s, or LIMIT). An advance in progress when a worker "
    "dies ends where it would have (before Linux 6.9 at once, with EIO)",
    false};
constexpr TriggerRow kStop{"stop", "1", "ends the advance in progress: its writer gets ECANCELED",
                           false};
constexpr KnobRow kClockKnobs[] = {
    {"dilation", KnobType::kUint, 1, 1'000'000, "1", "", "",
     "real clock: slow-down against wall time"},
};

// DURATION, `idle`, or `idle LIMIT`.
struct AdvanceSpec {
  bool until_idle = false;
  TimeNs duration = 0;
};

Result<AdvanceSpec> parse_advance(std::string_view text) {
  constexpr std::string_view kIdle = "idle";
  if (!text.starts_with(kIdle)) {
    Result<TimeNs> duration = parse_duration(text);
    if (!duration) return duration.error();
    return AdvanceSpec{false, *duration};
  }
  std::string_view rest = text.substr(kIdle.size());
  if (rest.empty() || rest == "\n") return AdvanceSpec{true, kIdleLimit};
  if (rest[0] != ' ') return errorf(EINVAL, "{}: idle, or idle LIMIT, is wanted", quoted(text));
  Result<TimeNs> limit = parse_duration(rest.substr(1));
  if (!limit) return limit.error();
  return AdvanceSpec{true, *limit};
}

void store_advance(Engine& engine, std::string_view text, const OperationPtr& operation,
                   Answer<void> answer) {
  Result<AdvanceSpec> spec = parse_advance(text);
  if (!spec) return answer(spec.error());
  operation->on_interrupt([&engine] {
    Task stop = [&engine] { engine.stop_advance(EINTR, "the writer was interrupted"); };
    (void)engine.post(stop);
  });
  auto kept = std::make_shared<Answer<void>>(std::move(answer));
  Task begin = [&engine, spec = *spec, kept, id = operation->request_id()] {
    Answer<void> done = [kept](Result<void> result) { (*kept)(std::move(result)); };
    if (spec.until_idle) {
      engine.advance_until_idle(spec.duration, std::move(done), id);
    } else {
      engine.advance(spec.duration, std::move(done), id);
    }
  };
  if (!engine.post(begin)) (*kept)(Error{EAGAIN, "too many commands are waiting for the engine"});
}

void store_stop(Engine& engine, std::string_view text, Answer<void> answer) {
  if (text != "1" && text != "1\n") return answer(Error{EINVAL, "only 1 stops an advance"});
  engine.call<void>(
      [&engine]() -> Result<void> {
        engine.stop_advance(ECANCELED, "stopped by a write to clock/stop");
        return {};
      },
      std::move(answer));
}

std::string lateness_text(const Engine& engine) {
  Histogram lateness;
  engine.add_lateness(lateness);
  return fmt::format("p50_ns {}\np99_ns {}\np999_ns {}\nmax_ns {}\nslips {}\nslipped_ns {}",
                     lateness.quantile(0.5), lateness.quantile(0.99), lateness.quantile(0.999),
                     lateness.quantile(1), engine.slips(), engine.slipped_ns());
}

}  // namespace

Result<void> ClockFiles::Dilation::check(std::span<const KnobValue> proposed) const {
  if (engine_.mode() == ClockMode::kReal || std::get<uint64_t>(proposed[0]) == 1) return {};
  return Error{EOPNOTSUPP, "the virtual clock is not tied to the wall's"};
}

void ClockFiles::Dilation::apply(std::span<const KnobValue> values) {
  engine_.clock().set_dilation(std::get<uint64_t>(values[0]));
}

void ClockFiles::keep(Journal& journal, SavedStores& saved) {
  log_.keep(journal, saved.log);
  schedule_.keep(journal, saved.schedule);
}

void ClockFiles::taken_over() {
  log_.note({engine_.now(), 0}, "another worker took over: flows and captures have ended");
}

void ClockFiles::stored(std::string_view path, std::string_view text, const Moment& applied) {
  log_.add(applied, format_assignment(path, text));
}

ClockFiles::ClockFiles(Tree& tree, const std::string& directory, Engine& engine,
                       std::function<void(std::string line)> failed)
    : engine_(engine), dilation_(engine), schedule_(tree, engine, log_, std::move(failed)) {
  using Text = Result<std::string>;
  bool real = engine.mode() == ClockMode::kReal;
  tree.add_file(directory + "/mode",
                constant(real ? "[real] virtual" : "real [virtual]",
                         "the clock: real, or virtual, which moves only by advance"));
  tree.add_file(directory + "/now_ns",
                read_only([&engine]() -> Text { return fmt::format("{}", engine.now()); },
                          "engine time. Survives a takeover: the real clock goes on meanwhile, the "
                          "virtual one stops"));
  add_trigger(tree, directory, kAdvance, engine,
              [&engine](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                store_advance(engine, text, operation, std::move(answer));
              });
  add_trigger(tree, directory, kStop, engine,
              [&engine](std::string_view text, const OperationPtr&, Answer<void> answer) {
                store_stop(engine, text, std::move(answer));
              });
  schedule_.add_file(directory);
  tree.add_file(
      directory + "/log",
      std::make_shared<FunctionStream>(
          [this] { return log_.text(); },
          "stores of this run with their time, in the form of `at`: written to `at` of a new mount "
          "with the same seed and configuration, they replay the run. Survives a takeover: a line "
          "with # marks it, where flows and captures ended, unlike in a replay"));
  std::vector<KnobValue> start{engine.clock().dilation()};
  add_knob_files(tree, directory,
                 std::make_shared<KnobSet>(kClockKnobs, engine, &dilation_, start));
  tree.add_file(directory + "/lateness",
                read_only([&engine]() -> Text { return lateness_text(engine); },
                          "real clock: lateness of the engine, and slips of its time"));
}

}  // namespace rocefs
