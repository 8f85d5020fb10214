#include "core/clock_files.h"

#include <cerrno>

#include "core/function_file.h"
#include "core/kstrto.h"
#include "core/units.h"

namespace rocefs {
namespace {

constexpr TimeNs kIdleLimit = 60 * kSecond;
constexpr uint64_t kMaxDilation = 1'000'000;

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
  Task begin = [&engine, spec = *spec, kept] {
    Answer<void> done = [kept](Result<void> result) { (*kept)(std::move(result)); };
    if (spec.until_idle) {
      engine.advance_until_idle(spec.duration, std::move(done));
    } else {
      engine.advance(spec.duration, std::move(done));
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

void store_dilation(Engine& engine, std::string_view text, Answer<void> answer) {
  Result<uint64_t> dilation = kstrtou64(text, 0);
  if (!dilation) return answer(dilation.error());
  if (*dilation < 1 || *dilation > kMaxDilation) {
    return answer(errorf(EINVAL, "{} is outside 1 to {}", *dilation, kMaxDilation));
  }
  if (engine.mode() == ClockMode::kVirtual) {
    return answer(Error{EOPNOTSUPP, "the virtual clock is not tied to the wall's"});
  }
  engine.call<void>(
      [&engine, dilation = *dilation]() -> Result<void> {
        engine.clock().set_dilation(dilation);
        return {};
      },
      std::move(answer));
}

std::string lateness_text(const Engine& engine) {
  const Histogram& lateness = engine.lateness();
  return fmt::format("p50_ns {}\np99_ns {}\np999_ns {}\nmax_ns {}\nslips {}\nslipped_ns {}",
                     lateness.quantile(0.5), lateness.quantile(0.99), lateness.quantile(0.999),
                     lateness.quantile(1), engine.slips(), engine.slipped_ns());
}

}  // namespace

void add_clock_files(Tree& tree, const std::string& directory, Engine& engine) {
  using Text = Result<std::string>;
  bool real = engine.mode() == ClockMode::kReal;
  tree.add_file(directory + "/mode", constant(real ? "[real] virtual" : "real [virtual]"));
  tree.add_file(directory + "/now_ns",
                read_only([&engine]() -> Text { return fmt::format("{}", engine.now()); }));
  tree.add_file(directory + "/advance",
                write_only([&engine](std::string_view text, const OperationPtr& operation,
                                     Answer<void> answer) {
                  store_advance(engine, text, operation, std::move(answer));
                }));
  tree.add_file(
      directory + "/stop",
      write_only([&engine](std::string_view text, const OperationPtr&, Answer<void> answer) {
        store_stop(engine, text, std::move(answer));
      }));
  tree.add_file(
      directory + "/dilation",
      read_write([&engine]() -> Text { return fmt::format("{}", engine.clock().dilation()); },
                 [&engine](std::string_view text, const OperationPtr&, Answer<void> answer) {
                   store_dilation(engine, text, std::move(answer));
                 }));
  tree.add_file(directory + "/lateness",
                read_only([&engine]() -> Text { return lateness_text(engine); }));
}

}  // namespace rocefs
