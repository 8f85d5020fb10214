// StoreSchedule: clock/at, stores to be applied at a moment in the run, between two events. Under
// the virtual clock the engine is held there while the control thread applies them, however long
// that takes; so it is for knobs under the real clock, where triggers follow as soon as possible.
//
// Control thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/assignment.h"
#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/schedule_keeper.h"
#include "core/tree/store_log.h"
#include "core/tree/tree.h"

namespace rocefs {

class StoreSchedule {
 public:
  // Adds applied stores to `log`; `failed` logs stores that were refused at their moment. All
  // outlive the engine's thread.
  StoreSchedule(Tree& tree, Engine& engine, StoreLog& log,
                std::function<void(std::string line)> failed);
  StoreSchedule(const StoreSchedule&) = delete;
  StoreSchedule& operator=(const StoreSchedule&) = delete;

  void add_file(const std::string& directory);
  // As ClockFiles::keep().
  void keep(Journal& journal, SavedSchedule& saved);
  // Pending stores, one line each, in the order of application.
  std::string text() const;
  void clear(Answer<void> answer);

 private:
  class AtFile;
  struct Line {
    Engine::TaskId id;
    std::vector<Assignment> assignments;
    Caller caller;
    bool knobs = false;         // only knobs
    IdentityPtr who = nullptr;  // writer of stores that name files; none after a takeover
  };
  using LinePtr = std::shared_ptr<Line>;

  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer);
  Result<void> wait(const LinePtr& line);
  Result<LinePtr> parse(std::string_view assignments, const OperationPtr& operation);
  Result<IdentityPtr> keep_identity(const OperationPtr& operation);
  bool may_come(std::string_view path);
  void arrive(const LinePtr& line);
  void apply(const LinePtr& line, Engine::Pause pause, const Moment& moment);
  void note(const Line& line, const Moment& moment, const Result<void>& result);

  Tree& tree_;
  Engine& engine_;
  StoreLog& log_;
  std::function<void(std::string)> failed_;
  std::map<Engine::TaskId, LinePtr> pending_;
  std::vector<std::weak_ptr<const Identity>> identities_;  // distinct ones, of pending stores
  std::unique_ptr<ScheduleKeeper> keeper_;                 // null: no takeover
};

}  // namespace rocefs
