// What every test begins with, compiled once for all of them: the Makefile includes it, and nobody
// else.

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
