#include "core/tree/store_schedule.h"
#include "core/tree/knob_file.h"

#include <cerrno>
#include <cstring>

#include "core/base/kstrto.h"
#include "core/base/units.h"
#include "core/tree/set_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr size_t kMaxPending = 65536;   // if their text fits in SavedSchedule
constexpr size_t kMaxIdentities = 256;  // each has two descriptors
constexpr TriggerRow kAt{
    "at", "TIME PATH=VALUE [PATH=VALUE …], or clear",
    "applies a store after TIME, or at @TIME; @TIME+N is after N events of that instant. Several "
    "knobs, all or none, or one trigger. Shows pending stores. Survives a takeover: times are "
    "those of now_ns, and stores that came due without a worker are applied at once",
    false};

Result<Moment> moment_of(const When& when, const Moment& now) {
  if (!when.absolute) {
    if (when.moment.at > kNever - 1 - now.at)
      return Error{EINVAL, "the time exceeds the clock's range"};
    return Moment{now.at + when.moment.at, when.moment.at == 0 ? now.events : 0};
  }
  if (when.moment >= now) return when.moment;
  return errorf(EINVAL, "{} has passed: it is {}", format_moment(when.moment), format_moment(now));
}

bool names_files(const Tree::Node& node, std::string_view text) {
  auto file = std::dynamic_pointer_cast<ReplayedFile>(node.file);
  return file && file->names_files(text);
}

bool is_replayed(const Tree::Node& node) {
  auto file = std::dynamic_pointer_cast<ReplayedFile>(node.file);
  return file && file->replayed();
}

}  // namespace

// Longer than a page when many stores are pending.
class StoreSchedule::AtFile final : public Stream {
 public:
  explicit AtFile(StoreSchedule& schedule) : schedule_(schedule) {}
  bool writable() const override { return true; }
  bool keeps_opener() const override { return true; }
  FileDoc doc() const override { return {"trigger", std::string(kAt.syntax), {}, kAt.doc}; }
  void content(Answer<std::string> answer) override { answer(schedule_.text()); }
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    schedule_.store(text, operation, std::move(answer));
  }

 private:
  StoreSchedule& schedule_;
};

StoreSchedule::StoreSchedule(Tree& tree, Engine& engine, StoreLog& log,
                             std::function<void(std::string line)> failed)
    : tree_(tree), engine_(engine), log_(log), failed_(std::move(failed)) {}

void StoreSchedule::add_file(const std::string& directory) {
  tree_.add_file(fmt::format("{}/{}", directory, kAt.path), std::make_shared<AtFile>(*this));
}

std::string StoreSchedule::text() const {
  std::string text;
  for (const auto& [id, line] : pending_) {
    text += fmt::format("{} {}\n", format_moment(id.first), format_assignments(line->assignments));
  }
  return text;
}

void StoreSchedule::clear(Answer<void> answer) {
  std::vector<Engine::TaskId> ids;
  for (const auto& [id, line] : std::exchange(pending_, {})) ids.push_back(id);
  if (keeper_) keeper_->clear();
  engine_.call<void>(
      [this, ids = std::move(ids)]() -> Result<void> {
        for (const Engine::TaskId& id : ids) engine_.cancel(id);
        return {};
      },
      std::move(answer));
}

void StoreSchedule::store(std::string_view text, const OperationPtr& operation,
                          Answer<void> answer) {
  // A text clipped to a page could end within a value.
  if (text.size() >= File::kPageSize && !text.ends_with('\n')) {
    return answer(errorf(EINVAL, "longer than {} bytes", File::kPageSize - 1));
  }
  text = without_newline(text);
  auto tell = [operation, order = std::string(text),
               answer = std::move(answer)](Result<void> result) mutable {
    if (result) operation->accepted(order, std::nullopt);
    answer(std::move(result));
  };
  if (text == "clear") return clear(std::move(tell));
  if (text.starts_with('#')) return tell({});  // comments, as in clock/log
  size_t end = std::min(text.find(' '), text.size());
  Result<When> when = parse_when(text.substr(0, end));
  if (!when) return tell(when.error());
  Result<LinePtr> line = parse(text.substr(end), operation);
  if (!line) return tell(line.error());
  if (pending_.size() >= kMaxPending)
    return tell(errorf(ENOSPC, "{} stores are scheduled already", kMaxPending));
  engine_.call<void>(
      [this, when = *when, line = *line]() -> Result<void> {
        Result<Moment> moment = moment_of(when, engine_.moment());
        if (!moment) return moment.error();
        line->id = engine_.at(*moment, [this, line] { arrive(line); });
        return {};
      },
      [this, line = *line, tell = std::move(tell)](Result<void> result) mutable {
        if (result) result = wait(line);
        tell(std::move(result));
      });
}

