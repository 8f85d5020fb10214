// Messages between the daemon and mango-pccd: any bytes are either refused, or a message that is
// written as the same bytes.
#include "pcc/card/messages.h"

#include <cerrno>
#include <cstring>

#include "core/base/text.h"
#include "pcc/api/algorithm.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

void check(const PccAlgorithmInfo& algorithm) {
  fuzz::require(algorithm.slot < MANGO_PCC_MAX_SLOTS);
  fuzz::require(valid_algorithm_name(algorithm.name));
  fuzz::require(algorithm.parameters.size() <= MANGO_PCC_MAX_PARAMS);
  for (const auto& [name, value] : algorithm.parameters) {
    fuzz::require(valid_entry_name(name));
    fuzz::require(value.size() <= 64 && value == in_one_line(value));
  }
}

// Any answer of the card can be shown.
void check(const CardAnswer& answer) {
  if (const auto* error = std::get_if<Error>(&answer.what)) {
    fuzz::require(strerrorname_np(error->code) != nullptr);
  } else if (const auto* one = std::get_if<PccAlgorithmInfo>(&answer.what)) {
    check(*one);
  } else if (const auto* loaded = std::get_if<PccLoaded>(&answer.what)) {
    fuzz::require(loaded->algorithms.size() <= MANGO_PCC_MAX_SLOTS);
    for (const PccAlgorithmInfo& algorithm : loaded->algorithms) check(algorithm);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view message(reinterpret_cast<const char*>(data), size);
  if (Result<CardOrder> order = parse_order(message)) {
    fuzz::require(order->id != 0);
    fuzz::require(format_order(*order) == message);
  } else {
    fuzz::require(order.error().code == EPROTO);
  }
  if (Result<CardWord> word = parse_word(message)) {
    fuzz::require(format_word(*word) == message);
    if (const auto* answer = std::get_if<CardAnswer>(&*word)) check(*answer);
  } else {
    fuzz::require(word.error().code == EPROTO);
    for (char c : word.error().reason) fuzz::require(static_cast<unsigned char>(c) >= ' ');
  }
  return 0;
}
