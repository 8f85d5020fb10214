#include "core/loop/regions.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "core/base/rng.h"

using namespace rocefs;

namespace {

constexpr TimeNs kLookahead = 100;

// Node: a region whose events send balls to other regions, at least the lookahead away.
struct Node final : RegionWork {
  struct Ball {
    TimeNs due = 0;
    int from = 0, left = 0;
  };
  struct Landing {
    Node* node;
    Ball ball;
    Event event;
    Landing(Node* of, const Ball& one)
        : node(of), ball(one), event(event_of<&Landing::land>(this)) {}
    void land(TimeNs now) { node->landed(*this, now); }
  };

  Node(std::vector<std::unique_ptr<Node>>& nodes, Regions& all, size_t me)
      : others(nodes), regions(all), number(me), rng(7, "node " + std::to_string(me)) {
    out.resize(all.count());
    all[me].set_work(*this);
  }

  void enter() override {
    for (const Ball& ball : handed) throw_in(ball);
    handed.clear();
  }
  void leave() override {}
  void hand_over() override {
    for (size_t to = 0; to < out.size(); ++to) {
      for (const Ball& ball : out[to]) {
        others[to]->handed.push_back(ball);
        regions[to].expect(ball.due);
      }
      out[to].clear();
    }
  }

  void throw_in(const Ball& ball) {
    landings.push_back(std::make_unique<Landing>(this, ball));
    regions[number].scheduler().at(landings.back()->event, ball.due);
  }
  void landed(Landing& landing, TimeNs now) {
    const Ball& ball = landing.ball;
    if (now != ball.due) ++late;
    log.push_back({now, ball.from, ball.left});
    if (ball.left == 0) return;
    const size_t to = rng.below(out.size());
    const TimeNs due = now + kLookahead + static_cast<TimeNs>(rng.below(3)) * 50;
    Ball next{due, static_cast<int>(number), ball.left - 1};
    if (to == number) {
      throw_in(next);
    } else {
      out[to].push_back(next);
      regions[number].note_sent();
    }
    if (ball.left % 8 == 0) {
      regions.alone(number, [this, now] { told.push_back(now); });
    }
  }

  std::vector<std::unique_ptr<Node>>& others;
  Regions& regions;
  const size_t number;
  Rng rng;
  std::vector<std::vector<Ball>> out;  // by region
  std::vector<Ball> handed;
  std::vector<std::unique_ptr<Landing>> landings;
  struct Line {
    TimeNs at;
    int from, left;
    bool operator==(const Line&) const = default;
  };
  std::vector<Line> log;
  std::vector<TimeNs>& told = all_told();
  static std::vector<TimeNs>& all_told() {
    static std::vector<TimeNs> all;
    return all;
  }
  int late = 0;
};

struct World {
  Scheduler common;
  Regions regions;
  std::vector<std::unique_ptr<Node>> nodes;
  explicit World(size_t threads, size_t count = 16) : regions(common, count, threads) {
    regions.set_lookahead([] { return kLookahead; });
    for (size_t i = 0; i < count; ++i) nodes.push_back(std::make_unique<Node>(nodes, regions, i));
    Node::all_told().clear();
  }
  void run(TimeNs limit) {
    while (regions.step(limit)) {
    }
  }
  std::vector<std::vector<Node::Line>> logs() const {
    std::vector<std::vector<Node::Line>> all;
    for (const auto& node : nodes) all.push_back(node->log);
    return all;
  }
};

struct Note {
  std::vector<TimeNs> at;
  Event event;
  Note() : event(event_of<&Note::fire>(this)) {}
  void fire(TimeNs now) { at.push_back(now); }
};

}  // namespace

TEST_CASE("regions: the same events at the same times on any number of threads") {
  std::vector<std::vector<Node::Line>> first;
  std::vector<TimeNs> told;
  for (size_t threads : {1, 2, 4}) {
    World world(threads);
    for (int i = 0; i < 64; ++i) {
      for (auto& node : world.nodes) node->throw_in({10 + i % 7, -1, 40});
    }
    world.run(kSecond);
    size_t landed = 0;
    for (const auto& node : world.nodes) {
      CHECK(node->late == 0);  // a window that is too long lets balls come too late
      landed += node->log.size();
    }
    CHECK(landed == 16 * 64 * 41);
    CHECK(world.regions.events_run() == landed);
    if (threads == 1) {
      first = world.logs();
      told = Node::all_told();
    }
    CHECK(world.logs() == first);
    CHECK(Node::all_told() == told);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.size() == 16 * 64 * 5);
  }
}

