// The smaller pieces: generators, dmesg, tree, inbox, histogram, configuration.
#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "core/base/histogram.h"
#include "core/base/rng.h"
#include "core/config/config.h"
#include "core/loop/inbox.h"
#include "core/tree/dmesg.h"
#include "core/tree/function_file.h"
#include "core/tree/tree.h"

using namespace rocefs;

TEST_CASE("rng: a stream belongs to its seed and its entity, the same on every machine") {
  Rng a(1, "link mb_0-sw_0"), again(1, "link mb_0-sw_0"), other(1, "link sw_0-mb_0"),
      seed(2, "link mb_0-sw_0");
  uint64_t first = a.next();
  CHECK(first == again.next());
  CHECK(first != other.next());
  CHECK(first != seed.next());
  CHECK(Rng(0, "").next() == 2393714812739481704u);  // kept: a change would change every trace
}

TEST_CASE("rng: chances come true as often as they should, below() is fair") {
  Rng rng(9, "fair");
  int hits = 0;
  std::map<uint64_t, int> faces;
  for (int i = 0; i < 60'000; ++i) {
    hits += rng.chance(0.01);
    ++faces[rng.below(6)];
  }
  // Five standard deviations of a binomial: 24 and 91.
  CHECK(std::abs(hits - 600) < 5 * 25);
  REQUIRE(faces.size() == 6);
  for (auto [face, count] : faces) CHECK(std::abs(count - 10'000) < 5 * 92);
  CHECK_FALSE(rng.chance(0));
  CHECK(rng.chance(1));
}

TEST_CASE("dmesg: lines look like the kernel's, oldest go first, none can be forged") {
  Dmesg dmesg(100);
  dmesg.log(LogLevel::kInfo, 5 * kSecond + 123456789, "hello");
  CHECK(dmesg.text() == "[    5.123456] hello\n");
  dmesg.log(LogLevel::kInfo, 0, "a\n[    0.000000] forged\x1b[31m");
  CHECK(dmesg.text().find("\n[    0.000000] a?[    0.000000] forged?[31m\n") != std::string::npos);
  for (int i = 0; i < 50; ++i) dmesg.log(LogLevel::kInfo, i, "line " + std::to_string(i));
  CHECK(dmesg.text().size() <= 100);
  CHECK(dmesg.text().find("line 49") != std::string::npos);
  CHECK(dmesg.text().find("hello") == std::string::npos);
}

TEST_CASE("tree: links are relative, inode numbers belong to paths, what is removed says ENODEV") {
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

TEST_CASE("tree: a link says its target's name even where the way up passes it") {
  Tree tree(0, 0);
  tree.add_link("devices/pci/infiniband/mb/device", "devices/pci");
  CHECK(tree.resolve("devices/pci/infiniband/mb/device")->target == "../../../pci");
  CHECK(tree.follow("devices/pci/infiniband/mb/device")->name == "pci");
}

TEST_CASE("tree: a link out says its target as it is, and nobody follows it within the tree") {
  Tree tree(0, 0);
  tree.add_file("dev/null", constant("ours"));
  tree.add_link_out("dev/infiniband/uverbs0", "/dev/null");
  CHECK(tree.resolve("dev/infiniband/uverbs0")->target == "/dev/null");
  CHECK(tree.follow("dev/infiniband/uverbs0") == nullptr);
  CHECK(tree.follow("dev/infiniband/uverbs0/x") == nullptr);
}

TEST_CASE("tree: whoever remembers names hears of what comes and goes, and says when he knows") {
  struct Ear final : Tree::Listener {
    std::vector<std::string> heard;
    std::vector<Task> waiting;
    void entry_changed(Ino, const std::string& name) override { heard.push_back(name); }
    void when_known(Task then) override { waiting.push_back(std::move(then)); }
  };
  Tree tree(0, 0);
  bool known = false;
  tree.when_known([&] { known = true; });
  CHECK(known);  // nobody remembers anything
  tree.add_directory("class");
  tree.add_directory("flows", true);
  Ear ear;
  tree.set_listener(&ear);
  tree.add_directory("class/a/b");
  tree.add_directory("flows/f");  // nobody may remember names of this directory
  tree.remove("class/a");
  CHECK(ear.heard == std::vector<std::string>{"a", "b", "a"});
  known = false;
  tree.when_known([&] { known = true; });
  CHECK_FALSE(known);
  ear.waiting.at(0)();
  CHECK(known);
}

TEST_CASE("inbox: every command runs once, in each poster's order, and a full one refuses") {
  Inbox inbox(100'000);
  std::vector<int> last(4, -1);
  int count = 0, disorder = 0;
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back([&, poster] {
      for (int i = 0; i < 5000; ++i) {
        Task task = [&, poster, i] {
          disorder += last[static_cast<size_t>(poster)] + 1 != i;
          last[static_cast<size_t>(poster)] = i;
          ++count;
        };
        while (!inbox.post(task)) std::this_thread::yield();
      }
    });
  }
  while (count < 20'000) inbox.drain();
  for (auto& poster : posters) poster.join();
  CHECK(count == 20'000);
  CHECK(disorder == 0);

  Inbox small(2);
  Task task = [] {};
  CHECK(small.post(task));
  task = [] {};
  CHECK(small.post(task));
  task = [] {};
  CHECK_FALSE(small.post(task));
  CHECK(task);  // still ours
  CHECK(small.drain() == 2);
  CHECK(small.post(task));
}

TEST_CASE("histogram: quantiles are right to within a bucket") {
  Histogram histogram;
  CHECK(histogram.quantile(0.5) == 0);
  for (TimeNs i = 1; i <= 10'000; ++i) histogram.add(i);
  for (double fraction : {0.5, 0.9, 0.99, 1.0}) {
    auto exact = fraction * 10'000;
    CHECK(static_cast<double>(histogram.quantile(fraction)) >= exact * 0.99);
    CHECK(static_cast<double>(histogram.quantile(fraction)) <= exact * 1.26);
  }
  histogram.add(kNever);
  CHECK(histogram.quantile(1.0) > 0);
}

TEST_CASE("config: no mutation of a good file makes the reader stumble") {
  const std::string good =
      "[clock]\nmode = virtual\nseed = 3\n[device a]\nip = 10.0.0.1\nmtu = 1024\n[device b]\n"
      "[switch s]\n[link a s]\nrate = 10G\nloss = 0.1\n[link b s]\ndelay = 3us\n[knobs]\nx/y = 1\n";
  REQUIRE(parse_config(good, "good"));
  Rng rng(13, "config");
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (uint64_t changes = 1 + rng.below(4); changes > 0; --changes) {
      size_t at = rng.below(text.size());
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.next());
          break;
        case 1:
          text.erase(at, rng.below(20));
          break;
        case 2:
          text.insert(at, text.substr(rng.below(text.size()), rng.below(30)));
          break;
        default:
          text.insert(at, rng.below(300), "[]= \nx;"[rng.below(7)]);
          break;
      }
      if (text.empty()) text = "x";
    }
    Result<Config> config = parse_config(text, "f");
    accepted += bool(config);
    if (!config) REQUIRE(config.error().reason.substr(0, 2) == "f:");
  }
  CHECK(accepted > 0);
}
