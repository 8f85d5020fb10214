#include "mad_cc/files/limiter_files.h"

#include <algorithm>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

using Settings = SaLimiter::Settings;

constexpr std::string_view kDropsDoc =
    "SA requests that found the queue full, and were refused with EBUSY; 0 clears it";

constexpr size_t kSemanticsRow = knob_index(kLimiterKnobs, "semantics");

MadSemantics semantics_in(std::span<const KnobValue> sa) {
  return static_cast<MadSemantics>(std::get<uint64_t>(sa[kSemanticsKnob]));
}

// File of a limit: one error for all bad input, as the driver's own parsing (M8).
class LimitFile final : public KnobFile {
 public:
  using KnobFile::KnobFile;
  // Documents the range: 0 only under semantics in which it means "off".
  FileDoc doc() const override {
    FileDoc doc = KnobFile::doc();
    doc.values = fmt::format("{} to {}", least(), row().max);
    if (!row().unit.empty()) doc.values += fmt::format(" ({})", row().unit);
    return doc;
  }
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    // Names the range in force; the row's begins with 0.
    if (Result<uint64_t> number = kstrtou64(text, 0); number && *number > row().max) {
      return answer(errorf(EINVAL, "{} is outside {} to {}", *number, least(), row().max));
    }
    KnobFile::store(text, operation, [answer = std::move(answer)](Result<void> result) mutable {
      if (!result && result.error().code == ERANGE) {
        return answer(Error{EINVAL, result.error().reason});
      }
      answer(std::move(result));
    });
  }

 private:
  uint64_t least() const {
    bool takes_zero = Settings::of(set()->values()).semantics == MadSemantics::kOfed25;
    return std::max<uint64_t>(row().min, takes_zero ? 0 : 1);
  }
};

class DropsFile final : public CounterFile, public ReplayedFile {
 public:
  DropsFile(Counter& drops, Engine& engine) : CounterFile(drops, 1, kDropsDoc), engine_(engine) {}
  bool writable() const override { return true; }
  bool replayed() const override { return true; }
  FileDoc doc() const override { return {"counter", "0", {}, kDropsDoc}; }
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    Result<uint64_t> number = kstrtou64(text, 0);
    if (!number || *number != 0) return answer(Error{EINVAL, "only 0 clears the drops"});
    engine_.call<Moment>(
        [this]() -> Result<Moment> {
          counter().set(0);
          return engine_.moment();
        },
        [operation, answer = std::move(answer)](Result<Moment> cleared) mutable {
          if (!cleared) return answer(cleared.error());
          operation->accepted("0", *cleared);
          answer({});
        });
  }

 private:
  Engine& engine_;
};

// Knobs of one binding of a port's device. Lives as long as they do.
class LimitsOwner final : public KnobOwner {
 public:
  explicit LimitsOwner(MadPort& port) : port_(port) {}
  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override {
    begin_counting();
    port_.configure_limiter(Settings::of(values));
  }
  // Initial values, unless a store has come before.
  void begin(const Settings& settings) {
    if (begin_counting()) port_.configure_limiter(settings);
  }

 private:
  bool begin_counting() {
    if (std::exchange(begun_, true)) return false;
    port_.limiter().clear_counters();
    return true;
  }

  MadPort& port_;
  bool begun_ = false;
};

// Refuses 0 unless it means "off" to the drivers (M10).
Result<void> LimitsOwner::check(std::span<const KnobValue> proposed) const {
  Settings settings = Settings::of(proposed);
  if (settings.semantics == MadSemantics::kOfed25) return {};
  auto refuse = [](const KnobRow& row) {
    return errorf(EINVAL, "{}: 0 is outside 1 to {} where sa/semantics is not ofed25", row.path,
                  row.max);
  };
  if (settings.max_outstanding == 0) {
    return refuse(kLimiterKnobs[knob_index(kLimiterKnobs, "max_outstanding")]);
  }
  if (settings.time_sa_mad_ms == 0) {
    return refuse(kLimiterKnobs[knob_index(kLimiterKnobs, "time_sa_mad")]);
  }
  return {};
}

}  // namespace

