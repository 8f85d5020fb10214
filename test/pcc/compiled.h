// Plugins compiled at run time, as their authors compile them.
#pragma once

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rocefs::test {

class PluginFiles {
 public:
  PluginFiles() {
    char name[] = "/tmp/rocefs-plugin-XXXXXX";
    REQUIRE(::mkdtemp(name));
    directory_ = name;
  }
  ~PluginFiles() { std::filesystem::remove_all(directory_); }
  PluginFiles(const PluginFiles&) = delete;
  PluginFiles& operator=(const PluginFiles&) = delete;

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  // Path of NAME.so; fails the test with the compiler's output.
  std::string compile(const std::string& name, const std::string& source,
                      const std::string& compiler = default_compiler() + " -std=c++20") const {
    std::string from = write(name + ".cc", source), log = path("log");
    std::string command = compiler + " -Wall -Wextra -Werror -shared -fPIC -Ipcc/api -o " +
                          path(name + ".so") + " " + from + " >" + log + " 2>&1";
    int status = std::system(command.c_str());
    std::ifstream said(log);
    INFO(command << "\n" << std::string(std::istreambuf_iterator<char>(said), {}));
    REQUIRE(status == 0);
    return path(name + ".so");
  }
  static std::string default_compiler() {
    const char* named = std::getenv("CXX");
    return named ? named : "g++";
  }
  static bool has(const std::string& compiler) {
    return std::system(("command -v " + compiler + " >/dev/null 2>&1").c_str()) == 0;
  }

 private:
  std::string directory_;
};

}  // namespace rocefs::test