TEST_CASE("regions: events of no region run alone, before those of regions at that time") {
  World world(2, 2);
  Note note;
  world.nodes[0]->throw_in({250, -1, 0});
  world.nodes[1]->throw_in({280, -1, 0});
  world.common.at(note.event, 280);
  CHECK(world.regions.next() == 250);
  CHECK(world.regions.step(1000));  // ends before the note
  CHECK(world.nodes[0]->log.size() == 1);
  CHECK(world.common.now() == 279);
  CHECK_FALSE(world.regions.between_windows());
  CHECK(world.regions.step(1000));
  CHECK(note.at == std::vector<TimeNs>{280});
  CHECK(world.regions[1].scheduler().now() == 280);
  CHECK(world.nodes[1]->log.empty());
  CHECK(world.regions.step(1000));
  CHECK(world.nodes[1]->log.size() == 1);
  CHECK(world.regions.between_windows());
  CHECK(world.common.now() == 299);  // a multiple of the lookahead follows
  CHECK_FALSE(world.regions.step(1000));
}

TEST_CASE("regions: nothing runs beyond the limit, and time passes up to it") {
  World world(1, 2);
  world.nodes[0]->throw_in({100, -1, 0});
  world.nodes[1]->throw_in({150, -1, 0});
  CHECK_FALSE(world.regions.step(99));
  world.run(120);
  CHECK(world.nodes[0]->log.size() == 1);
  CHECK(world.nodes[1]->log.empty());
  world.regions.pass(140);
  CHECK(world.common.now() == 140);
  CHECK(world.regions[1].scheduler().now() == 140);
  world.run(kNever - 1);
  CHECK(world.nodes[1]->log == std::vector<Node::Line>{{150, -1, 0}});
}

TEST_CASE("regions: a window that is stopped goes on, and ends where it would have") {
  World world(1, 2);
  world.nodes[0]->throw_in({10, -1, 1});
  world.run(20);
  CHECK_FALSE(world.regions.between_windows());
  CHECK(world.regions.next() == 99);
  world.run(98);
  CHECK(world.common.now() == 20);
  world.run(99);
  CHECK(world.common.now() == 99);
  CHECK(world.regions.between_windows());
}

TEST_CASE("regions: stops in windows change nothing") {
  auto logs = [](TimeNs every) {
    World world(1);
    for (auto& node : world.nodes) node->throw_in({10, -1, 200});
    for (TimeNs limit = every;; limit += every) {
      world.run(limit);
      if (world.regions.next() == kNever) return std::pair(world.logs(), Node::all_told());
    }
  };
  auto without = logs(kSecond);
  CHECK(logs(7) == without);
  CHECK(logs(133) == without);
}

TEST_CASE("regions: what is sent while none of them runs arrives in time") {
  World world(1, 2);
  world.nodes[0]->throw_in({10, -1, 0});
  world.run(50);
  world.run(1000);
  CHECK(world.common.now() == 99);
  world.regions.pass(130);
  world.nodes[0]->out[1].push_back({240, 0, 0});
  world.regions[0].note_sent();
  CHECK(world.regions.next() == 240);
  world.run(1000);
  CHECK(world.nodes[1]->log == std::vector<Node::Line>{{240, 0, 0}});
}

TEST_CASE("regions: windows end where nothing goes from one region to another, too") {
  World world(1, 1);
  world.regions.set_lookahead([] { return kNever; });
  world.nodes[0]->throw_in({10, -1, 0});
  world.run(kSecond);
  CHECK(world.regions.between_windows());
  CHECK(world.common.now() == kMicrosecond - 1);
}

TEST_CASE("regions: a changed lookahead is asked for again") {
  World world(1, 2);
  int asked = 0;
  world.regions.set_lookahead([&asked]() -> TimeNs {
    ++asked;
    return 0;  // at least 1 ns is taken
  });
  world.nodes[0]->throw_in({10, -1, 0});
  world.nodes[1]->throw_in({11, -1, 0});
  CHECK(world.regions.step(100));
  CHECK(world.nodes[1]->log.empty());
  CHECK(world.regions.step(100));
  CHECK(asked == 1);
  world.regions.lookahead_changed();
  world.nodes[0]->throw_in({20, -1, 0});
  CHECK(world.regions.step(100));
  CHECK(asked == 2);
}
