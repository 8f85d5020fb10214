#include "tools/mango-ctl/include_directory.h"

#include <cstdlib>
#include <filesystem>

namespace rocefs {

std::string include_directory() {
  const char* named = std::getenv("MANGO_INCLUDE");
  if (named && *named) return named;
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::path beside = program.parent_path().parent_path() / "include";
  return std::filesystem::exists(beside / "libmango.h", failed) ? beside.string() : "";
}

}  // namespace rocefs
