// What most files begin with, compiled once for all of them: the Makefile includes it, and nobody
// else. A file names what it uses all the same; clang++ builds without this one and sees to it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
