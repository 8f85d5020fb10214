#include "tools/rocefs/enter/provider.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace rocefs;

namespace {

namespace files = std::filesystem;

struct Prefix {
  explicit Prefix(const std::string& name) {
    char made[] = "/tmp/rocefs-tools-test.XXXXXX";
    top = ::mkdtemp(made);
    at = top / name;
  }
  ~Prefix() { files::remove_all(top); }
  void add(const std::string& file) {
    files::create_directories((at / file).parent_path());
    std::ofstream(at / file) << "\n";
  }
  std::string found() const { return find_provider(std::string(at / "bin/rocefs")); }

  files::path top, at;
};

}  // namespace

TEST_CASE("provider: it is found in a build and in an installation") {
  Prefix prefix("usr");
  CHECK(prefix.found().empty());
  prefix.add("lib/librocefs.so");
  prefix.add("lib/libmlx5-rdmav34.so");
  CHECK(prefix.found().empty());
  prefix.add("lib/rocefs/librocefs-rdmav34.so");
  CHECK(prefix.found() == prefix.at / "lib/rocefs/librocefs");
  prefix.add("lib/librocefs-rdmav59.so");
  CHECK(prefix.found() == prefix.at / "lib/librocefs");
}

TEST_CASE("provider: a path that contains a separator of driver lists is not used") {
  for (const char* name : {"a:b", "a;b"}) {
    Prefix prefix(name);
    prefix.add("lib/librocefs-rdmav34.so");
    CHECK(prefix.found().empty());
  }
  CHECK(find_provider("").empty());
  CHECK(find_provider("bin/rocefs").empty());
}

TEST_CASE("provider: a list of drivers keeps its entries and gets the provider once") {
  CHECK(with_driver("/x/librocefs", "") == "/x/librocefs");
  CHECK(with_driver("/x/librocefs", "rxe") == "/x/librocefs:rxe");
  CHECK(with_driver("/x/librocefs", "rxe;/y/libmlx5:siw") == "/x/librocefs:rxe:/y/libmlx5:siw");
  CHECK(with_driver("/x/librocefs", ":/x/librocefs:;rxe:") == "/x/librocefs:rxe");
}
