// SaFiles: kernel/debug/rocefs/sa: how the emulated administrators answer, which semantics the
// limiters follow, and the generator of requests.
//
// Control thread, unless stated otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tree/knob.h"
#include "mad_cc/files/generator.h"
#include "mad_cc/port/limiter_knobs.h"
#include "mad_cc/sa/sa.h"

namespace rocefs {

inline constexpr KnobRow kSaKnobs[] = {
    {"delay", KnobType::kDuration, 0, 10 * kSecond, "0", "", "ns",
     "how long the emulated subnet administrators take to answer a request"},
    {"loss", KnobType::kProbability, 0, 1, "0", "", "",
     "probability that an administrator does not hear a request"},
    {"busy", KnobType::kProbability, 0, 1, "0", "", "",
     "probability that an administrator's answer is status Busy"},
    {"semantics", KnobType::kWord, 0, 0, "doc", kMadSemanticsWords, "",
     "what mad_sa_cc means: doc, as the vendor's text has it; ofed4 and ofed25, as its drivers of "
     "these releases do it. A store brings max_outstanding, queue_size and time_sa_mad of every "
     "port to 16, 16, 20 (doc), 16, 65536, 20 (ofed4) or 0, 65536, 0 (ofed25), also of what it "
     "was; "
     "requests under way go on. The first value is [nic] mad_semantics= of the ini file"},
};
inline constexpr size_t kSemanticsKnob = knob_index(kSaKnobs, "semantics");

class SaFiles final : private KnobOwner {
 public:
  // Port that bursts may be sent from.
  struct Port {
    PortName name;
    MadPort* port;
    uint16_t administrator_lid;
  };
  struct Parts {
    Tree& tree;
    Engine& engine;
    std::string directory;
    std::string_view semantics;  // at first: a word of kMadSemanticsWords
    std::vector<Port> ports;     // that of a burst without port= first
    // Configures all administrators, which start with SaSettings{}. Core thread.
    std::function<void(const SaSettings&)> configure;
  };
  // Adds the files. The objects that `parts` refers to outlive SaFiles, which outlives the engine's
  // thread.
  explicit SaFiles(Parts parts);
  ~SaFiles() override;

  const std::shared_ptr<KnobSet>& knobs() const { return knobs_; }

  // First part of a reset: ends the burst in progress. Core thread.
  void stop_burst() { generator_.stop(); }
  // Second part of a reset: forgets the last burst.
  void forget_burst();

 private:
  void apply(std::span<const KnobValue> values) override;
  void store(std::string_view text, Answer<void> answer);
  const Port* find(const std::optional<PortName>& name) const;

  const Parts parts_;
  std::shared_ptr<KnobSet> knobs_;
  Generator generator_;
  std::shared_ptr<const Burst> last_;  // null: none was sent
};

}  // namespace rocefs
