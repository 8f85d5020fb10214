#include "rdma/tree/congestion_files.h"

#include <cerrno>
#include <utility>

#include "core/base/text.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

// Shows the effective value: 0 while PCC has disabled CFR; the stored one is kept.
class CfrEnableFile final : public KnobFile {
 public:
  CfrEnableFile(std::shared_ptr<KnobSet> set, size_t index, const Cfr& cfr)
      : KnobFile(std::move(set), index), cfr_(cfr) {}
  Result<std::string> show() override {
    if (cfr_.shown_as_controlled()) return std::string("0\n");
    return KnobFile::show();
  }

 private:
  const Cfr& cfr_;
};

// Shows the text of OFED's file. A store changes the priorities that it names.
class TrafficClassFile final : public KnobFile {
 public:
  using KnobFile::KnobFile;
  FileDoc doc() const override { return {"value", {}, {}, row().doc}; }
  Result<std::string> show() override {
    auto rules = ClassOverride::parse(std::get<std::string>(set()->value(index())));
    if (!rules) return rules.error();
    std::string text = rules->text();
    return text.empty() ? text : text + '\n';
  }
  // A written line without a word is a slip. In `set` no text stands for no rule, as `get` shows
  // it.
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    if (split(text, " \n").empty()) {
      return answer(Error{EINVAL, "N, -1 or dst_ip=ADDRESS,tclass=N is wanted"});
    }
    KnobFile::store(text, operation, std::move(answer));
  }
  void restore(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    KnobFile::store(text, operation, false, std::move(answer));
  }
  static Result<KnobValue> merge(const KnobValue& present, const KnobValue& stored) {
    auto rules = ClassOverride::parse(std::get<std::string>(present));
    if (rules) rules = ClassOverride::parse(std::get<std::string>(stored), std::move(*rules));
    if (!rules) return rules.error();
    return KnobValue(rules->text());
  }
};

}  // namespace

void add_ecn_files(Tree& tree, const std::string& directory, Port& port, Engine& engine) {
  add_knob_files(tree, directory + "/ecn",
                 std::make_shared<KnobSet>(kEcnKnobs, engine, &port.ecn()));
}

void add_cfr_files(Tree& tree, const std::string& directory, Device& device, Engine& engine) {
  constexpr size_t kEnable = knob_index(kCfrKnobs, "enable");
  constexpr size_t kThreshold = knob_index(kCfrKnobs, "ooo_threshold");
  auto cfr = std::make_shared<KnobSet>(kCfrKnobs, engine, &device.cfr());
  cfr->set_guard(kEnable, [&owner = device.cfr()]() -> Result<void> {
    if (owner.controlled()) return Error{EBUSY, "CFR is disabled while PCC runs"};
    return {};
  });
  add_knob_file(tree, directory + "/cfr",
                std::make_shared<CfrEnableFile>(cfr, kEnable, device.cfr()));
  add_knob_file(tree, directory + "/cfr", std::make_shared<KnobFile>(cfr, kThreshold));
  auto saved = [cfr]() -> Result<std::string> {
    return format_knob(cfr->rows()[kEnable], cfr->value(kEnable));
  };
  tree.add_file(directory + "/cfr/saved",
                read_only(saved, "stored value of enable, which applies again when PCC ends"));
  for (size_t number = 1; number <= device.port_count(); ++number) {
    auto set =
        std::make_shared<KnobSet>(kClassKnobs, engine, &device.port(number).class_override());
    set->set_merge(0, TrafficClassFile::merge);
    add_knob_file(tree, fmt::format("{}/tc/{}", directory, number),
                  std::make_shared<TrafficClassFile>(set, 0));
  }
}

}  // namespace rocefs
