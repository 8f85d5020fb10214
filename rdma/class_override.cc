#include "rdma/class_override.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/kstrto.h"
#include "core/text.h"
#include "rdma/ip_text.h"

namespace rocefs {
namespace {

Result<uint8_t> parse_class(std::string_view text) {
  Result<uint64_t> number = kstrtou64(text, 0);
  if (number && *number <= 255) return static_cast<uint8_t>(*number);
  return errorf(EINVAL, "'{}': a traffic class is 0 to 255, or -1 for none", text);
}

Result<Ip> parse_ip(const std::string& text) {
  std::array<uint8_t, 4> v4{};
  Ip ip{};
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) == 1) return mapped_ipv4(v4);
  if (::inet_pton(AF_INET6, text.c_str(), ip.data()) == 1) return ip;
  return errorf(EINVAL, "'{}' is no IP address", text);
}

// dst_ip=ADDRESS,tclass=N
Result<ClassRules::Rule> parse_rule(std::string_view word) {
  constexpr std::string_view kTo = "dst_ip=", kClass = ",tclass=";
  size_t comma = word.find(kClass);
  if (!word.starts_with(kTo) || comma == word.npos) {
    return errorf(EINVAL, "'{}': N, -1 or dst_ip=ADDRESS,tclass=N is wanted", word);
  }
  Result<Ip> ip = parse_ip(std::string(word.substr(kTo.size(), comma - kTo.size())));
  if (!ip) return ip.error();
  Result<uint8_t> number = parse_class(word.substr(comma + kClass.size()));
  if (!number) return number.error();
  return ClassRules::Rule{*ip, *number};
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

Result<ClassRules> ClassOverride::parse(std::string_view text) {
  ClassRules rules;
  bool said = false, announced = false;
  for (std::string_view word : split(text, " \n")) {
    if (word == "Global" && !said && !std::exchange(announced, true)) continue;
    if (word.starts_with("dst_ip=")) {
      Result<ClassRules::Rule> rule = parse_rule(word);
      if (!rule) return rule.error();
      bool twice = std::any_of(rules.to.begin(), rules.to.end(), [&](const auto& other) {
        return other.destination == rule->destination;
      });
      if (twice) return errorf(EINVAL, "'{}': there are two rules for it", word);
      if (rules.to.size() == kMostRules) return errorf(EINVAL, "more than {} rules", kMostRules);
      rules.to.push_back(*rule);
      continue;
    }
    if (std::exchange(said, true)) return errorf(EINVAL, "'{}': two classes for all", word);
    if (word == "-1") continue;
    if (word.starts_with("tclass=")) word.remove_prefix(7);
    Result<uint8_t> number = parse_class(word);
    if (!number) return number.error();
    rules.all = *number;
  }
  if (announced && !rules.all) return Error{EINVAL, "Global: tclass=N is wanted"};
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
