#include "tools/rocefs/rig/beside.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/rocefs/enter/launch.h"

namespace rocefs {

int run_beside(const char* program, int argc, char** argv) {
  namespace files = std::filesystem;
  std::error_code failed;
  const files::path self = files::read_symlink("/proc/self/exe", failed);
  const std::string path = (self.parent_path() / program).native();
  std::vector<char*> arguments(argv, argv + argc);
  std::string name(program);
  arguments[0] = name.data();
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  const int code = errno;
  std::fprintf(stderr, "rocefs %s: %s: %s\n", argv[0], path.c_str(), std::strerror(code));
  return code == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace rocefs
