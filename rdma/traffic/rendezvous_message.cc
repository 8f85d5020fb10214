#include "rdma/traffic/rendezvous_message.h"

#include <cerrno>
#include <iterator>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "rdma/packet/packet.h"
#include "rdma/traffic/flow_plan.h"

namespace rocefs {
namespace {

constexpr size_t kMaxReason = 200;  // octets

// A failure's reason: one line without a blank at its end, also where it is cut.
std::string reason_text(std::string_view reason) {
  reason = reason.substr(0, kMaxReason);
  return in_one_line(std::string(reason.substr(0, reason.find_last_not_of(' ') + 1)));
}

std::string qps_text(const std::vector<FlowQp>& qps) {
  std::string text = "qps=";
  auto out = std::back_inserter(text);
  for (size_t i = 0; i < qps.size(); ++i) {
    fmt::format_to(out, "{}{}:{}", i ? "," : "", qps[i].qpn, qps[i].psn);
  }
  return text;
}

std::string end_text(const EndpointInfo& end) {
  return fmt::format("mtu={} address={} key={} bytes={} {}", end.mtu, end.address, end.key,
                     end.bytes, qps_text(end.qps));
}

// Reads the words of a message in order. The first error is kept until the end.
class LineWords {
 public:
  explicit LineWords(std::string_view line) : rest_(line) {}

  std::string_view next() {
    size_t end = std::min(rest_.find(' '), rest_.size());
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  std::string_view rest() const { return rest_; }
  // The value of KEY=VALUE.
  std::string_view value(std::string_view key) {
    std::string_view word = next();
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=') {
      return word.substr(key.size() + 1);
    }
    fail(errorf(EINVAL, "{}= is wanted, not {}", key, quoted(word)));
    return {};
  }
  uint64_t number(std::string_view key, uint64_t most) { return number_in(key, value(key), most); }
  uint64_t number_in(std::string_view key, std::string_view text, uint64_t most) {
    if (failed()) return 0;
    bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
    Result<uint64_t> number = kstrtou64(text, 10);
    if (digits && number && *number <= most) return *number;
    fail(errorf(EINVAL, "{}={} is no number up to {}", key, quoted(text), most));
    return 0;
  }
  void fail(Error error) {
    if (!failed()) error_ = std::move(error);
  }
  bool failed() const { return error_.code != 0; }
  template <class T>
  Result<FlowMessage> end_with(T message) {
    if (!rest_.empty()) fail(errorf(EINVAL, "{} is too much", quoted(rest_)));
    if (failed()) return error_;
    return FlowMessage(std::move(message));
  }

 private:
  std::string_view rest_;
  Error error_;
};

void take_end(LineWords& words, EndpointInfo& end) {
  constexpr uint64_t k24 = 0xffffff;
  end.mtu = static_cast<uint32_t>(words.number("mtu", kMaxMtu));
  if (!valid_mtu(end.mtu)) words.fail(errorf(EINVAL, "mtu={} is none of a port", end.mtu));
  end.address = words.number("address", ~uint64_t{0});
  end.key = static_cast<uint32_t>(words.number("key", ~uint32_t{0}));
  end.bytes = words.number("bytes", kMaxFlowMemory);
  for (std::string_view one : split(words.value("qps"), ",")) {
    size_t colon = std::min(one.find(':'), one.size());
    FlowQp qp;
    qp.qpn = static_cast<uint32_t>(words.number_in("qpn", one.substr(0, colon), k24));
    one.remove_prefix(std::min(colon + 1, one.size()));
    qp.psn = static_cast<uint32_t>(words.number_in("psn", one, k24));
    if (words.failed()) return;
    end.qps.push_back(qp);
  }
}

// The numbers of a flow, as traffic/start takes them.
constexpr std::string_view kNumbers[] = {"size", "count", "window", "timeout", "retry"};

Result<FlowMessage> parse_offer(LineWords& words) {
  FlowOffer offer;
  FlowSpec& spec = offer.spec;
  if (std::string_view version = words.next(); version != "1") {
    return errorf(EPROTO, "version {} is not spoken here, 1 is", quoted(version));
  }
  spec.name = words.value("name");
  Result<FlowOp> op = parse_flow_op(words.value("op"));
  if (op) spec.op = *op;
  if (!words.failed() && !op) return op.error();
  for (std::string_view key : kNumbers) {
    std::string_view value = words.value(key);
    if (words.failed()) break;
    if (Result<void> set = set_flow_key(spec, key, value); !set) return set.error();
  }
  spec.verify = words.number("verify", 1) == 1;
  offer.file = words.number("file", 1) == 1;
  offer.seed = words.number("seed", ~uint64_t{0});
  take_end(words, offer.end);
  if (words.failed()) return words.end_with(offer);
  if (Result<void> valid = check_flow_name(spec.name); !valid) return valid.error();
  if (offer.end.qps.empty() || offer.end.qps.size() > kMaxRemoteQps) {
    return errorf(EINVAL, "{} queue pairs are not 1 to {}", offer.end.qps.size(), kMaxRemoteQps);
  }
  spec.qps = static_cast<uint32_t>(offer.end.qps.size());
  const FlowOpInfo& info = flow_op_info(spec.op);
  if ((offer.file && (!info.files || spec.size == 0)) ||
      (info.size > 0 && spec.size != info.size) ||
      (!spec.verify && (offer.file || spec.op == FlowOp::kAtomic))) {
    return Error{EINVAL, "such a flow there is not"};
  }
  return words.end_with(std::move(offer));
}

}  // namespace

std::string text_of(const FlowOffer& offer) {
  const FlowSpec& spec = offer.spec;
  return fmt::format(
      "flow 1 name={} op={} size={} count={} window={} timeout={} retry={} verify={} file={} "
      "seed={} {}",
      spec.name, name(spec.op), spec.size, spec.count, spec.window, spec.timeout, spec.retry,
      spec.verify ? 1 : 0, offer.file ? 1 : 0, offer.seed, end_text(offer.end));
}

std::string text_of(const EndpointInfo& ready) {
  return "ready " + end_text(ready);
}

std::string text_of(FlowDone) {
  return "done";
}

std::string text_of(const FlowReport& report) {
  return fmt::format("arrived received={} bytes={} mismatched={}", report.received, report.bytes,
                     report.mismatched);
}

std::string text_of(const FlowFailure& failure) {
  return "fail " + reason_text(failure.reason);
}

Result<FlowMessage> parse_message(std::string_view line) {
  if (line.ends_with(' ')) return Error{EPROTO, "a blank ends no message"};
  LineWords words(line);
  std::string_view verb = words.next();
  if (verb == "flow") return parse_offer(words);
  if (verb == "ready") {
    EndpointInfo end;
    take_end(words, end);
    return words.end_with(std::move(end));
  }
  if (verb == "done") return words.end_with(FlowDone{});
  if (verb == "arrived") {
    FlowReport report;
    report.received = words.number("received", ~uint64_t{0});
    report.bytes = words.number("bytes", ~uint64_t{0});
    report.mismatched = words.number("mismatched", ~uint64_t{0});
    return words.end_with(report);
  }
  if (verb == "fail") {
    std::string reason = reason_text(words.rest());
    if (!reason.empty()) return FlowMessage(FlowFailure{std::move(reason)});
  }
  return errorf(EPROTO, "{} is no message of a flow", quoted(line));
}

}  // namespace rocefs
