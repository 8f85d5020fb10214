// StoreSchedule: clock/at, stores that are to be applied at a place in the run, between two events.
// Under the virtual clock the engine is held there while the control thread applies them, whatever
// that takes; so it is for knobs under the real clock, whose triggers follow as soon as they can.
//
// On the control thread.
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
  // What was applied is added to `log`; `failed` hears of what was refused at its instant. All
  // outlive the engine's thread.
  StoreSchedule(Tree& tree, Engine& engine, StoreLog& log,
                std::function<void(std::string line)> failed);
  StoreSchedule(const StoreSchedule&) = delete;
  StoreSchedule& operator=(const StoreSchedule&) = delete;

  void add_file(const std::string& directory);
  // As ClockFiles::keep().
  void keep(Journal& journal, SavedSchedule& saved);
  // What is still to be applied, one line each, in the order of application.
  std::string text() const;
  void clear(Answer<void> answer);

 private:
  class AtFile;
  struct Line {
    Engine::TaskId id;
    std::vector<Assignment> assignments;
    Caller caller;
    bool knobs = false;         // alone
    IdentityPtr who = nullptr;  // of what names files; none once another worker took over
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
  std::vector<std::weak_ptr<const Identity>> identities_;  // different ones, of what is pending
  std::unique_ptr<ScheduleKeeper> keeper_;                 // null: nobody will take over
};

}  // namespace rocefs
