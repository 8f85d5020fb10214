// Queries of `get`, short reads, and a tree that changes between them.
#include "core/tree/get_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "core/tree/function_file.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

constexpr uid_t kOwner = 1000, kReader = 1001;

// A file's value is its own path, and what is not to be seen says so.
struct Mount {
  Mount() {
    for (const char* path : {"a/b/c", "a/b/d", "a/e", "x/y/z", "x/y/c"}) add(path);
    tree.add_link("l/b", "a/b");
    tree.add_link("l/x", "x");
    add("secret/file");
    tree.resolve("secret")->mode = 0700;
    add("hidden");
    tree.resolve("hidden")->mode = 0600;
    add_get_file(tree, "debug", loop);
    open = std::move(*tree.resolve("debug/get")
                          ->file->open(tree.resolve("debug/get")->file, {kReader, kReader, 0}));
  }
  void add(const std::string& path) {
    const bool seen = !path.starts_with("secret") && path != "hidden";
    tree.add_file(path, constant(seen ? path + "\n\\" : "not for you"));
  }

  PollLoop loop;
  Tree tree{kOwner, kOwner};
  OperationPtr operation = std::make_shared<Operation>(Caller{kReader, kReader, 0});
  std::unique_ptr<OpenFile> open;
  std::string pass;  // what was read of it
  bool asked = false;
};

void write(Mount& mount, std::string_view query) {
  mount.open->write(query, mount.operation, [&](Result<size_t> taken) {
    if (!taken) {
      fuzz::require(taken.error().code > 0 && !taken.error().reason.empty());
      return;
    }
    fuzz::require(*taken == query.size());
    mount.asked = true;
    mount.pass.clear();
  });
}

// Lines of a pass: a path of a file, and its text as `get` escapes it.
void check(std::string_view pass) {
  while (!pass.empty()) {
    const size_t end = pass.find('\n');
    fuzz::require(end != pass.npos);
    const std::string_view line = pass.substr(0, end);
    const size_t sign = line.find('=');
    fuzz::require(sign != line.npos && line.find("not for you") == line.npos);
    fuzz::require(line.ends_with("\\n\\\\"));
    pass.remove_prefix(end + 1);
  }
}

void read(Mount& mount, size_t size) {
  mount.open->read(0, size, mount.operation, [&](Result<std::string> part) {
    fuzz::require(static_cast<bool>(part) == mount.asked);
    if (!part) return fuzz::require(part.error().code == EINVAL);
    fuzz::require(part->size() <= size);
    if (!part->empty()) {
      mount.pass += *part;
      return;
    }
    check(mount.pass);
    mount.pass.clear();
  });
}

void change(Mount& mount, uint8_t what) {
  const char* const path = what & 1 ? "a/b/c" : "x/y";
  if (mount.tree.resolve(path)) {
    mount.tree.remove(path);
  } else {
    mount.add(what & 1 ? "a/b/c" : "x/y/z");
  }
}

}  // namespace

// Parts that end with a NUL: w QUERY, r SIZE, c WHAT.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Mount mount;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (!input.empty()) {
    const size_t end = std::min(input.find('\0'), input.size());
    const std::string_view part = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    if (part.empty()) continue;
    const auto argument = static_cast<uint8_t>(part.size() > 1 ? part[1] : 0);
    if (part[0] == 'w') write(mount, part.substr(1));
    if (part[0] == 'r') read(mount, argument ? argument : 4096);
    if (part[0] == 'c') change(mount, argument);
  }
  return 0;
}
