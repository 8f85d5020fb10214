// What the daemon and mango-pccd say to each other: whatever comes is a message that is written
// like that, or none.
#include "pcc/card/messages.h"

#include <cerrno>

#include "test/fuzz/fuzz.h"

using namespace rocefs;

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
  } else {
    fuzz::require(word.error().code == EPROTO);
    for (char c : word.error().reason) fuzz::require(static_cast<unsigned char>(c) >= ' ');
  }
  return 0;
}
