// reference: the page of all files of a tree.
#include "core/tree/reference.h"

#include <catch2/catch.hpp>
#include <optional>

#include "core/tree/function_file.h"

using namespace rocefs;

namespace {

// Counts how often it is asked for its words.
class Counted final : public Stream {
 public:
  explicit Counted(size_t& asked) : asked_(asked) {}
  void content(Answer<std::string> answer) override { answer(std::string()); }
  FileDoc doc() const override {
    ++asked_;
    return {"value", {}, {}, "counts"};
  }

 private:
  size_t& asked_;
};

struct Described {
  Described() { add_reference_file(tree, "debug", loop); }
  void ask(std::optional<std::string>& text) {
    auto file = std::dynamic_pointer_cast<Stream>(tree.resolve("debug/reference")->file);
    REQUIRE(file);
    file->content([&](Result<std::string> content) { text = *content; });
  }
  // One turn of the loop.
  void turn() {
    loop.post([&] { loop.stop(); });
    loop.run();
  }

  PollLoop loop;
  Tree tree{1000, 1000};
  size_t asked = 0;
};

}  // namespace

TEST_CASE("reference: devices are known by their links in class/") {
  Described described;
  for (const std::string name : {"one", "two"}) {
    described.tree.add_link("class/net/" + name, "devices/pci/" + name);
    described.tree.add_later("devices/pci/" + name, [&described, name] {
      described.tree.add_file("devices/pci/" + name + "/port/rate", constant("1", "the rate"));
    });
  }
  std::optional<std::string> text;
  described.ask(text);
  while (!text) described.turn();
  CHECK(text->find("\n## class/net/*/port\n") != text->npos);
  CHECK(text->find("\n| `rate` | r | value |  |  | the rate |\n") != text->npos);
  CHECK(text->find("devices/") == text->npos);
}

TEST_CASE("reference: is made in turns, in which a device may leave") {
  Described described;
  for (int i = 0; i < 3000; ++i) {
    described.tree.add_file(fmt::format("devices/{}/file", i),
                            std::make_shared<Counted>(described.asked));
  }
  std::optional<std::string> text;
  described.ask(text);
  size_t before = described.asked, turns = 0;
  for (; !text; ++turns) {
    REQUIRE(described.asked - before <= 256);
    before = described.asked;
    described.turn();
    if (turns == 2) described.tree.remove("devices");
  }
  CHECK(turns > 2);
  CHECK(described.asked > 0);
  CHECK(described.asked < 3000);
}

TEST_CASE("reference: readers who come while one is made share the next") {
  Described described;
  for (int i = 0; i < 3000; ++i) {
    described.tree.add_file(fmt::format("files/{}", i), std::make_shared<Counted>(described.asked));
  }
  std::optional<std::string> first, others[8];
  described.ask(first);
  described.turn();
  described.tree.add_file("late", constant("1", "late"));
  for (auto& text : others) described.ask(text);
  while (!first || !others[7]) described.turn();
  CHECK(described.asked == 2 * 3000);
  for (const auto& text : others) CHECK(text->find("`late`") != text->npos);
}
