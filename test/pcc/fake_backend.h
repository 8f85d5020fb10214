// FakeBackend: records its orders, and answers at once or when the test releases an answer.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "pcc/card/backend.h"

namespace rocefs::test {

class FakeBackend final : public PccBackend {
 public:
  // Journal: state that outlives a backend.
  struct Journal {
    std::vector<std::string> orders;
    FakeBackend* now = nullptr;            // null without a backend
    bool hold = false;                     // answers wait for release()
    Error refuse;                          // answer of the next order, if an error
    std::vector<PccLoaded::File> plugins;  // result of the next load()
    Assignments present;                   // values that the algorithm has set itself
    std::shared_ptr<SharedMemory> control;
  };

  Listener& listener;

  FakeBackend(Journal& journal, Listener& hears) : listener(hears), journal_(journal) {
    journal_.now = this;
    algorithms_ = built_ins();
  }
  ~FakeBackend() override { journal_.now = nullptr; }

  std::vector<PccAlgorithmInfo> built_ins() const override {
    return {{0, "aimd", "", {{"alpha", "100"}, {"beta", "0.5"}}},
            {1, "dcqcn", "", {{"wai", "80"}, {"g", "0.0625"}, {"max_window", "524288"}}}};
  }
  pid_t pid() const override { return 0; }
  void set_debug(bool) override {}
  void load(const std::string& directory, bool force, Answer<PccLoaded> answer) override {
    note("load " + directory + (force ? " force" : ""));
    PccLoaded loaded{journal_.plugins, {}};
    for (const PccLoaded::File& file : std::exchange(journal_.plugins, {})) {
      if (file.loaded.empty() || file.again) continue;
      auto slot = static_cast<unsigned>(algorithms_.size());
      algorithms_.push_back({slot, file.loaded, "", {{"gain", "1"}}});
    }
    loaded.algorithms = algorithms_;
    give(std::move(answer), std::move(loaded));
  }
  void unload(unsigned slot, Answer<void> answer) override {
    note(fmt::format("unload {}", slot));
    std::erase_if(algorithms_, [slot](const auto& one) { return one.slot == slot; });
    give_none(std::move(answer));
  }
  void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) override {
    note(fmt::format("apply {}{}", slot, qpn ? fmt::format(" to {}", *qpn) : ""));
    give_none(std::move(answer));
  }
  void start(const Run& run, Answer<void> answer) override {
    note(fmt::format("start {} {}", run.pollers, run.interval_us));
    journal_.control = run.control;
    give_none(std::move(answer));
  }
  void stop(Answer<void> answer) override {
    note("stop");
    give_none(std::move(answer));
  }
  void set_interval(unsigned interval_us, Answer<void> answer) override {
    note(fmt::format("interval {}", interval_us));
    give_none(std::move(answer));
  }
  void update(unsigned slot, const Assignments& changes, Answer<PccAlgorithmInfo> answer) override {
    std::string text = fmt::format("update {}", slot);
    PccAlgorithmInfo updated = algorithms_[slot];
    for (const auto& [name, value] : changes) {
      text += fmt::format(" {}={}", name, value);
      for (auto& parameter : updated.parameters) {
        if (parameter.first == name) parameter.second = value;
      }
    }
    note(text);
    if (journal_.refuse.code == 0) algorithms_[slot] = updated;
    give(std::move(answer), std::move(updated));
  }
  // Not in the journal: reading is no order.
  void read(unsigned slot, Answer<PccAlgorithmInfo> answer) override {
    PccAlgorithmInfo info = algorithms_[slot];
    for (const auto& [name, value] : journal_.present) {
      for (auto& parameter : info.parameters) {
        if (parameter.first == name) parameter.second = value;
      }
    }
    give(std::move(answer), std::move(info));
  }
  void forget(Answer<void> answer) override {
    note("forget");
    algorithms_ = built_ins();
    held_.clear();
    answer({});
  }
  void dump(uint32_t qpn, Answer<std::string> answer) override {
    note(fmt::format("dump {}", qpn));
    give(std::move(answer), fmt::format("QP {}\n  a=1", qpn));
  }
  void echo(const std::string& message, Answer<std::string> answer) override {
    note("echo " + message);
    give(std::move(answer), std::string(message));
  }

  // Answers the oldest held order.
  void release() {
    Task task = std::move(held_.front());
    held_.pop_front();
    task();
  }
  // Drops it without an answer.
  void drop() {
    Task task = std::move(held_.front());
    held_.pop_front();
  }

 private:
  void note(std::string order) { journal_.orders.push_back(std::move(order)); }
  template <class T>
  void give(Answer<T> answer, T value) {
    Result<T> result = std::move(value);
    if (journal_.refuse.code != 0) result = std::exchange(journal_.refuse, {});
    if (!journal_.hold) return answer(std::move(result));
    auto kept = std::make_shared<Result<T>>(std::move(result));
    held_.push_back([kept, answer = std::move(answer)]() mutable { answer(std::move(*kept)); });
  }
  void give_none(Answer<void> answer) {
    Result<void> result;
    if (journal_.refuse.code != 0) result = std::exchange(journal_.refuse, {});
    if (!journal_.hold) return answer(std::move(result));
    held_.push_back([result, answer = std::move(answer)]() mutable { answer(result); });
  }

  Journal& journal_;
  std::vector<PccAlgorithmInfo> algorithms_;
  std::deque<Task> held_;
};

}  // namespace rocefs::test
