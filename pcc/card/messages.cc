#include "pcc/card/messages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "pcc/api/algorithm.h"

namespace rocefs {
namespace {

constexpr std::array<std::string_view, 12> kVerbs = {"load",  "unload",   "apply",  "start",
                                                     "stop",  "interval", "update", "echo",
                                                     "round", "debug",    "read",   "dump"};
constexpr size_t kLoad = 0, kUnload = 1, kApply = 2, kStart = 3, kStop = 4, kInterval = 5,
                 kUpdate = 6, kEcho = 7, kRound = 8, kDebugOrder = 9, kReadOrder = 10,
                 kDumpOrder = 11;
constexpr std::string_view kHex = "0123456789ABCDEF";
constexpr std::string_view kLogPrefix = "log ", kDiedPrefix = "died ";

bool must_be_escaped(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7f || c == '%';
}

// Writes words and lines of words.
class Writer {
 public:
  Writer& word(std::string_view text) {
    separate();
    if (text.empty()) out_ += '%';
    for (char c : text) {
      if (!must_be_escaped(c)) {
        out_ += c;
        continue;
      }
      auto byte = static_cast<unsigned char>(c);
      out_ += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
    return *this;
  }
  template <class T>
  Writer& number(T value) {
    separate();
    out_ += std::to_string(value);
    return *this;
  }
  Writer& line() {
    out_ += '\n';
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!out_.empty() && out_.back() != '\n') out_ += ' ';
  }
  std::string out_;
};

std::optional<std::string> unescaped(std::string_view word) {
  std::string text;
  if (word == "%") return text;
  if (word.empty()) return std::nullopt;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      if (must_be_escaped(word[i])) return std::nullopt;
      text += word[i];
      continue;
    }
    if (i + 2 >= word.size()) return std::nullopt;
    size_t high = kHex.find(word[i + 1]), low = kHex.find(word[i + 2]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    char c = static_cast<char>(high << 4 | low);
    if (!must_be_escaped(c)) return std::nullopt;
    text += c;
    i += 2;
  }
  return text;
}

// Reads the words of one line. After the first malformed word every read fails.
class Reader {
 public:
  explicit Reader(std::string_view line) : rest_(line), more_(!line.empty()) {}

  bool more() const { return well_ && more_; }
  std::string word() {
    std::optional<std::string> text;
    if (more()) text = unescaped(next());
    if (!text) well_ = false;
    return text ? std::move(*text) : std::string();
  }
  template <class T>
  T number(T most = std::numeric_limits<T>::max()) {
    if (!more()) return well_ = false, T{};
    std::string_view digits = next();
    T value{};
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    bool canonical = digits == std::to_string(value);
    if (error != std::errc() || end != digits.data() + digits.size() || !canonical || value < T{} ||
        value > most) {
      return well_ = false, T{};
    }
    return value;
  }
  void require(bool well) { well_ = well_ && well; }
  // True if all words were well-formed and have been read.
  bool done() const { return well_ && !more_; }

 private:
  std::string_view next() {
    size_t end = std::min(rest_.find(' '), rest_.size());
    std::string_view word = rest_.substr(0, end);
    more_ = end < rest_.size();
    rest_.remove_prefix(more_ ? end + 1 : end);
    return word;
  }

