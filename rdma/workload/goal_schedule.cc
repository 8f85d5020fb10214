#include "rdma/workload/goal_schedule.h"

#include <cerrno>
#include <optional>
#include <unordered_map>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/time.h"
#include "rdma/workload/file_text.h"

namespace rocefs {
namespace {

constexpr uint32_t kMaxRanks = 1u << 20;
constexpr size_t kMaxOperations = UINT32_MAX / 2;

using Words = std::vector<std::string_view>;

// One file, line by line.
class GoalReader {
 public:
  Result<void> read(std::string_view text) {
    text = without_byte_order_mark(text);
    while (!text.empty()) {
      ++line_;
      size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      std::string words = spaced(line);
      if (Result<void> read = statement(split(words, " ")); !read) return read;
    }
    if (comment_) return Error{EINVAL, "a comment without an end"};
    if (rank_) return Error{EINVAL, "the rank has no } at its end"};
    if (schedule_.ranks == 0) return Error{EINVAL, "num_ranks is wanted"};
    if (schedule_.operations.empty()) return Error{EINVAL, "no rank has an operation"};
    return {};
  }
  uint32_t line() const { return line_; }
  GoalSchedule take() { return std::move(schedule_); }

 private:
  // The line without comments, with a space on either side of a sign.
  std::string spaced(std::string_view line) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
      std::string_view two = line.substr(i, 2);
      if (comment_) {
        if (two == "*/") comment_ = false, ++i;
      } else if (two == "//") {
        break;
      } else if (two == "/*") {
        comment_ = true, ++i;
        out += ' ';
      } else if (line[i] == ':' || line[i] == '{' || line[i] == '}') {
        out.append({' ', line[i], ' '});
      } else {
        out += line[i] == '\t' || line[i] == '\r' ? ' ' : line[i];
      }
    }
    return out;
  }

