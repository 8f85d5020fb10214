#include "mad_cc/files/burst_spec.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

Result<uint64_t> number(std::string_view key, std::string_view value, uint64_t min, uint64_t max) {
  Result<uint64_t> parsed = kstrtou64(value, 0);
  if (!parsed) return errorf(parsed.error().code, "{}: {}", key, parsed.error().reason);
  if (*parsed < min || *parsed > max) {
    return errorf(EINVAL, "{}: {} is outside {} to {}", key, *parsed, min, max);
  }
  return parsed;
}

Result<void> set_timeout(BurstSpec& spec, std::string_view value) {
  Result<TimeNs> timeout = parse_duration(value);
  if (!timeout) return errorf(timeout.error().code, "timeout: {}", timeout.error().reason);
  if (*timeout < kMillisecond || *timeout > BurstSpec::kMaxTimeoutMs * kMillisecond ||
      *timeout % kMillisecond != 0) {
    return errorf(EINVAL, "timeout={}: whole milliseconds from 1ms to 3600s are wanted", value);
  }
  spec.timeout_ms = static_cast<uint32_t>(*timeout / kMillisecond);
  return {};
}

Result<void> set_key(BurstSpec& spec, std::string_view key, std::string_view value) {
  if (key == "timeout") return set_timeout(spec, value);
  if (key == "retries") {
    Result<uint64_t> retries = number(key, value, 0, std::numeric_limits<uint32_t>::max());
    if (!retries) return retries.error();
    spec.retries = static_cast<uint32_t>(*retries);
    return {};
  }
  if (key == "port") {
    spec.port = parse_port_name(value);
    if (!spec.port) return errorf(EINVAL, "port={}: DEVICE or DEVICE/N is wanted", value);
    return {};
  }
  return errorf(EINVAL, "unknown key {} (port, timeout, retries)", quoted(key));
}

}  // namespace

Result<BurstSpec> parse_burst(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<std::string_view> words = split(text, " \t");
  if (words.size() < 2 || words[0] != "burst") {
    return Error{EINVAL, "burst COUNT [port=DEVICE[/N]] [timeout=TIME] [retries=N] is wanted"};
  }
  BurstSpec spec;
  if (Result<void> kept =
          keep("burst", number("COUNT", words[1], 1, BurstSpec::kMaxCount), spec.count);
      !kept) {
    return kept.error();
  }
  std::vector<std::string_view> given;
  for (size_t i = 2; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == words[i].npos) return errorf(EINVAL, "{} is not KEY=VALUE", quoted(words[i]));
    std::string_view key = words[i].substr(0, equals);
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      return errorf(EINVAL, "{} is given twice", quoted(key));
    }
    given.push_back(key);
    Result<void> set = set_key(spec, key, words[i].substr(equals + 1));
    if (!set) return set.error();
  }
  return spec;
}

}  // namespace rocefs
