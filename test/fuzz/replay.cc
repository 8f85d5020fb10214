// replay NAME FILE…: runs that target over each file, whole and cut at every length up to 64.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/fuzz/replays.h"

int main(int argc, char** argv) {
  const Replay* replay = argc > 2 ? find_replay(argv[1]) : nullptr;
  if (!replay) {
    std::fprintf(stderr, "usage: replay NAME FILE...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 1;
    }
    std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(in), {});
    for (size_t length = 0; length < bytes.size() && length <= 64; ++length) {
      std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<long>(length));
      replay->run(part.data(), part.size());
    }
    replay->run(bytes.data(), bytes.size());
  }
  std::printf("%d inputs\n", argc - 2);
}