  Result<void> statement(Words words) {
    if (words.empty()) return {};
    if (words[0] == "num_ranks") return set_ranks(words);
    if (words[0] == "rank") return begin_rank(words);
    if (!rank_) return errorf(EINVAL, "{}: num_ranks N or rank R {{ is wanted", quoted(words[0]));
    if (words[0] == "}" && words.size() == 1) {
      rank_.reset();
      labels_.clear();
      return {};
    }
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      return depend(words);
    }
    if (words.size() > 2 && words[1] == ":") {
      auto number = static_cast<uint32_t>(schedule_.operations.size());
      if (!labels_.emplace(words[0], number).second) {
        return errorf(EINVAL, "{} stands before two operations", quoted(words[0]));
      }
      words.erase(words.begin(), words.begin() + 2);
    }
    return operation(words);
  }

  static Result<uint64_t> number(std::string_view word, uint64_t most) {
    bool digits = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    if (!digits) return errorf(EINVAL, "{}: a number is wanted", quoted(word));
    Result<uint64_t> read = kstrtou64(word, 10);
    if (read && *read <= most) return read;
    return errorf(EINVAL, "{} is more than {}", word, most);
  }

  Result<void> set_ranks(const Words& words) {
    if (words.size() != 2) return Error{EINVAL, "num_ranks N is wanted"};
    if (schedule_.ranks != 0) return Error{EINVAL, "num_ranks twice"};
    Result<uint64_t> ranks = number(words[1], kMaxRanks);
    if (!ranks) return ranks.error();
    if (*ranks < 2) return Error{EINVAL, "at least two ranks are wanted"};
    schedule_.ranks = static_cast<uint32_t>(*ranks);
    return {};
  }

  Result<uint32_t> rank_of(std::string_view word) const {
    Result<uint64_t> rank = number(word, UINT64_MAX);
    if (!rank) return rank.error();
    if (*rank < schedule_.ranks) return static_cast<uint32_t>(*rank);
    return errorf(EINVAL, "rank {}: there are ranks 0 to {}", *rank, schedule_.ranks - 1);
  }

  Result<void> begin_rank(const Words& words) {
    if (words.size() != 3 || words[2] != "{") return Error{EINVAL, "rank R { is wanted"};
    if (schedule_.ranks == 0) return Error{EINVAL, "num_ranks is wanted before the first rank"};
    if (rank_) return Error{EINVAL, "the rank before has no } at its end"};
    Result<uint32_t> rank = rank_of(words[1]);
    if (!rank) return rank.error();
    rank_ = *rank;
    return {};
  }

  Result<void> depend(const Words& words) {
    auto then = labels_.find(std::string(words[0])), first = labels_.find(std::string(words[2]));
    for (auto [found, word] : {std::pair(then, words[0]), std::pair(first, words[2])}) {
      if (found == labels_.end()) return errorf(EINVAL, "{} is no label above", quoted(word));
    }
    schedule_.dependencies.push_back({first->second, then->second, words[1] == "irequires"});
    return {};
  }

  Result<void> operation(Words words) {
    using Kind = GoalOperation::Kind;
    GoalOperation made;
    made.rank = *rank_;
    made.line = line_;
    bool calc = words[0] == "calc", send = words[0] == "send", receive = words[0] == "recv";
    if (!calc && !send && !receive) {
      return errorf(EINVAL, "{}: send, recv, calc, or LABEL requires LABEL is wanted",
                    quoted(words[0]));
    }
    made.kind = calc ? Kind::kCalc : send ? Kind::kSend : Kind::kRecv;
    if (words.size() < (calc ? 2 : 4)) {
      return errorf(EINVAL, "{} is wanted",
                    calc   ? "calc NS"
                    : send ? "send Nb to RANK"
                           : "recv Nb from RANK");
    }
    Result<void> read = calc ? read_time(words[1], made) : read_message(words, made);
    if (!read) return read;
    if (Result<void> rest = read_places({words.begin() + (calc ? 2 : 4), words.end()}, made);
        !rest) {
      return rest;
    }
    if (schedule_.operations.size() >= kMaxOperations) return Error{EINVAL, "too many operations"};
    schedule_.operations.push_back(made);
    return {};
  }

  static Result<void> read_time(std::string_view word, GoalOperation& made) {
    Result<uint64_t> time = number(word, static_cast<uint64_t>(kNever / 2));
    if (!time) return time.error();
    made.amount = *time;
    return {};
  }

  Result<void> read_message(const Words& words, GoalOperation& made) const {
    bool send = made.kind == GoalOperation::Kind::kSend;
    if (!words[1].ends_with('b')) return errorf(EINVAL, "{}: Nb is wanted", quoted(words[1]));
    Result<uint64_t> octets = number(words[1].substr(0, words[1].size() - 1), UINT64_MAX);
    if (!octets) return octets.error();
    made.amount = *octets;
    if (words[2] != (send ? "to" : "from")) {
      return errorf(EINVAL, "{}: {} is wanted", quoted(words[2]), send ? "to" : "from");
    }
    if (!send && words[3] == "-1") {
      made.peer = GoalOperation::kAny;
      return {};
    }
    Result<uint32_t> peer = rank_of(words[3]);
    if (!peer) return peer.error();
    if (*peer == made.rank) return errorf(EINVAL, "rank {} sends to itself", *peer);
    made.peer = *peer;
    return {};
  }

  // `tag T`, `cpu C` and `nic N`; the topology decides which NIC a host has.
  static Result<void> read_places(const Words& words, GoalOperation& made) {
    bool message = made.kind != GoalOperation::Kind::kCalc;
    for (size_t i = 0; i < words.size(); i += 2) {
      bool tag = words[i] == "tag" && message;
      if (!tag && words[i] != "cpu" && words[i] != "nic") {
        return errorf(EINVAL, "{}: {}cpu or nic is wanted", quoted(words[i]),
                      message ? "tag, " : "");
      }
      if (i + 1 == words.size()) return errorf(EINVAL, "{}: a number is wanted", words[i]);
      if (tag && made.kind == GoalOperation::Kind::kRecv && words[i + 1] == "-1") {
        made.tag = GoalOperation::kAny;
        continue;
      }
      Result<uint64_t> value = number(words[i + 1], UINT32_MAX - 1);
      if (!value) return value.error();
      if (tag) made.tag = static_cast<uint32_t>(*value);
      if (words[i] == "cpu") made.cpu = static_cast<uint32_t>(*value);
    }
    return {};
  }

  GoalSchedule schedule_;
  uint32_t line_ = 0;
  bool comment_ = false;
  std::optional<uint32_t> rank_;  // of the block
  std::unordered_map<std::string, uint32_t> labels_;
};

}  // namespace

Result<GoalSchedule> GoalSchedule::parse(std::string_view text, const std::string& name) {
  GoalReader reader;
  if (Result<void> read = reader.read(text); !read) {
    return errorf(read.error().code, "{}:{}: {}", name, reader.line(), read.error().reason);
  }
  return reader.take();
}

}  // namespace rocefs
