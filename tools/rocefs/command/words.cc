#include "tools/rocefs/command/words.h"

#include <algorithm>
#include <vector>

namespace rocefs {
namespace {

// Smallest number of letters to be inserted, removed, replaced or exchanged with their neighbour.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      size_t& here = least[i][j];
      here = least[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      here = std::min({here, least[i - 1][j] + 1, least[i][j - 1] + 1});
      bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) here = std::min(here, least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string_view command_like(std::string_view word) {
  constexpr std::string_view kCommands[] = {"enter", "host", "attach", "detach", "run",
                                            "wait",  "top",  "view",   "sim"};
  constexpr size_t kLonger = 5;
  bool letters = std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!letters || word.size() < 2 || word.size() > 16) return {};
  for (std::string_view command : kCommands) {
    if (edit_distance(word, command) <= (command.size() < kLonger ? 1 : 2)) return command;
  }
  return {};
}

}  // namespace rocefs
