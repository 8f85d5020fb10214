// The fuzz targets in one program, by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

struct Replay {
  std::string_view name;
  int (*run)(const uint8_t* data, size_t size);
};

// nullptr for an unknown name.
const Replay* find_replay(std::string_view name);
