// get: many files in one read.
#include <catch2/catch.hpp>

#include <map>

#include "core/tree/file_walk.h"
#include "core/tree/function_file.h"
#include "core/tree/get_file.h"

using namespace rocefs;

namespace {

// An open `get` of a tree with two devices.
struct Asked {
  explicit Asked(Caller caller = {}) {
    for (const std::string device : {"a", "b"}) {
      tree.add_file("devices/" + device + "/rate",
                    read_only([this, device]() -> Result<std::string> {
                      return fmt::format("{}", rates[device]);
                    }));
      tree.add_file("devices/" + device + "/text", constant("one\ntwo\\"));
      tree.add_link("class/net/" + device, "devices/" + device);
    }
    tree.add_file("devices/trigger", write_only([](std::string_view, const OperationPtr&,
                                                   Answer<void> answer) { answer({}); }));
    tree.add_file("devices/broken", read_only([]() -> Result<std::string> {
                    return Error{EIO, "broken"};
                  }));
    tree.add_file("devices/log", std::make_shared<FunctionStream>([] { return "long"; }));
    add_get_file(tree, "debug", loop);
    auto file = tree.resolve("debug/get")->file;
    open = std::move(*file->open(file, caller));
  }
  // 0 or the errno.
  int ask(std::string_view patterns) {
    int code = -1;
    open->write(patterns, operation, [&](Result<size_t> taken) {
      code = taken ? (*taken == patterns.size() ? 0 : -2) : taken.error().code;
    });
    return code;
  }
  // The next read(2); the errno as "!N".
  std::string read(size_t size = 4096) {
    std::string text = "no answer";
    open->read(0, size, operation, [&](Result<std::string> part) {
      text = part ? *part : fmt::format("!{}", part.error().code);
    });
    return text;
  }

  PollLoop loop;
  Tree tree{1000, 1000};
  std::map<std::string, int> rates;
  OperationPtr operation = std::make_shared<Operation>(Caller{});
  std::unique_ptr<OpenFile> open;
};

}  // namespace

TEST_CASE("get: files of a pattern in one read, again after the end, as they are then") {
  Asked get;
  REQUIRE(get.ask("class/net/*/rate\n") == 0);
  CHECK(get.read() == "class/net/a/rate=0\nclass/net/b/rate=0\n");
  CHECK(get.read().empty());
  get.rates["b"] = 5;
  CHECK(get.read() == "class/net/a/rate=0\nclass/net/b/rate=5\n");
}

TEST_CASE("get: a short read loses nothing, a new query drops what was not read") {
  Asked get;
  REQUIRE(get.ask("devices/*/rate class/net/?/rate") == 0);
  const std::string whole = get.read();
  CHECK(get.read().empty());
  std::string parts;
  for (std::string part; !(part = get.read(7)).empty();) parts += part;
  CHECK(parts == whole);
  CHECK(get.read(7).size() == 7);
  REQUIRE(get.ask("devices/a/rate") == 0);
  CHECK(get.read() == "devices/a/rate=0\n");
}

TEST_CASE("get: newlines and backslashes within a text are escaped") {
  Asked get;
  REQUIRE(get.ask("devices/a/text") == 0);
  CHECK(get.read() == "devices/a/text=one\\ntwo\\\\\n");
}

TEST_CASE("get: what cannot be shown is refused by name, and left out of a pattern") {
  Asked get;
  CHECK(get.read() == fmt::format("!{}", EINVAL));  // nothing asked for
  CHECK(get.ask(" \n") == EINVAL);
  CHECK(get.ask("devices/c/rate") == ENOENT);
  CHECK(get.ask("devices/a") == EISDIR);
  CHECK(get.ask("devices/trigger") == EACCES);
  CHECK(get.ask("devices/log") == EINVAL);
  CHECK(get.ask("debug/get") == EINVAL);
  CHECK(get.ask(std::string(4096, 'a')) == EINVAL);
  REQUIRE(get.ask("devices/a/rate") == 0);
  CHECK(get.ask("devices/a/rate nothing") == ENOENT);
  CHECK(get.read() == "devices/a/rate=0\n");  // the query that was refused changed nothing
  REQUIRE(get.ask("devices/* debug/*") == 0);
  CHECK(get.read().empty());
}

