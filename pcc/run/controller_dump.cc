// Dump of a queue pair: its algorithm's parameters by name, and other state as octets.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <vector>

#include "pcc/api/parameter.h"
#include "pcc/run/call.h"
#include "pcc/run/controller.h"
#include "pcc/run/controller_state.h"

namespace rocefs {
namespace {

constexpr size_t kMaxShown = 8192;  // octets, so that the text fits into a message
constexpr size_t kPerLine = 32;

// Lines of a range of the block: OFFSET: HEX.
void add_hex(std::string& text, const uint8_t* block, size_t begin, size_t end) {
  for (; begin < end; begin += kPerLine) {
    const uint8_t* first = block + begin;
    fmt::format_to(std::back_inserter(text), "  {:#06x}: {:02x}\n", begin,
                   fmt::join(first, block + std::min(end, begin + kPerLine), " "));
  }
}

// True for each octet of the block that belongs to a parameter.
std::vector<bool> registered(const PccAlgorithm& algorithm) {
  std::vector<bool> taken(algorithm.initial.size());
  for (const PccAlgorithm::Parameter& parameter : algorithm.parameters) {
    auto first = taken.begin() + static_cast<ptrdiff_t>(parameter.offset);
    std::fill_n(first, parameter_size(parameter.type), true);
  }
  return taken;
}

void add_rest(std::string& text, const PccAlgorithm& algorithm, const uint8_t* block) {
  const std::vector<bool> taken = registered(algorithm);
  const auto rest = static_cast<size_t>(std::count(taken.begin(), taken.end(), false));
  fmt::format_to(std::back_inserter(text), "  {} of {} octets are no parameters\n", rest,
                 taken.size());
  size_t shown = 0;
  for (size_t begin = 0; begin < taken.size() && shown < kMaxShown;) {
    size_t end = begin;
    while (end < taken.size() && !taken[end] && shown + (end - begin) < kMaxShown) ++end;
    add_hex(text, block, begin, end);
    shown += end - begin;
    begin = end == begin ? end + 1 : end;
  }
  if (shown < rest) {
    fmt::format_to(std::back_inserter(text), "  and {} more\n", rest - shown);
  }
}

}  // namespace

Result<std::string> PccController::dump(uint32_t qpn) const {
  if (InsidePcc::here()) return Error{EDEADLK, "an algorithm is being called"};
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  PccQp* qp = state_->find(qpn);
  if (!qp) return errorf(ENOENT, "QP {} is not active, or PCC is not", qpn);
  const PccAlgorithm& algorithm = *state_->slots.at(qp->slot());
  const uint8_t* block = qp->parameters().data();
  std::string text = fmt::format("QP {} {}\n", qpn, algorithm.name);
  for (const PccAlgorithm::Parameter& parameter : algorithm.parameters) {
    fmt::format_to(std::back_inserter(text), "  {}={}\n", parameter.name,
                   format_parameter(parameter.type, block + parameter.offset));
  }
  add_rest(text, algorithm, block);
  text.pop_back();  // the last newline
  return text;
}

}  // namespace rocefs
