#include "rdma/transport/class_override.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

// Parses a traffic class; nullopt for -1.
Result<std::optional<uint8_t>> parse_class(std::string_view text) {
  if (text == "-1") return std::optional<uint8_t>();
  Result<uint64_t> number = kstrtou64(text, 0);
  if (number && *number <= 255) return std::optional(static_cast<uint8_t>(*number));
  return errorf(EINVAL, "'{}': a traffic class is 0 to 255, or -1 for none", text);
}

Result<Ip> parse_ip(const std::string& text) {
  std::array<uint8_t, 4> v4{};
  Ip ip{};
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) == 1) return mapped_ipv4(v4);
  if (::inet_pton(AF_INET6, text.c_str(), ip.data()) == 1) return ip;
  return errorf(EINVAL, "'{}' is no IP address", text);
}

struct Change {
  Ip destination;
  std::optional<uint8_t> traffic_class;
};

// Parses dst_ip=ADDRESS,tclass=N, in any order.
Result<Change> parse_rule(std::string_view word) {
  constexpr std::string_view kTo = "dst_ip=", kClass = "tclass=";
  const size_t comma = word.find(',');
  std::string_view to = word.substr(0, comma);
  std::string_view number = comma == word.npos ? "" : word.substr(comma + 1);
  if (!to.starts_with(kTo)) std::swap(to, number);
  if (!to.starts_with(kTo) || !number.starts_with(kClass)) {
    return errorf(EINVAL, "'{}': N, -1 or dst_ip=ADDRESS,tclass=N is wanted", word);
  }
  Result<Ip> ip = parse_ip(std::string(to.substr(kTo.size())));
  if (!ip) return ip.error();
  auto traffic_class = parse_class(number.substr(kClass.size()));
  if (!traffic_class) return traffic_class.error();
  return Change{*ip, *traffic_class};
}

Result<void> change_rule(ClassRules& rules, const Change& change) {
  auto rule = std::find_if(rules.to.begin(), rules.to.end(), [&](const auto& other) {
    return other.destination == change.destination;
  });
  if (!change.traffic_class) {
    if (rule != rules.to.end()) rules.to.erase(rule);
    return {};
  }
  if (rule != rules.to.end()) {
    rule->traffic_class = *change.traffic_class;
    return {};
  }
  constexpr size_t kMaxRules = ClassOverride::kMaxRules;
  if (rules.to.size() == kMaxRules) return errorf(EINVAL, "more than {} rules", kMaxRules);
  rules.to.push_back({change.destination, *change.traffic_class});
  return {};
}

}  // namespace

std::string ClassRules::text() const {
  std::string text = all ? fmt::format("Global tclass={}", unsigned{*all}) : std::string();
  for (const Rule& rule : to) {
    text += fmt::format("{}dst_ip={},tclass={}", text.empty() ? "" : " ", ip_text(rule.destination),
                        unsigned{rule.traffic_class});
  }
  return text;
}

Result<ClassRules> ClassOverride::parse(std::string_view text, ClassRules rules) {
  bool said = false, announced = false;
  const Error not_said{EINVAL, "Global: tclass=N is wanted"};
  std::vector<Ip> named;
  std::vector<std::string_view> words = split(text, " \n");
  if (words.empty() || std::find(words.begin(), words.end(), "-1") != words.end()) rules = {};
  for (std::string_view word : words) {
    if (word == "Global" && !said && !std::exchange(announced, true)) continue;
    if (word.starts_with("dst_ip=") || word.find(',') != word.npos) {
      Result<Change> change = parse_rule(word);
      if (!change) return change.error();
      if (std::find(named.begin(), named.end(), change->destination) != named.end()) {
        return errorf(EINVAL, "'{}': there are two rules for it", word);
      }
      named.push_back(change->destination);
      if (Result<void> changed = change_rule(rules, *change); !changed) return changed.error();
      continue;
    }
    if (std::exchange(said, true)) return errorf(EINVAL, "'{}': two classes for all", word);
    if (announced && word == "-1") return not_said;
    if (word.starts_with("tclass=")) word.remove_prefix(7);
    auto number = parse_class(word);
    if (!number) return number.error();
    rules.all = *number;
  }
  if (announced && !said) return not_said;
  return rules;
}

void ClassOverride::reset() {
  if (std::exchange(rules_, {}) != ClassRules{}) changed_();
}

Result<void> ClassOverride::check(std::span<const KnobValue> values) const {
  auto parsed = parse(std::get<std::string>(values[0]));
  if (!parsed) return parsed.error();
  return {};
}

void ClassOverride::apply(std::span<const KnobValue> values) {
  ClassRules rules = *parse(std::get<std::string>(values[0]));
  if (std::exchange(rules_, rules) != rules) changed_();
}

}  // namespace rocefs
