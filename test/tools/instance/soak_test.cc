// Soak test of ten virtual minutes: flows of every reliable operation, while every knob of the tree
// takes random values.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/tree/knob_file.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/trigger.h"
#include "rdma/fabric/switch.h"
#include "tools/rocefs/instance/instance.h"

namespace rocefs::test {
namespace {

constexpr TimeNs kLength = 600 * kSecond;
constexpr TimeNs kStep = 50 * kMillisecond;

// Topology with links so slow that ten minutes are a few million packets, and one path: with
// several paths of different delay, spraying without selective retransmission causes NAK after NAK
// and exhausts the retries.
constexpr char kFile[] = "[topology]\nkind=dumbbell\nhosts=4\nrate=100M\ndelay=100us\n";

struct Knob {
  std::string path;
  std::shared_ptr<KnobFile> file;
};

class Soak {
 public:
  explicit Soak(uint64_t seed) : config_(*parse_config(kFile, "soak")), rng_(seed, "soak") {
    Instance::Options wanted{{ClockMode::kVirtual, 1, 0, nullptr}, seed, 0, 0};
    auto instance = Instance::create(config_, wanted);
    REQUIRE(instance);
    instance_ = std::move(*instance);
    instance_->add_files(nullptr);
    instance_->keep_as_defaults();
    instance_->tree().fill_where([](Ino) { return true; });
    instance_->tree().each_made_file(
        [&](const std::string& path, const std::shared_ptr<File>& file) {
          // The virtual clock has no dilation.
          if (path == debug("clock/dilation")) return;
          if (auto knob = std::dynamic_pointer_cast<KnobFile>(file)) knobs_.push_back({path, knob});
        });
    std::sort(knobs_.begin(), knobs_.end(),
              [](const Knob& a, const Knob& b) { return a.path < b.path; });
    instance_->engine().start();
  }
  ~Soak() {
    instance_->stop_engine();
    instance_->end_traffic();
  }