// A store that is no longer pending is skipped at its moment.
Result<void> StoreSchedule::wait(const LinePtr& line) {
  if (keeper_ && !keeper_->add(line->id.second, {line->id.first, line->caller, line->knobs,
                                                 format_assignments(line->assignments)})) {
    auto cancel = [this, id = line->id]() -> Result<void> {
      engine_.cancel(id);
      return {};
    };
    engine_.call<void>(cancel, [](Result<void>) {});
    return Error{ENOSPC, "no room for more scheduled stores"};
  }
  pending_.emplace(line->id, line);
  return {};
}

// Paths were checked when the store was accepted; a missing one may come back.
void StoreSchedule::keep(Journal& journal, SavedSchedule& saved) {
  keeper_ = std::make_unique<ScheduleKeeper>(journal, saved);
  keeper_->restore([this](const ScheduledStore& store) {
    auto line = std::make_shared<Line>();
    line->assignments = *parse_assignments(store.text);
    line->caller = store.caller;
    line->knobs = store.knobs;
    line->id = engine_.at(store.moment, [this, line] { arrive(line); });
    pending_.emplace(line->id, line);
    return line->id.second;
  });
}

// Whether the path may exist at the moment of the store: entries of that directory come and go.
bool StoreSchedule::may_come(std::string_view path) {
  while (!path.empty()) {
    size_t slash = path.rfind('/');
    path = slash == path.npos ? std::string_view{} : path.substr(0, slash);
    if (Tree::Node* node = tree_.follow(path)) return node->changes;
  }
  return false;
}

Result<StoreSchedule::LinePtr> StoreSchedule::parse(std::string_view assignments,
                                                    const OperationPtr& operation) {
  Result<std::vector<Assignment>> parsed = parse_assignments(assignments);
  if (!parsed) return parsed.error();
  auto line = std::make_shared<Line>();
  line->assignments = std::move(*parsed);
  line->caller = {operation->opener().uid, operation->opener().gid, operation->caller().pid};
  std::vector<Assignment> knobs;
  for (const Assignment& one : line->assignments) {
    Tree::Node* node = tree_.follow(one.path);
    if (node && names_files(*node, one.value)) {
      Result<IdentityPtr> who = keep_identity(operation);
      if (!who) return who.error();
      line->who = *who;
    }
    bool is_other = node ? is_replayed(*node) : may_come(one.path);
    if (!is_other) {
      knobs.push_back(one);
    } else if (line->assignments.size() > 1) {
      return errorf(EINVAL, "{}: only knobs may be stored together", one.path);
    }
  }
  Result<std::vector<KnobChange>> changes = knob_changes(tree_, knobs);
  if (!changes) return changes.error();
  line->knobs = knobs.size() == line->assignments.size();
  return line;
}

// Stores of one writer share an identity.
Result<IdentityPtr> StoreSchedule::keep_identity(const OperationPtr& operation) {
  const Result<IdentityPtr>& who = operation->identity();
  if (!who) return who;
  std::erase_if(identities_, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : identities_) {
    if (IdentityPtr kept = weak.lock(); *kept == **who) return kept;
  }
  if (identities_.size() >= kMaxIdentities) {
    return errorf(ENOSPC, "stores of {} different writers are scheduled already", kMaxIdentities);
  }
  identities_.push_back(*who);
  return who;
}

// Core's thread.
void StoreSchedule::arrive(const LinePtr& line) {
  bool holds = line->knobs || engine_.mode() == ClockMode::kVirtual;
  Engine::Pause pause = holds ? engine_.pause() : nullptr;
  engine_.tell_control([this, line, pause = std::move(pause), moment = engine_.moment()]() mutable {
    apply(line, std::move(pause), moment);
  });
}

// The engine stops, or goes on, after a commit: an applied store is journalled before time passes,
// and is applied once.
void StoreSchedule::note(const Line& line, const Moment& moment, const Result<void>& result) {
  std::string text = format_assignments(line.assignments);
  if (result) {
    log_.add(moment, text);
  } else {
    failed_(fmt::format("{} {}: {} ({})", format_moment(moment), text, result.error().reason,
                        strerrorname_np(result.error().code)));
  }
  if (!keeper_) return;
  keeper_->remove(line.id.second);
  keeper_->commit();
}

// Looks the paths up again: the tree may have changed.
void StoreSchedule::apply(const LinePtr& line, Engine::Pause pause, const Moment& moment) {
  if (pending_.erase(line->id) == 0) return;
  auto done = [this, line, pause = std::move(pause), moment](Result<void> result) mutable {
    note(*line, moment, result);
    pause.reset();
  };
  const Assignment& first = line->assignments[0];
  Tree::Node* node = tree_.follow(first.path);
  if (node && is_replayed(*node)) {
    auto operation = std::make_shared<Operation>(line->caller, Operation::Origin::kSchedule);
    if (line->who) operation->set_identity(line->who);
    return node->file->store(first.value, operation, std::move(done));
  }
  store_together(tree_, engine_, line->assignments, std::nullopt, std::move(done));
}

}  // namespace rocefs
