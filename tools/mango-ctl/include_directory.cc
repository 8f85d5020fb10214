#include "tools/mango-ctl/include_directory.h"

#include <cstdlib>
#include <filesystem>

namespace rocefs {
namespace {

// A directory beside that of this program, if the file is there.
std::string beside(const char* directory, const char* file) {
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::path there = program.parent_path().parent_path() / directory;
  return std::filesystem::exists(there / file, failed) ? there.string() : "";
}

}  // namespace

std::string include_directory() {
  const char* named = std::getenv("MANGO_INCLUDE");
  if (named && *named) return named;
  return beside("include", "libmango.h");
}

std::string library_directory() {
  return beside("lib", "libmango.so");
}

}  // namespace rocefs