  void run() {
    const char* const flows[] = {"w write h0 h2", "s send h1 h3", "r read h2 h1", "a atomic h3 h0"};
    for (; now_ < kLength; now_ += kStep) {
      for (const char* flow : flows) keep_running(flow);
      for (const std::string& path : std::exchange(down_, {})) must_store(path, "up");
      toggle();
      advance(kStep);
    }
    // The flows must end with any settings.
    for (const Knob& knob : knobs_) {
      if (knob.path.ends_with("/loss")) must_store(knob.path, "0");
      if (knob.path.ends_with("/state")) must_store(knob.path, "up");
    }
    for (int i = 0; i < 100'000 && still_running() > 0; ++i) advance(kStep);
    CHECK(still_running() == 0);
    for (const char* flow : flows) check_ended(std::string(1, flow[0]));
    must_store(debug("clock/advance"), "idle");
    for (const auto& one : instance_->fabric().switches()) CHECK(one->used().get() == 0);
  }
  uint64_t toggled() const { return toggled_; }
  uint64_t refused() const { return refused_; }
  uint64_t flows() const { return flows_; }
  uint64_t retransmitted() const { return retransmitted_; }
  size_t knobs() const { return knobs_.size(); }

 private:
  static std::string debug(const std::string& path) {
    return fmt::format("{}/{}", kDebugDirectory, path);
  }

  void toggle() {
    const Knob& knob = knobs_[rng_.below(knobs_.size())];
    std::string value = random_value(knob);
    Result<void> stored = store(knob.path, value);
    // Rules that span knobs refuse some values, which must change nothing: the flows would show it.
    if (!stored) CHECK(stored.error().code == EINVAL);
    ++(stored ? toggled_ : refused_);
    if (knob.path.ends_with("/state") && value == "down") down_.push_back(knob.path);
  }

  // Number between `least` and `most`; all orders of magnitude are equally likely.
  uint64_t spread(uint64_t least, uint64_t most) {
    double low = std::log(static_cast<double>(least) + 1);
    double high = std::log(static_cast<double>(most) + 1);
    double at = low + (high - low) * static_cast<double>(rng_.below(1'000'001)) / 1e6;
    return std::clamp(static_cast<uint64_t>(std::exp(at)) - 1, least, most);
  }

  // Value that the row allows, except those that would make the run last a day or a connection give
  // up as it should.
  std::string random_value(const Knob& knob) {
    const KnobRow& row = knob.file->row();
    auto is = [&](std::string_view end) { return knob.path.ends_with(end); };
    if (is("/rate")) return fmt::format("{}", spread(20'000'000, 400'000'000));
    if (is("/loss")) return fmt::format("{}", static_cast<double>(rng_.below(21)) / 1000);
    if (is("/delay")) return fmt::format("{}", spread(0, 2 * kMillisecond));
    // Buffers hold all packets in flight, and those that arrive while a priority is paused: a
    // fabric that drops most packets makes connections give up, as they should.
    if (is("/buffer") || is("/ingress_buffer") || is("/buffer/size"))
      return fmt::format("{}", spread(8 << 20, 64 << 20));
    if (is("/pfc/headroom")) return fmt::format("{}", spread(240 << 10, 320 << 10));
    switch (row.type) {
      case KnobType::kBool:
        return rng_.below(2) ? "1" : "0";
      case KnobType::kWord: {
        std::vector<std::string_view> words = split(row.words, " ");
        return std::string(words[rng_.below(words.size())]);
      }
      case KnobType::kProbability:
        return fmt::format("{}", static_cast<double>(rng_.below(1001)) / 1000);
      case KnobType::kDuration:
        return fmt::format("{}", spread(std::max<uint64_t>(row.min, 10'000),
                                        std::min<uint64_t>(row.max, 10 * kMillisecond)));
      case KnobType::kText:
        return "soak";
      default: {
        bool count = knob.path.find("/npcc/cnps_") != knob.path.npos;
        return fmt::format("{}", spread(row.min, count ? 16 : row.max));
      }
    }
  }

  // Starts a flow of a few megabytes, and another one when it has ended.
  void keep_running(const std::string& flow) {
    std::string name = flow.substr(0, 1);
    std::string state = text(debug("traffic/" + name + "/state"));
    if (state == "running") return;
    if (!state.empty()) check_ended(name);
    std::string more = flow[0] == 'a' ? "count=300" : "qps=2 size=64K count=30";
    must_store(debug("traffic/start"), flow + " " + more + " timeout=19 retry=7");
    ++flows_;
  }
  void check_ended(const std::string& name) {
    std::string state = text(debug("traffic/" + name + "/state"));
    INFO("flow " << name << ": " << text(debug("traffic/" + name + "/result")));
    INFO(now_ / kMillisecond << " ms, with\n" << (state == "done" ? "" : settings()));
    CHECK(state == "done");
    std::string result = text(debug("traffic/" + name + "/result"));
    for (std::string_view line : split(result, "\n")) {
      constexpr std::string_view kAgain = "retransmitted ";
      if (line.starts_with(kAgain)) {
        retransmitted_ +=
            std::strtoull(std::string(line.substr(kAgain.size())).c_str(), nullptr, 10);
      }
    }
    must_store(debug("traffic/" + name + "/stop"), "1");
  }
  // Lists knobs that differ from their defaults.
  std::string settings() {
    std::string text;
    for (const Knob& knob : knobs_) {
      const KnobSet& set = *knob.file->set();
      size_t index = knob.file->index();
      if (set.value(index) == set.defaults()[index]) continue;
      text += fmt::format("{}={}\n", knob.path, format_knob(knob.file->row(), set.value(index)));
    }
    return text;
  }
  size_t still_running() {
    size_t running = 0;
    for (const char* name : {"w", "s", "r", "a"}) {
      running += text(debug(fmt::format("traffic/{}/state", name))) == "running";
    }
    return running;
  }

  std::string text(const std::string& path) {
    Tree::Node* node = instance_->tree().follow(path);
    auto* attribute = node ? dynamic_cast<Attribute*>(node->file.get()) : nullptr;
    Result<std::string> shown = attribute ? attribute->show() : Result<std::string>(std::string());
    REQUIRE(shown);
    while (shown->ends_with('\n')) shown->pop_back();
    return *shown;
  }
  Result<void> wait(const std::function<void(Answer<void>)>& begin) {
    std::optional<Result<void>> result;
    begin([&](Result<void> answer) {
      result = std::move(answer);
      instance_->loop().stop();
    });
    instance_->loop().run();
    return *result;
  }
  Result<void> store(const std::string& path, const std::string& value) {
    Tree::Node* node = instance_->tree().follow(path);
    REQUIRE(node);
    return wait([&, file = node->file](Answer<void> answer) {
      file->store(value, std::make_shared<Operation>(Caller{}), std::move(answer));
    });
  }
  void must_store(const std::string& path, const std::string& value) {
    Result<void> stored = store(path, value);
    INFO(path << "=" << value << ": " << (stored ? "" : stored.error().reason));
    REQUIRE(stored);
  }
  void advance(TimeNs duration) { must_store(debug("clock/advance"), fmt::format("{}", duration)); }

  const Config config_;
  Rng rng_;
  std::unique_ptr<Instance> instance_;
  std::vector<Knob> knobs_;
  std::vector<std::string> down_;  // links that come up at the next step
  TimeNs now_ = 0;
  uint64_t toggled_ = 0, refused_ = 0, flows_ = 0, retransmitted_ = 0;
};

}  // namespace

TEST_CASE("soak: any knob may take any value under traffic, and no message is lost") {
  uint64_t seed = 1;
  if (const char* given = std::getenv("ROCEFS_SEED")) seed = std::strtoull(given, nullptr, 0);
  INFO("replay with: ROCEFS_SEED=" << seed << " build/test/tools_test 'soak*'");
  Soak soak(seed);
  soak.run();
  std::printf("REPORT soak: %lu values in %zu knobs, %lu refused, %lu flows, %lu retransmitted\n",
              soak.toggled(), soak.knobs(), soak.refused(), soak.flows(), soak.retransmitted());
  CHECK(soak.toggled() > 10'000);
  CHECK(soak.flows() > 100);
}

}  // namespace rocefs::test
