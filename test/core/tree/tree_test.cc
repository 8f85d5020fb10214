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

namespace {

// Directory a/b with the file a/b/c, both made when they are looked for; counts the fills.
struct Lazy {
  Tree tree{0, 0};
  int a = 0, b = 0;

  Lazy() {
    tree.add_later("a", [this] {
      ++a;
      tree.add_file("a/x", constant("1"));
    });
    tree.add_later("a/b", [this] {
      ++b;
      tree.add_file("a/b/c", constant("2"));
    });
  }
};

}  // namespace

TEST_CASE("tree: entries that wait are made when a path below is followed, each level alone") {
  Lazy lazy;
  CHECK(lazy.tree.resolve("a"));
  CHECK(lazy.a == 0);
  CHECK(lazy.tree.resolve("a/b"));
  CHECK((lazy.a == 1 && lazy.b == 0));
  CHECK(lazy.tree.resolve("a/none") == nullptr);
  CHECK(lazy.tree.follow("a/b/c"));
  CHECK((lazy.a == 1 && lazy.b == 1));
  CHECK(lazy.tree.resolve("a/b/none") == nullptr);
}

TEST_CASE("tree: a path that begins with a slash is nobody's, whether entries wait or not") {
  Lazy lazy;
  for (const char* path : {"/", "/a", "/none", "//", "/a/b/c", "none/"}) {
    INFO(path);
    CHECK(lazy.tree.resolve(path) == nullptr);
  }
  CHECK(lazy.tree.follow("/a/b/c"));
}

TEST_CASE("tree: entries that wait are made when their directory is listed, in order, once") {
  Lazy lazy;
  lazy.tree.add_later("a", [&] { lazy.tree.add_file("a/y", constant("3")); });
  Ino a = lazy.tree.resolve("a")->ino;
  CHECK_FALSE(lazy.tree.filled(a));
  CHECK(lazy.tree.fill(a));
  CHECK_FALSE(lazy.tree.fill(a));
  std::vector<std::string> names;
  for (Ino child : lazy.tree.find(a)->children) names.push_back(lazy.tree.find(child)->name);
  CHECK(names == std::vector<std::string>{"x", "b", "y"});
}

TEST_CASE("tree: made files alone are visited and found without a look") {
  Lazy lazy;
  auto files = [&] {
    size_t count = 0;
    lazy.tree.each_made_file([&](const std::string&, const std::shared_ptr<File>&) { ++count; });
    return count;
  };
  CHECK(files() == 0);
  CHECK(lazy.tree.made("a/x") == nullptr);
  CHECK(lazy.a == 0);
  lazy.tree.fill_where([](Ino) { return true; });
  CHECK(files() == 2);
  CHECK(lazy.tree.made("a/x"));
}

TEST_CASE("tree: wanted directories are filled, and those below that are wanted too") {
  Lazy lazy;
  const Ino a = lazy.tree.resolve("a")->ino;
  std::vector<Ino> asked;
  lazy.tree.fill_where([&](Ino directory) {
    asked.push_back(directory);
    return directory == a;
  });
  CHECK((lazy.a == 1 && lazy.b == 0));
  CHECK(asked.size() == 2);
  lazy.tree.fill_where([&](Ino directory) { return directory != a; });
  CHECK(lazy.b == 1);
}

TEST_CASE("tree: a directory removed before it was filled is never filled") {
  Lazy lazy;
  lazy.tree.remove("a/b");  // makes a's entries
  CHECK((lazy.a == 1 && lazy.b == 0));
  CHECK(lazy.tree.resolve("a/b/c") == nullptr);
  CHECK(lazy.b == 0);
}

TEST_CASE("tree: nobody is told of entries that waited, and they have their directory's date") {
  struct Ear final : Tree::Listener {
    int heard = 0;
    void entry_changed(Ino, const std::string&) override { ++heard; }
    void when_known(Task then) override { then(); }
  };
  Lazy lazy;
  lazy.tree.date_all({7, 8});
  Ear ear;
  int told = 0;
  lazy.tree.set_listener(&ear);
  lazy.tree.set_change_listener([&](Ino) { ++told; });
  REQUIRE(lazy.tree.resolve("a/b/c"));
  CHECK((ear.heard == 0 && told == 0));
  CHECK(lazy.tree.resolve("a/b/c")->mtime.tv_sec == 7);
}

TEST_CASE("tree: while settings are watched a directory is filled at once") {
  Tree tree(0, 0);
  tree.set_change_listener([](Ino) {});
  bool filled = false;
  tree.add_later("a", [&] { filled = true; });
  CHECK(filled);
}