TEST_CASE("get: shows what the modes allow its reader") {
  Asked get(Caller{1001, 1001, 0});
  get.tree.resolve("devices/a/rate")->mode = 0600;
  REQUIRE(get.ask("devices/*/rate") == 0);
  CHECK(get.read() == "devices/b/rate=0\n");
  CHECK(get.ask("devices/a/rate") == EACCES);
  get.tree.resolve("devices/b")->mode = 0700;
  REQUIRE(get.ask("devices/*/rate class/net/*/rate") == 0);
  CHECK(get.read().empty());

  Asked owner(Caller{1000, 1000, 0});
  owner.tree.resolve("devices/a/rate")->mode = 0600;
  owner.tree.resolve("devices/b/rate")->mode = 0066;
  REQUIRE(owner.ask("devices/*/rate") == 0);
  CHECK(owner.read() == "devices/a/rate=0\n");
}

TEST_CASE("get: files that go while they are read are left out") {
  Asked get;
  REQUIRE(get.ask("devices/*/rate") == 0);
  CHECK(get.read(1) == "d");
  get.tree.remove("devices/b");
  CHECK(get.read() == "evices/a/rate=0\n");
  CHECK(get.read().empty());
}

TEST_CASE("get: each pass has the files that are there then, by their modes then") {
  Asked get(Caller{1001, 1001, 0});
  REQUIRE(get.ask("devices/*/rate") == 0);
  auto pass = [&] {
    std::string text = get.read();
    CHECK(get.read().empty());
    return text;
  };
  for (int i = 0; i < 3; ++i) {
    get.rates["a"] = i;
    CHECK(pass() == fmt::format("devices/a/rate={}\ndevices/b/rate=0\n", i));
  }
  get.tree.add_file("devices/c/rate", constant("7"));
  CHECK(pass() == "devices/a/rate=2\ndevices/b/rate=0\ndevices/c/rate=7\n");
  get.tree.remove("devices/a");
  CHECK(pass() == "devices/b/rate=0\ndevices/c/rate=7\n");
  get.tree.resolve("devices/b/rate")->mode = 0600;
  get.tree.note_access();
  CHECK(pass() == "devices/c/rate=7\n");
}

TEST_CASE("get: a directory that is refreshed is looked at in each pass") {
  Asked get;
  get.tree.add_directory("flows", true);
  int flows = 0;
  get.tree.set_refresh(get.tree.resolve("flows")->ino, [&] {
    ++flows;
    get.tree.add_file(fmt::format("flows/{}", flows), constant("flow"));
  });
  REQUIRE(get.ask("flows/*") == 0);
  CHECK(get.read() == "flows/1=flow\n");
  CHECK(get.read().empty());
  CHECK(get.read() == "flows/1=flow\nflows/2=flow\n");
}

TEST_CASE("get: a path that no file has is refused before it is walked") {
  Asked get;
  std::string deep = "*";
  for (int i = 0; i < 24; ++i) deep += "/*";
  CHECK(get.ask(deep) == ENAMETOOLONG);
  CHECK(get.ask(std::string(256, '*')) == ENAMETOOLONG);
}