  std::string_view rest_;
  bool more_;
  bool well_ = true;
};

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

void write(Writer& out, const PccBackend::Assignments& pairs) {
  for (const auto& [name, value] : pairs) out.word(name).word(value);
}

PccBackend::Assignments read_pairs(Reader& in) {
  PccBackend::Assignments pairs;
  while (in.more()) {
    std::string name = in.word();
    pairs.emplace_back(std::move(name), in.word());
  }
  return pairs;
}

// Limits of parameters: files are made of their names, lines of the text.
bool are_parameters(const PccBackend::Assignments& pairs) {
  constexpr size_t kMaxValue = 64;
  std::set<std::string_view> names;
  auto fits = [&](const auto& pair) {
    const auto& [name, value] = pair;
    return valid_entry_name(name) && names.insert(name).second && value.size() <= kMaxValue &&
           value == in_one_line(value);
  };
  return pairs.size() <= MANGO_PCC_MAX_PARAMS && std::all_of(pairs.begin(), pairs.end(), fits);
}

// Checks that slots and names are unique.
bool are_apart(const std::vector<PccAlgorithmInfo>& algorithms) {
  std::set<unsigned> slots;
  std::set<std::string_view> names;
  return std::all_of(algorithms.begin(), algorithms.end(), [&](const PccAlgorithmInfo& one) {
    return slots.insert(one.slot).second && names.insert(one.name).second;
  });
}

void write(Writer& out, const PccAlgorithmInfo& algorithm) {
  out.number(algorithm.slot).word(algorithm.name).word(algorithm.desc);
  write(out, algorithm.parameters);
}

PccAlgorithmInfo read_algorithm(Reader& in) {
  PccAlgorithmInfo algorithm;
  algorithm.slot = in.number<unsigned>(MANGO_PCC_MAX_SLOTS - 1);
  algorithm.name = in.word();
  algorithm.desc = in.word();
  algorithm.parameters = read_pairs(in);
  in.require(valid_algorithm_name(algorithm.name) && are_parameters(algorithm.parameters));
  return algorithm;
}

// Writes a line for each file, and for each algorithm.
void write(Writer& out, const PccLoaded& loaded) {
  for (const PccLoaded::File& file : loaded.files) {
    bool refused = file.loaded.empty();
    out.line().word(refused ? "refused" : file.again ? "again" : "loaded").word(file.name);
    out.word(refused ? file.reason : file.loaded);
  }
  for (const PccAlgorithmInfo& algorithm : loaded.algorithms) {
    write(out.line().word("algorithm"), algorithm);
  }
}

std::optional<PccLoaded> read_loaded(std::string_view lines) {
  PccLoaded loaded;
  for (bool last = false; !last;) {
    size_t end = std::min(lines.find('\n'), lines.size());
    Reader in(lines.substr(0, end));
    last = end == lines.size();
    lines.remove_prefix(last ? end : end + 1);
    std::string kind = in.word();
    if (kind == "algorithm") {
      loaded.algorithms.push_back(read_algorithm(in));
    } else if ((kind == "loaded" || kind == "again" || kind == "refused") &&
               loaded.algorithms.empty()) {
      bool refused = kind == "refused";
      PccLoaded::File file;
      file.name = in.word();
      (refused ? file.reason : file.loaded) = in.word();
      file.again = kind == "again";
      if (!refused && !valid_algorithm_name(file.loaded)) return std::nullopt;
      loaded.files.push_back(std::move(file));
    } else {
      return std::nullopt;
    }
    if (!in.done()) return std::nullopt;
  }
  if (!are_apart(loaded.algorithms)) return std::nullopt;
  return loaded;
}

std::optional<CardAnswer> read_answer(std::string_view message) {
  size_t end = std::min(message.find('\n'), message.size());
  Reader in(message.substr(0, end));
  CardAnswer answer;
  answer.id = in.number<uint64_t>();
  std::string verb = in.word();
  if (verb == "ok") {
    answer.what = CardAnswer::Done{};
  } else if (verb == "error") {
    Error error;
    error.code = in.number<int>();
    error.reason = in.word();
    if (error.code == 0 || !strerrorname_np(error.code)) return std::nullopt;
    answer.what = std::move(error);
  } else if (verb == "parameters") {
    answer.what = read_algorithm(in);
  } else if (verb == "echoed") {
    answer.what = CardAnswer::Echoed{in.word()};
  } else if (verb == "dumped") {
    answer.what = CardAnswer::Dumped{in.word()};
  } else if (verb == "due") {
    answer.what = CardAnswer::NextRound{in.number<TimeNs>()};
  } else if (verb == "algorithms") {
    PccLoaded loaded;
    if (end < message.size()) {
      auto lines = read_loaded(message.substr(end + 1));
      if (!lines) return std::nullopt;
      loaded = std::move(*lines);
      end = message.size();
    }
    answer.what = std::move(loaded);
  } else {
    return std::nullopt;
  }
  if (!in.done() || end < message.size() || answer.id == 0) return std::nullopt;
  return answer;
}

Error nonsense(std::string_view message) {
  std::string shown(message.substr(0, 40));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return errorf(EPROTO, "'{}' is no message", shown);
}

}  // namespace

std::string_view verb_of(const CardOrder& order) {
  return kVerbs[order.what.index()];
}

