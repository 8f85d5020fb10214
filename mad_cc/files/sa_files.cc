#include "mad_cc/files/sa_files.h"

#include <algorithm>
#include <cerrno>

#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr TriggerRow kSend{
    "send", "burst COUNT [port=DEVICE[/N]] [timeout=TIME] [retries=N], or stop",
    "sends COUNT (1 to 1000000) SA requests Get(ClassPortInfo) at once, from port 1 of the first "
    "device or port=, each with timeout= (1s) and retries= (0), and shows of the last burst how "
    "its "
    "requests have ended: answered, busy (status Busy), timed_out (sent), expired (in the queue of "
    "mad_sa_cc), refused (counted in its drops), flushed (the port went, or stop came); waiting "
    "are "
    "the others. The next burst is EBUSY until none waits; stop ends it"};

std::vector<KnobValue> start_of(std::string_view semantics) {
  std::vector<KnobValue> start = initial_values(kSaKnobs);
  if (Result<KnobValue> value = parse_knob(kSaKnobs[kSemanticsKnob], semantics); value) {
    start[kSemanticsKnob] = *value;
  }
  return start;
}

}  // namespace

SaFiles::SaFiles(Parts parts)
    : parts_(std::move(parts)),
      knobs_(std::make_shared<KnobSet>(kSaKnobs, parts_.engine, static_cast<KnobOwner*>(this),
                                       start_of(parts_.semantics))),
      generator_(parts_.engine.scheduler(), parts_.engine.outstanding()) {
  add_knob_files(parts_.tree, parts_.directory, knobs_);
  add_trigger(
      parts_.tree, parts_.directory, kSend, parts_.engine,
      [this](std::string_view text, const OperationPtr&, Answer<void> answer) {
        store(without_newline(text), std::move(answer));
      },
      [this]() -> Result<std::string> { return last_ ? last_->text() : "none"; });
}

SaFiles::~SaFiles() = default;

void SaFiles::apply(std::span<const KnobValue> values) {
  SaSettings settings;
  settings.delay_ns =
      static_cast<TimeNs>(std::get<uint64_t>(values[knob_index(kSaKnobs, "delay")]));
  settings.loss = std::get<double>(values[knob_index(kSaKnobs, "loss")]);
  settings.busy = std::get<double>(values[knob_index(kSaKnobs, "busy")]);
  parts_.configure(settings);
}

const SaFiles::Port* SaFiles::find(const std::optional<PortName>& name) const {
  auto found = std::find_if(parts_.ports.begin(), parts_.ports.end(), [&](const Port& port) {
    return !name || port.name.text() == name->text();
  });
  return found == parts_.ports.end() ? nullptr : &*found;
}

void SaFiles::store(std::string_view text, Answer<void> answer) {
  if (text == "stop") {
    return parts_.engine.call<void>(
        [this]() -> Result<void> {
          stop_burst();
          return {};
        },
        std::move(answer));
  }
  Result<BurstSpec> spec = parse_burst(text);
  if (!spec) return answer(spec.error());
  const Port* port = find(spec->port);
  if (!port)
    return answer(errorf(EINVAL, "no port {}", spec->port ? spec->port->text() : "at all"));
  auto burst = std::make_shared<Burst>();
  burst->spec = *spec;
  burst->port = port->name.text();
  parts_.engine.call<void>(
      [this, port, burst] { return generator_.start(burst, *port->port, port->administrator_lid); },
      [this, burst, answer = std::move(answer)](Result<void> started) mutable {
        if (started) last_ = burst;
        answer(std::move(started));
      });
}

void SaFiles::forget_burst() {
  last_ = nullptr;
}

}  // namespace rocefs
