#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/kstrto.h"
#include "core/text.h"
#include "core/units.h"
#include "rdma/flow.h"

namespace rocefs {
namespace {

bool valid_name(std::string_view name) {
  return valid_entry_name(name) && name != "start";
}

constexpr struct {
  std::string_view name;
  FlowOp op;
} kOps[] = {{"write", FlowOp::kWrite},   {"send", FlowOp::kSend}, {"read", FlowOp::kRead},
            {"atomic", FlowOp::kAtomic}, {"uc", FlowOp::kUc},     {"ud", FlowOp::kUd}};

constexpr std::string_view kOffOn[] = {"off", "on"};

template <class T>
Result<void> bounded(std::string_view key, Result<uint64_t> value, uint64_t min, uint64_t max,
                     T& out) {
  if (!value) return errorf(value.error().code, "{}: {}", key, value.error().reason);
  if (*value < min || *value > max) {
    return errorf(EINVAL, "{}={} is outside {} to {}", key, *value, min, max);
  }
  out = static_cast<T>(*value);
  return {};
}

Result<void> path(std::string_view key, std::string_view value, std::string& out) {
  if (value.empty()) return errorf(EINVAL, "{}= names no file", key);
  out = value;
  return {};
}

Result<void> set_key(FlowSpec& spec, std::string_view key, std::string_view value) {
  constexpr uint64_t kMaxSize = uint64_t{1} << 30;
  if (key == "qps") return bounded(key, kstrtou64(value, 0), 1, 4096, spec.qps);
  if (key == "size") return bounded(key, parse_size(value), 0, kMaxSize, spec.size);
  if (key == "count") return bounded(key, kstrtou64(value, 0), 1, uint64_t{1} << 40, spec.count);
  if (key == "mtu") return bounded(key, kstrtou64(value, 0), 256, 4096, spec.mtu);
  if (key == "window") return bounded(key, kstrtou64(value, 0), 1, 1u << 22, spec.window);
  if (key == "timeout") return bounded(key, kstrtou64(value, 0), 0, 31, spec.timeout);
  if (key == "retry") return bounded(key, kstrtou64(value, 0), 0, 7, spec.retry);
  if (key == "gid") return bounded(key, kstrtou64(value, 0), 0, 7, spec.gid);
  if (key == "verify") {
    Result<size_t> on = match_word(value, kOffOn);
    if (!on) return errorf(EINVAL, "verify={}: on or off is wanted", value);
    spec.verify = *on == 1;
    return {};
  }
  if (key == "file") return path(key, value, spec.input);
  if (key == "out") return path(key, value, spec.output);
  return errorf(EINVAL,
                "unknown key {} (qps, size, count, file, out, mtu, window, timeout, retry, gid, "
                "verify)",
                key);
}

}  // namespace

Result<FlowSpec> parse_flow(std::string_view line) {
  std::vector<std::string_view> words = split(line, " \t\n");
  if (words.size() < 4) return Error{EINVAL, "NAME OP FROM TO [KEY=VALUE …] is wanted"};
  FlowSpec spec;
  if (!valid_name(words[0])) return errorf(EINVAL, "{} cannot be a flow's name", words[0]);
  spec.name = words[0];
  auto op = std::find_if(std::begin(kOps), std::end(kOps),
                         [&](const auto& one) { return one.name == words[1]; });
  if (op == std::end(kOps)) {
    return errorf(EINVAL, "unknown op {} (write, send, read, atomic, uc, ud)", words[1]);
  }
  spec.op = op->op;
  spec.from = words[2];
  spec.to = words[3];
  std::vector<std::string_view> seen;
  for (size_t i = 4; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == words[i].npos) return errorf(EINVAL, "{} is not KEY=VALUE", words[i]);
    std::string_view key = words[i].substr(0, equals);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return errorf(EINVAL, "{} is given twice", key);
    }
    seen.push_back(key);
    if (Result<void> set = set_key(spec, key, words[i].substr(equals + 1)); !set) {
      return set.error();
    }
  }
  auto given = [&](std::string_view key) {
    return std::find(seen.begin(), seen.end(), key) != seen.end();
  };
  if (given("out") && !given("file")) return Error{EINVAL, "out= goes with file="};
  if (given("file") && given("count")) {
    return Error{EINVAL, "count= does not go with file=: the file's length tells"};
  }
  bool whole = spec.op == FlowOp::kWrite || spec.op == FlowOp::kSend || spec.op == FlowOp::kRead;
  if (given("file") && !whole) {
    return errorf(EINVAL, "file= goes with write, send and read, not with {}", words[1]);
  }
  if (!spec.verify && (given("file") || spec.op == FlowOp::kAtomic)) {
    return Error{EINVAL, "verify=off goes with made-up bytes alone"};
  }
  if (spec.op == FlowOp::kAtomic) {
    if (given("size") && spec.size != 8) return Error{EINVAL, "an atomic moves 8 bytes"};
    spec.size = 8;
  }
  if (spec.op == FlowOp::kUd && !given("size")) spec.size = 1024;
  if (given("file") && spec.size == 0) return Error{EINVAL, "size=0 moves nothing of a file"};
  return spec;
}

}  // namespace rocefs
