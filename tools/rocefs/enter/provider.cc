#include "tools/rocefs/enter/provider.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/text.h"

namespace rocefs {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kName = "librocefs";
constexpr char kSeparators[] = ":;";

bool has_provider(const files::path& directory) {
  std::error_code none;
  files::directory_iterator entries(directory, none);
  return std::any_of(begin(entries), end(entries), [](const files::directory_entry& entry) {
    std::string name = entry.path().filename();
    return name.starts_with(std::string(kName) + "-rdmav") && name.ends_with(".so");
  });
}

}  // namespace

std::string find_provider(std::string_view program) {
  if (!program.starts_with('/')) return {};
  files::path lib = files::path(program).parent_path().parent_path() / "lib";
  for (const files::path& directory : {lib, lib / "rocefs"}) {
    std::string driver = directory / kName;
    if (has_provider(directory) && driver.find_first_of(kSeparators) == driver.npos) return driver;
  }
  return {};
}

std::string provider_of_program() {
  std::error_code failed;
  return find_provider(files::read_symlink("/proc/self/exe", failed).native());
}

std::string with_driver(std::string_view driver, std::string_view others) {
  std::string list(driver);
  for (std::string_view other : split(others, kSeparators)) {
    if (other == driver) continue;
    list += ':';
    list += other;
  }
  return list;
}

}  // namespace rocefs