TEST_CASE("get: a read that goes on in turns ends with its descriptor, and with an interrupt") {
  Asked get;
  for (int i = 0; i < 300'000; ++i) get.tree.add_file(fmt::format("many/{}", i), constant("x"));
  REQUIRE(get.ask("many/*none") == 0);
  std::optional<Result<std::string>> answer;
  auto read = [&] {
    answer.reset();
    auto operation = std::make_shared<Operation>(Caller{});
    get.open->read(0, 4096, operation, [&](Result<std::string> part) { answer = std::move(part); });
    return operation;
  };
  OperationPtr first = read();
  REQUIRE_FALSE(answer);  // 300,000 entries are more than a turn
  CHECK(get.read() == fmt::format("!{}", EBUSY));
  first->interrupt();
  REQUIRE(answer);
  CHECK(answer->error().code == EINTR);
  read();
  REQUIRE_FALSE(answer);
  get.loop.post([&] { get.loop.post([&] { get.loop.stop(); }); });
  get.loop.run();
  REQUIRE_FALSE(answer);
  get.open.reset();
  REQUIRE(answer);
  CHECK(answer->error().code == ECANCELED);
}

TEST_CASE("get: a look at 300,000 files goes on until it has an answer") {
  Asked get;
  for (int i = 0; i < 300'000; ++i) get.tree.add_file(fmt::format("many/{}", i), constant("x"));
  get.tree.add_file("many/last_one", constant("y"));
  REQUIRE(get.ask("many/*_*") == 0);
  std::string text;
  get.open->read(0, 4096, get.operation, [&](Result<std::string> part) {
    text = *part;
    get.loop.stop();
  });
  if (text.empty()) get.loop.run();
  CHECK(text == "many/last_one=y\n");
}

TEST_CASE("file walk: follows three links on a way") {
  Tree tree(0, 0);
  tree.add_file("d/file", constant("x"));
  tree.add_link("d/self", "d");
  WalkBudget budget;
  CHECK(*matching_files(tree, "*/*elf/*elf/*elf/f*", budget) ==
        std::vector<std::string>{"d/self/self/self/file"});
  CHECK(matching_files(tree, "*/*elf/*elf/*elf/*elf/f*", budget)->empty());
}

TEST_CASE("file walk: * and ? alone are special") {
  CHECK(matches("*", "anything"));
  CHECK(matches("a*b*c", "a_b_b_c"));
  CHECK(matches("a?c", "abc"));
  CHECK(matches("**", ""));
  CHECK_FALSE(matches("?", ""));
  CHECK_FALSE(matches("a*b", "a_b_"));
  CHECK_FALSE(matches("[a]*", "a"));
  CHECK(matches("[a]*", "[a]b"));
  CHECK_FALSE(matches("*a*a*a*a*a*a*a*a*a*b", std::string(200, 'a')));
}

TEST_CASE("file walk: groups and capabilities grant what the kernel would") {
  Tree tree(1000, 1000);
  tree.add_file("f", constant("x"));
  auto finds = [&](TreeUser reader) {
    FileWalk walk(tree, {"f"}, std::move(reader));
    size_t budget = 100;
    return walk.next(budget).has_value();
  };
  Tree::Node& file = *tree.resolve("f");
  file.gid = 7;
  file.mode = 0604;
  CHECK(finds({1001, 1001, std::vector<gid_t>{}, false}));
  CHECK_FALSE(finds({1001, 1001, std::vector<gid_t>{7}, false}));
  CHECK_FALSE(finds({1001, 7, std::vector<gid_t>{}, false}));
  CHECK_FALSE(finds({1001, 1001, std::nullopt, false}));  // it may be in the group
  file.mode = 0640;
  CHECK(finds({1001, 1001, std::vector<gid_t>{7}, false}));
  CHECK_FALSE(finds({1001, 1001, std::vector<gid_t>{}, false}));
  file.mode = 0600;
  CHECK_FALSE(finds({0, 0, std::vector<gid_t>{}, false}));
  CHECK(finds({0, 0, std::vector<gid_t>{}, true}));
}

TEST_CASE("file walk: looks at as many entries as it may, and goes on there") {
  Tree tree(0, 0);
  for (int i = 0; i < 10; ++i) tree.add_file(fmt::format("d/{}", i), constant("x"));
  FileWalk walk(tree, {"d/9", "d/*"});
  size_t budget = 4;
  CHECK(walk.next(budget)->path == "d/9");
  CHECK(budget == 2);
  CHECK(walk.next(budget)->path == "d/0");
  CHECK_FALSE(walk.next(budget));
  CHECK_FALSE(walk.ended());
  size_t found = 0;
  for (budget = 100; walk.next(budget);) ++found;
  CHECK(found == 9);
  CHECK(walk.ended());
}
