// The tree of files: links, inode numbers, a cache of names.
#include <catch2/catch.hpp>

#include "core/tree/function_file.h"
#include "core/tree/tree.h"

using namespace rocefs;

TEST_CASE("tree: links are relative, inode numbers belong to paths, removed files are marked") {
  Tree tree(0, 0);
  tree.add_directory("class/net");
  auto file = constant("1");
  Ino ino = tree.add_file("devices/pci/dev/a", file);
  tree.add_link("class/net/eth", "devices/pci/dev");
  CHECK(tree.resolve("class/net/eth")->target == "../../devices/pci/dev");
  CHECK(tree.follow("class/net/eth/a")->ino == ino);
  CHECK(tree.follow("class/net/../net/eth/./a")->ino == ino);
  CHECK(tree.follow("class/net/eth/a/b") == nullptr);
  CHECK(tree.path_of(ino) == "devices/pci/dev/a");
  tree.add_link("class/loop", "class/loop");
  CHECK(tree.follow("class/loop") == nullptr);
  tree.remove("devices/pci/dev");
  CHECK(file->removed());
  CHECK(tree.find(ino) == nullptr);
  CHECK(tree.resolve("devices/pci/dev/a") == nullptr);
  CHECK(tree.add_file("devices/pci/dev/a", constant("2")) == ino);
}

TEST_CASE("tree: a link names its target even when the path up passes through it") {
  Tree tree(0, 0);
  tree.add_link("devices/pci/infiniband/mb/device", "devices/pci");
  CHECK(tree.resolve("devices/pci/infiniband/mb/device")->target == "../../../pci");
  CHECK(tree.follow("devices/pci/infiniband/mb/device")->name == "pci");
}

TEST_CASE("tree: an outside link keeps its target, and is not followed within the tree") {
  Tree tree(0, 0);
  tree.add_file("dev/null", constant("ours"));
  tree.add_link_out("dev/infiniband/uverbs0", "/dev/null");
  CHECK(tree.resolve("dev/infiniband/uverbs0")->target == "/dev/null");
  CHECK(tree.follow("dev/infiniband/uverbs0") == nullptr);
  CHECK(tree.follow("dev/infiniband/uverbs0/x") == nullptr);
}

TEST_CASE("tree: a listener hears of added and removed names, and when_known() waits for it") {
  struct Ear final : Tree::Listener {
    std::vector<std::string> heard;
    std::vector<Task> waiting;
    void entry_changed(Ino, const std::string& name) override { heard.push_back(name); }
    void when_known(Task then) override { waiting.push_back(std::move(then)); }
  };
  Tree tree(0, 0);
  bool known = false;
  tree.when_known([&] { known = true; });
  CHECK(known);  // no cache to wait for
  tree.add_directory("class");
  tree.add_directory("flows", true);
  Ear ear;
  tree.set_listener(&ear);
  tree.add_directory("class/a/b");
  tree.add_directory("flows/f");  // names of this directory are not cached
  tree.remove("class/a");
  CHECK(ear.heard == std::vector<std::string>{"a", "b", "a"});
  known = false;
  tree.when_known([&] { known = true; });
  CHECK_FALSE(known);
  ear.waiting.at(0)();
  CHECK(known);
}

TEST_CASE("tree: a directory is brought up to date when somebody looks, and only then") {
  Tree tree(0, 0);
  Ino ino = tree.add_directory("a/many", true);
  int looks = 0;
  bool there = false;
  tree.set_refresh(ino, [&] {
    ++looks;
    if (there == (tree.resolve("a/many/one") != nullptr)) return;
    if (there) {
      tree.add_directory("a/many/one");
    } else {
      tree.remove("a/many/one");
    }
  });
  there = true;
  CHECK(tree.resolve("a/many") != nullptr);
  CHECK(tree.child(kRootIno, "a") != nullptr);
  CHECK(looks == 0);
  CHECK(tree.follow("a/many/one") != nullptr);
  CHECK(tree.entries(ino).size() == 1);
  there = false;
  CHECK(tree.child(ino, "one") == nullptr);
  CHECK(tree.entries(ino).empty());
  CHECK(looks == 4);
  tree.remove("a/many");
  CHECK(tree.follow("a/many") == nullptr);
  CHECK(looks == 4);
}
