#include <algorithm>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "rdma/fabric/injector.h"

namespace rocefs {
namespace {

constexpr TimeNs kMaxDelay = 10 * kSecond;
constexpr TimeNs kReorderPatience = 100 * kMicrosecond;

constexpr struct {
  std::string_view name;
  InjectAction action;
} kActions[] = {{"drop", InjectAction::kDrop},       {"duplicate", InjectAction::kDuplicate},
                {"reorder", InjectAction::kReorder}, {"corrupt", InjectAction::kCorrupt},
                {"delay", InjectAction::kDelay},     {"mark-ce", InjectAction::kMark},
                {"down", InjectAction::kDown},       {"up", InjectAction::kUp}};

constexpr struct {
  std::string_view name;
  CorruptPart part;
} kParts[] = {{"payload", CorruptPart::kPayload},
              {"icrc", CorruptPart::kIcrc},
              {"header", CorruptPart::kHeader},
              {"reserved", CorruptPart::kReserved}};

// AETH syndromes, by their upper three bits.
constexpr struct {
  std::string_view name;
  uint8_t syndrome;
} kAnswers[] = {{"ack", 0}, {"rnr", 1}, {"nak", 3}};

template <class T>
Result<void> number(std::string_view key, std::string_view value, uint64_t max, T& out,
                    uint64_t min = 0) {
  Result<uint64_t> parsed = kstrtou64(value, 0);
  if (!parsed) return errorf(parsed.error().code, "{}: {}", key, parsed.error().reason);
  if (*parsed < min || *parsed > max) {
    return errorf(EINVAL, "{}={} is outside {} to {}", key, *parsed, min, max);
  }
  out = static_cast<T>(*parsed);
  return {};
}

Result<void> set_opcode(InjectSpec& spec, std::string_view value) {
  std::bitset<256>& opcodes = spec.opcodes.emplace();
  for (const auto& answer : kAnswers) {
    if (answer.name != value) continue;
    opcodes.set(static_cast<size_t>(wire::Opcode::kRcAck));
    opcodes.set(static_cast<size_t>(wire::Opcode::kXrcAck));
    spec.syndrome = answer.syndrome;
    return {};
  }
  for (size_t i = 0; i < opcodes.size(); ++i) {
    const wire::OpcodeInfo& info = wire::opcode_info(static_cast<wire::Opcode>(i));
    if (info.valid && (value == "data" ? info.has_payload : info.name == value)) opcodes.set(i);
  }
  if (opcodes.any()) return {};
  return errorf(EINVAL, "opcode={}: a name such as RC_WRITE_MIDDLE, or data, ack, nak or rnr",
                value);
}

Result<void> set_duration(InjectSpec& spec, std::string_view value) {
  Result<TimeNs> delay = parse_duration(value);
  if (!delay) return errorf(delay.error().code, "delay: {}", delay.error().reason);
  if (*delay < 1 || *delay > kMaxDelay)
    return errorf(EINVAL, "delay={} is outside 1ns to 10s", value);
  spec.delay = *delay;
  return {};
}

Result<void> set_probability(InjectSpec& spec, std::string_view value) {
  Result<double> p = parse_probability(value);
  if (!p) return errorf(p.error().code, "p: {}", p.error().reason);
  if (*p == 0) return Error{EINVAL, "p=0 would never fire"};
  spec.probability = *p;
  return {};
}

Result<void> set_part(InjectSpec& spec, std::string_view value) {
  auto part = std::find_if(std::begin(kParts), std::end(kParts),
                           [&](const auto& one) { return one.name == value; });
  if (part == std::end(kParts)) {
    return errorf(EINVAL, "what={}: payload, icrc, header or reserved is wanted", value);
  }
  spec.part = part->part;
  return {};
}

Result<void> set_key(InjectSpec& spec, std::string_view key, std::string_view value) {
  if (key == "psn") return number(key, value, 0xffffff, spec.psn.emplace());
  if (key == "qpn") return number(key, value, 0xffffff, spec.qpn.emplace());
  if (key == "sport") return number(key, value, 0xffff, spec.source_port.emplace());
  if (key == "dscp") return number(key, value, 63, spec.dscp.emplace());
  if (key == "prio") return number(key, value, 7, spec.priority.emplace());
  if (key == "skip") return number(key, value, uint64_t{1} << 40, spec.skip);
  if (key == "count") return number(key, value, uint64_t{1} << 40, spec.count);
  if (key == "opcode") return set_opcode(spec, value);
  if (key == "p") return set_probability(spec, value);
  if (key == "delay") return set_duration(spec, value);
  if (key == "by") return number(key, value, 65536, spec.by, 1);
  if (key == "what") return set_part(spec, value);
  return errorf(EINVAL,
                "unknown key {} (psn, qpn, opcode, dscp, prio, sport, skip, count, p, delay, by, "
                "what)",
                key);
}

// Checks keys against the action, and sets defaults.
Result<void> settle(InjectSpec& spec, std::string_view action,
                    const std::vector<std::string_view>& given) {
  auto has = [&](std::string_view key) {
    return std::find(given.begin(), given.end(), key) != given.end();
  };
  bool state = spec.action == InjectAction::kDown || spec.action == InjectAction::kUp;
  bool delays = spec.action == InjectAction::kDelay || spec.action == InjectAction::kDuplicate ||
                spec.action == InjectAction::kReorder || spec.action == InjectAction::kDown;
  if (has("delay") && !delays) {
    return errorf(EINVAL, "delay= goes with delay, duplicate, reorder and down, not with {}",
                  action);
  }
  if (spec.action == InjectAction::kDelay && !has("delay")) {
    return Error{EINVAL, "delay wants delay=TIME"};
  }
  if (has("by") && spec.action != InjectAction::kReorder) {
    return errorf(EINVAL, "by= goes with reorder, not with {}", action);
  }
  if (has("what") && spec.action != InjectAction::kCorrupt) {
    return errorf(EINVAL, "what= goes with corrupt, not with {}", action);
  }
  if (spec.action == InjectAction::kUp && !given.empty()) {
    return Error{EINVAL, "up happens at once: no packet comes while the direction is down"};
  }
  if (has("p") && !has("count")) spec.count = 0;
  if (spec.action == InjectAction::kReorder && !has("delay")) spec.delay = kReorderPatience;
  bool waits = std::any_of(given.begin(), given.end(),
                           [](std::string_view key) { return key != "delay" && key != "count"; });
  spec.at_once = state && !waits;
  if (spec.at_once && has("count") && spec.count != 1) {
    return Error{EINVAL, "count= goes with the packets of down, and none are named"};
  }
  return {};
}

}  // namespace

Result<InjectSpec> parse_inject(std::string_view line) {
  std::vector<std::string_view> words = split(line, " \t\n");
  if (words.size() < 3) return Error{EINVAL, "NAME ACTION LINK [KEY=VALUE …] is wanted"};
  InjectSpec spec;
  if (!valid_entry_name(words[0]) || words[0] == "add" || words[0] == "list") {
    return errorf(EINVAL, "{} cannot be a fault's name", words[0]);
  }
  spec.name = words[0];
  auto action = std::find_if(std::begin(kActions), std::end(kActions),
                             [&](const auto& one) { return one.name == words[1]; });
  if (action == std::end(kActions)) {
    return errorf(EINVAL,
                  "unknown action {} (drop, duplicate, reorder, corrupt, delay, mark-ce, down, up)",
                  words[1]);
  }
  spec.action = action->action;
  spec.link = words[2];
  std::vector<std::string_view> given;
  for (size_t i = 3; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == words[i].npos) return errorf(EINVAL, "{} is not KEY=VALUE", words[i]);
    std::string_view key = words[i].substr(0, equals);
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      return errorf(EINVAL, "{} is given twice", key);
    }
    given.push_back(key);
    Result<void> set = set_key(spec, key, words[i].substr(equals + 1));
    if (!set) return set.error();
  }
  if (Result<void> settled = settle(spec, words[1], given); !settled) return settled.error();
  return spec;
}

}  // namespace rocefs