// Knobs of one port, whether its device is bound or not.
struct LimiterFiles::Limits {
  MadPort& port;
  std::shared_ptr<KnobSet> knobs = nullptr;  // null while the device is not bound
};

LimiterFiles::LimiterFiles(Tree& tree, Engine& engine, std::shared_ptr<KnobSet> sa)
    : tree_(tree), engine_(engine), sa_(std::move(sa)) {
  sa_->set_consequences(kSemanticsKnob, [this](const KnobValue& value) {
    return consequences(static_cast<MadSemantics>(std::get<uint64_t>(value)));
  });
  sa_->on_change([this] { follow(); });
}

LimiterFiles::~LimiterFiles() = default;

std::vector<KnobChange> LimiterFiles::consequences(MadSemantics semantics) const {
  std::vector<KnobChange> changes;
  std::vector<KnobValue> values = SaLimiter::defaults(semantics).values();
  for (const auto& limits : ports_) {
    for (size_t i = 0; limits->knobs && i < values.size(); ++i) {
      changes.push_back({limits->knobs, i, values[i], {}});
    }
  }
  return changes;
}

// Corrects a device that was bound during a store of semantics and had no part in it. Stores that
// come meanwhile are checked afterwards.
void LimiterFiles::follow() {
  if (following_) return;
  MadSemantics semantics = semantics_in(sa_->values());
  bool stray = std::any_of(ports_.begin(), ports_.end(), [&](const auto& limits) {
    return limits->knobs && Settings::of(limits->knobs->values()).semantics != semantics;
  });
  if (!stray) return;
  std::vector<KnobChange> changes = consequences(semantics);
  std::erase_if(changes, [&](const KnobChange& change) {
    return Settings::of(change.set->values()).semantics == semantics;
  });
  following_ = true;
  engine_.post_retrying(
      [this, transaction = std::make_shared<KnobTransaction>(std::move(changes))] {
        bool applied = static_cast<bool>(transaction->check());
        if (applied) transaction->apply();
        engine_.tell_control([this, transaction, applied] {
          following_ = false;
          if (!applied) return;
          transaction->publish();
          follow();
        });
      });
}

void LimiterFiles::bind(const std::string& device, unsigned number, MadPort& port) {
  Limits*& known = by_port_[&port];
  if (!known) known = ports_.emplace_back(std::make_unique<Limits>(Limits{port})).get();
  Limits& limits = *known;
  MadSemantics semantics = semantics_in(sa_->values());
  Settings settings = SaLimiter::defaults(semantics);
  auto owner = std::make_shared<LimitsOwner>(port);
  limits.knobs =
      std::shared_ptr<KnobSet>(new KnobSet(kLimiterKnobs, engine_, owner.get(), settings.values()),
                               [owner](KnobSet* knobs) { delete knobs; });
  limits.knobs->set_defaults(SaLimiter::defaults(semantics_in(sa_->defaults())).values());
  engine_.post_retrying([owner, settings] { owner->begin(settings); });

  std::string directory = fmt::format("{}/mad_sa_cc/{}", device, number);
  tree_.add_later(directory, [this, directory, &limits] { add_files(directory, limits); });
}

void LimiterFiles::add_files(const std::string& directory, const Limits& limits) {
  if (!limits.knobs) return;  // the device leaves
  LimiterCounters& counters = limits.port.limiter().counters();
  for (size_t i = 0; i < kSemanticsRow; ++i) {
    add_knob_file(tree_, directory, std::make_shared<LimitFile>(limits.knobs, i));
  }
  tree_.add_file(directory + "/drops", std::make_shared<DropsFile>(counters.drops, engine_));
  add_counter_files(tree_, directory, kLimiterCounters, counters);
  for (const auto& row : kLimiterGauges) {
    Counter& gauge = counters.*row.member;
    auto show = [&gauge]() -> Result<std::string> { return fmt::format("{}", gauge.get()); };
    tree_.add_file(fmt::format("{}/{}", directory, row.path), read_only(show, row.doc));
  }
}

void LimiterFiles::unbind(const MadPort& port) {
  if (auto known = by_port_.find(&port); known != by_port_.end()) known->second->knobs = nullptr;
}

}  // namespace rocefs
