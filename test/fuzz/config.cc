// An ini file; an error names the file.
#include "core/config/config.h"

#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<Config> config = parse_config(text, "f.ini");
  if (config) return 0;
  fuzz::require(config.error().code > 0);
  fuzz::require(config.error().reason.starts_with("f.ini:"));
  return 0;
}
