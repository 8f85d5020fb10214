// Recordings of a network, which a report makes shorter.
#include "tools/picture/recording.h"

#include <string_view>

#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<Recording> recording =
      Recording::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!recording) return 0;
  const size_t before = recording->messages.size(), most = recording->size() / 2;
  if (recording->shorten(most)) fuzz::require(recording->size() <= most);
  fuzz::require(recording->messages.size() <= before);
  return 0;
}