std::string format_order(const CardOrder& order) {
  Writer out;
  out.number(order.id).word(verb_of(order));
  std::visit(Overloaded{
                 [&](const CardOrder::Load& load) {
                   out.word(load.directory);
                   if (load.force) out.word("force");
                 },
                 [&](const CardOrder::Unload& unload) { out.number(unload.slot); },
                 [&](const CardOrder::Apply& apply) {
                   out.number(apply.slot);
                   if (apply.qpn) out.number(*apply.qpn);
                 },
                 [&](const CardOrder::Start& start) {
                   out.number(start.pollers).number(start.interval_us);
                 },
                 [&](const CardOrder::Stop&) {},
                 [&](const CardOrder::SetInterval& set) { out.number(set.interval_us); },
                 [&](const CardOrder::Update& update) {
                   out.number(update.slot);
                   write(out, update.changes);
                 },
                 [&](const CardOrder::Echo& echo) { out.word(echo.message); },
                 [&](const CardOrder::Round& round) { out.number(round.now); },
                 [&](const CardOrder::Debug& debug) { out.number(unsigned{debug.on}); },
                 [&](const CardOrder::Read& read) { out.number(read.slot); },
                 [&](const CardOrder::Dump& dump) { out.number(dump.qpn); },
             },
             order.what);
  return out.take();
}

Result<CardOrder> parse_order(std::string_view message) {
  Reader in(message);
  CardOrder order;
  order.id = in.number<uint64_t>();
  std::string verb = in.word();
  switch (std::find(kVerbs.begin(), kVerbs.end(), verb) - kVerbs.begin()) {
    case kLoad: {
      CardOrder::Load load{in.word(), in.more()};
      if (load.force && in.word() != "force") return nonsense(message);
      order.what = std::move(load);
      break;
    }
    case kUnload:
      order.what = CardOrder::Unload{in.number<unsigned>()};
      break;
    case kApply: {
      CardOrder::Apply apply{in.number<unsigned>(), std::nullopt};
      if (in.more()) apply.qpn = in.number<uint32_t>();
      order.what = apply;
      break;
    }
    case kStart: {
      unsigned pollers = in.number<unsigned>();
      order.what = CardOrder::Start{pollers, in.number<unsigned>()};
      break;
    }
    case kStop:
      order.what = CardOrder::Stop{};
      break;
    case kInterval:
      order.what = CardOrder::SetInterval{in.number<unsigned>()};
      break;
    case kUpdate: {
      unsigned slot = in.number<unsigned>();
      order.what = CardOrder::Update{slot, read_pairs(in)};
      break;
    }
    case kEcho:
      order.what = CardOrder::Echo{in.word()};
      break;
    case kRound:
      order.what = CardOrder::Round{in.number<TimeNs>()};
      break;
    case kDebugOrder:
      order.what = CardOrder::Debug{in.number<unsigned>(1) == 1};
      break;
    case kReadOrder:
      order.what = CardOrder::Read{in.number<unsigned>()};
      break;
    case kDumpOrder:
      order.what = CardOrder::Dump{in.number<uint32_t>()};
      break;
    default:
      return nonsense(message);
  }
  if (!in.done() || order.id == 0) return nonsense(message);
  return order;
}

std::string format_word(const CardWord& word) {
  if (const auto* log = std::get_if<CardLog>(&word)) {
    return std::string(kLogPrefix) + static_cast<char>('0' + static_cast<int>(log->level)) + ' ' +
           log->text;
  }
  if (const auto* died = std::get_if<CardDied>(&word)) {
    return std::string(kDiedPrefix) + died->text;
  }
  const auto& answer = std::get<CardAnswer>(word);
  Writer out;
  out.number(answer.id);
  std::visit(
      Overloaded{
          [&](const Error& error) { out.word("error").number(error.code).word(error.reason); },
          [&](const CardAnswer::Done&) { out.word("ok"); },
          [&](const PccLoaded& loaded) { write(out.word("algorithms"), loaded); },
          [&](const PccAlgorithmInfo& algorithm) { write(out.word("parameters"), algorithm); },
          [&](const CardAnswer::Echoed& echoed) { out.word("echoed").word(echoed.message); },
          [&](const CardAnswer::NextRound& next) { out.word("due").number(next.due); },
          [&](const CardAnswer::Dumped& dumped) { out.word("dumped").word(dumped.text); },
      },
      answer.what);
  return out.take();
}

Result<CardWord> parse_word(std::string_view message) {
  if (message.starts_with(kDiedPrefix)) {
    return CardWord(CardDied{std::string(message.substr(kDiedPrefix.size()))});
  }
  if (message.starts_with(kLogPrefix)) {
    std::string_view rest = message.substr(kLogPrefix.size());
    if (rest.size() < 2 || rest[0] < '0' || rest[0] > '3' || rest[1] != ' ') {
      return nonsense(message);
    }
    return CardWord(CardLog{static_cast<LogLevel>(rest[0] - '0'), std::string(rest.substr(2))});
  }
  std::optional<CardAnswer> answer = read_answer(message);
  if (!answer) return nonsense(message);
  return CardWord(std::move(*answer));
}

}  // namespace rocefs
