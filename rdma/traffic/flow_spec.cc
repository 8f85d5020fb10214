#include "rdma/traffic/flow_spec.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "rdma/nic/qp_table.h"
#include "rdma/packet/packet.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

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

Result<void> path_mtu(Result<uint64_t> value, uint32_t& out) {
  if (!value) return errorf(value.error().code, "mtu: {}", value.error().reason);
  if (!valid_mtu(*value)) {
    return errorf(EINVAL, "mtu={}: 256, 512, 1024, 2048 or 4096 is wanted", *value);
  }
  out = static_cast<uint32_t>(*value);
  return {};
}

Result<void> path(std::string_view key, std::string_view value, std::string& out) {
  if (value.empty()) return errorf(EINVAL, "{}= names no file", key);
  out = value;
  return {};
}

}  // namespace

Result<void> set_flow_key(FlowSpec& spec, std::string_view key, std::string_view value) {
  constexpr uint64_t kMaxSize = uint64_t{1} << 30;
  if (key == "qps") return bounded(key, kstrtou64(value, 0), 1, QpTable::kMaxQps, spec.qps);
  if (key == "size") return bounded(key, parse_size(value), 0, kMaxSize, spec.size);
  if (key == "count") return bounded(key, kstrtou64(value, 0), 1, uint64_t{1} << 40, spec.count);
  if (key == "mtu") return path_mtu(kstrtou64(value, 0), spec.mtu);
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

Result<FlowOp> parse_flow_op(std::string_view word) {
  auto row = std::find_if(std::begin(kFlowOps), std::end(kFlowOps),
                          [&](const FlowOpInfo& info) { return info.name == word; });
  if (row != std::end(kFlowOps)) return static_cast<FlowOp>(row - std::begin(kFlowOps));
  return errorf(EINVAL, "unknown op {} ({}|accept)", quoted(word), ROCEFS_FLOW_WORDS);
}

// Names of the files in the directory of flows are taken.
Result<void> check_flow_name(std::string_view name) {
  bool ours = name == "start" || name == "exchange" || name == "exchange_port";
  if (valid_entry_name(name) && !ours) return {};
  return errorf(EINVAL, "{} cannot be a flow's name", quoted(name));
}

namespace {

using Words = std::vector<std::string_view>;

bool given(const Words& seen, std::string_view key) {
  return std::find(seen.begin(), seen.end(), key) != seen.end();
}

// Sets KEY=VALUE of the words from `first` on; returns the keys.
Result<Words> set_keys(FlowSpec& spec, const Words& words, size_t first) {
  Words seen;
  for (size_t i = first; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == words[i].npos) return errorf(EINVAL, "{} is not KEY=VALUE", words[i]);
    std::string_view key = words[i].substr(0, equals);
    if (given(seen, key)) return errorf(EINVAL, "{} is given twice", key);
    seen.push_back(key);
    std::string_view value = words[i].substr(equals + 1);
    if (spec.accepts && key == "from") {
      spec.remote = parse_ip(value);
      if (spec.remote && is_unicast(*spec.remote)) continue;
      return errorf(EINVAL, "from={}: an IP address is wanted, a unicast one", value);
    }
    if (spec.accepts && key != "file" && key != "out") {
      return errorf(EINVAL, "unknown key {} (file, out, from): the far end says the rest", key);
    }
    if (Result<void> set = set_flow_key(spec, key, value); !set) return set.error();
  }
  return seen;
}

// A real file is named at the end where it lies.
Result<void> check_remote(const FlowSpec& spec) {
  if (spec.qps > kMaxRemoteQps) {
    return errorf(EINVAL, "qps={}: a flow to an address has up to {}", spec.qps, kMaxRemoteQps);
  }
  bool read = spec.op == FlowOp::kRead;
  if (read && !spec.input.empty()) {
    return Error{EINVAL, "what is read lies at the far end: NAME accept PORT file=… there"};
  }
  if (!read && !spec.output.empty()) {
    return Error{EINVAL, "out= is the far end's to say: NAME accept PORT out=… there"};
  }
  return {};
}

Result<FlowSpec> parse_accept(FlowSpec spec, const Words& words) {
  spec.accepts = true;
  spec.from = words[2];
  Result<Words> seen = set_keys(spec, words, 3);
  if (!seen) return seen.error();
  if (given(*seen, "file") && given(*seen, "out")) {
    return Error{EINVAL, "file= is for the far end to read, out= what it writes: one of them"};
  }
  return spec;
}

}  // namespace

Result<FlowSpec> parse_flow(std::string_view line) {
  Words words = split(line, " \t\n");
  bool accepts = words.size() >= 2 && words[1] == "accept";
  if (words.size() < (accepts ? 3 : 4)) {
    return Error{EINVAL, "NAME OP FROM TO [KEY=VALUE …] is wanted, or NAME accept PORT"};
  }
  FlowSpec spec;
  if (Result<void> valid = check_flow_name(words[0]); !valid) return valid.error();
  spec.name = words[0];
  if (accepts) return parse_accept(std::move(spec), words);
  Result<FlowOp> op = parse_flow_op(words[1]);
  if (!op) return op.error();
  spec.op = *op;
  spec.from = words[2];
  spec.to = words[3];
  spec.remote = parse_ip(spec.to);
  Result<Words> seen = set_keys(spec, words, 4);
  if (!seen) return seen.error();
  bool file = given(*seen, "file"), out = given(*seen, "out");
  if (spec.remote) {
    if (!is_unicast(*spec.remote)) return errorf(EINVAL, "{} is no unicast address", spec.to);
    if (Result<void> apart = check_remote(spec); !apart) return apart.error();
    if (given(*seen, "gid")) return Error{EINVAL, "gid= does not go with an address"};
  } else if (out && !file) {
    return Error{EINVAL, "out= goes with file="};
  }
  if ((file || out) && given(*seen, "count")) {
    return Error{EINVAL, "count= does not go with file=: the file's length tells"};
  }
  const FlowOpInfo& info = flow_op_info(spec.op);
  if (file && !info.files) {
    return errorf(EINVAL, "file= goes with write, send and read, not with {}", words[1]);
  }
  if (!spec.verify && (file || out || spec.op == FlowOp::kAtomic)) {
    return Error{EINVAL, "verify=off goes with made-up bytes alone"};
  }
  if (info.size > 0) {
    if (given(*seen, "size") && spec.size != info.size) {
      return errorf(EINVAL, "{} moves {} bytes at a time", words[1], info.size);
    }
    spec.size = info.size;
  }
  if (spec.op == FlowOp::kUd && !given(*seen, "size")) spec.size = 1024;
  if ((file || out) && spec.size == 0) return Error{EINVAL, "size=0 moves nothing of a file"};
  return spec;
}

}  // namespace rocefs
