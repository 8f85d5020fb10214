// Mutations of a configuration file.
#include <catch2/catch.hpp>

#include "core/base/rng.h"
#include "core/config/config.h"

using namespace rocefs;

TEST_CASE("config: each mutated file is accepted, or refused with a reason") {
  const std::string good =
      "[clock]\nmode = virtual\nseed = 3\n[device a]\nip = 10.0.0.1\nmtu = 1024\n[device b]\n"
      "[switch s]\n[link a s]\nrate = 10G\nloss = 0.1\n[link b s]\ndelay = 3us\n[knobs]\nx/y = 1\n";
  REQUIRE(parse_config(good, "good"));
  Rng rng(13, "config");
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (uint64_t changes = 1 + rng.below(4); changes > 0; --changes) {
      size_t at = rng.below(text.size());
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.next());
          break;
        case 1:
          text.erase(at, rng.below(20));
          break;
        case 2:
          text.insert(at, text.substr(rng.below(text.size()), rng.below(30)));
          break;
        default:
          text.insert(at, rng.below(300), "[]= \nx;"[rng.below(7)]);
          break;
      }
      if (text.empty()) text = "x";
    }
    Result<Config> config = parse_config(text, "f");
    accepted += bool(config);
    if (!config) REQUIRE(config.error().reason.substr(0, 2) == "f:");
  }
  CHECK(accepted > 0);
}
