// mango-ctl: the vendor's command line, as a client of the files of a mounted rocefs.
#include <cstdio>
#include <string>
#include <vector>

#include "core/process/standard_files.h"
#include "tools/mango-ctl/command_line.h"
#include "tools/mango-ctl/completion.h"
#include "tools/mango-ctl/manual.h"

namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return rocefs::flush_standard_output("mango-ctl", 0);
}

}  // namespace

// Beside the commands of the table, for make and for bash:
//   mango-ctl --print-manual        COMMANDS of the manual page
//   mango-ctl --complete WORD…      words that may stand in place of the last one
int main(int argc, char** argv) {
  using namespace rocefs;
  reserve_standard_files();
  CommandTable table;
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--print-manual") return print(manual_of(table));
  if (!words.empty() && words[0] == "--complete") {
    return print(completions(table, {words.begin() + 1, words.end()}));
  }
  return CommandLine(table).run(argc, argv);
}
