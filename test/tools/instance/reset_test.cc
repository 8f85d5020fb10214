// Reset of objects whose files nobody has looked for.
#include <catch2/catch.hpp>
#include <set>

#include "core/tree/counter_files.h"
#include "core/tree/knob_file.h"
#include "rdma/nic/device.h"
#include "tools/rocefs/instance/instance.h"

namespace rocefs::test {
namespace {

constexpr char kFile[] =
    "[device h0]\n[device h1]\n[device h2]\n[switch s]\n"
    "[link h0 s]\n[link h1 s]\n[link h2 s]\n";

class Mount {
 public:
  Mount() : config_(*parse_config(kFile, "reset")) {
    Instance::Options wanted{{ClockMode::kVirtual, 1, 0, nullptr}, 1, 0, 0};
    auto instance = Instance::create(config_, wanted);
    REQUIRE(instance);
    instance_ = std::move(*instance);
    instance_->add_files(nullptr);
    instance_->keep_as_defaults();
    instance_->engine().start();
  }
  ~Mount() {
    instance_->stop_engine();
    instance_->end_traffic();
  }

  Tree& tree() { return instance_->tree(); }
  Fabric& fabric() { return instance_->fabric(); }
  void fill() {
    tree().fill_where([](Ino) { return true; });
  }
  size_t made_files() {
    size_t count = 0;
    tree().each_made_file([&](const std::string&, const std::shared_ptr<File>&) { ++count; });
    return count;
  }
  template <class Kind>
  std::map<std::string, std::shared_ptr<Kind>> made() {
    std::map<std::string, std::shared_ptr<Kind>> found;
    tree().each_made_file([&](const std::string& path, const std::shared_ptr<File>& file) {
      if (auto one = std::dynamic_pointer_cast<Kind>(file)) found.emplace(path, one);
    });
    return found;
  }
  void on_core(std::function<void()> act) {
    wait([&](Answer<void> answer) {
      instance_->engine().call<void>(
          [act]() -> Result<void> {
            act();
            return {};
          },
          std::move(answer));
    });
  }
  void store(const std::string& path, const std::string& value) {
    INFO(path << "=" << value);
    Tree::Node* node = tree().follow(path);
    REQUIRE(node);
    wait([&, file = node->file](Answer<void> answer) {
      file->store(value, std::make_shared<Operation>(Caller{}), std::move(answer));
    });
  }
  static std::string debug(const std::string& path) {
    return fmt::format("{}/{}", kDebugDirectory, path);
  }
  void reset() { store(debug("reset"), "1"); }

  void check_as_new() {
    fill();
    for (const auto& [path, counter] : made<CounterFile>()) {
      INFO(path);
      CHECK(counter->counter().get() == 0);
    }
    for (const auto& [path, knob] : made<KnobFile>()) {
      INFO(path);
      CHECK(knob->set()->value(knob->index()) == knob->set()->defaults()[knob->index()]);
    }
  }

 private:
  void wait(const std::function<void(Answer<void>)>& begin) {
    std::optional<Result<void>> result;
    begin([&](Result<void> answer) {
      result = std::move(answer);
      instance_->loop().stop();
    });
    instance_->loop().run();
    INFO((*result ? "" : result->error().reason));
    REQUIRE(*result);
  }

  const Config config_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace

TEST_CASE("reset: counters and knobs that nobody has looked for are reset, and no file is made") {
  Mount mount;
  mount.store(Mount::debug("traffic/start"), "w write h0 h2 size=64K count=20");
  mount.store(Mount::debug("inject/add"), "f down h1-s");
  mount.store(Mount::debug("clock/advance"), "1ms");
  Port& port = mount.fabric().device("h2")->port(1);
  uint64_t received = 0;
  bool up = true;
  mount.on_core([&] {
    received = port.counters().rx_write_requests.get();
    up = mount.fabric().link("h1-s")->up();
  });
  CHECK(received > 0);
  CHECK_FALSE(up);
  const size_t files = mount.made_files();
  mount.reset();
  CHECK(mount.made_files() <= files);
  mount.on_core([&] { up = mount.fabric().link("h1-s")->up(); });
  CHECK(up);
  mount.check_as_new();
}

TEST_CASE("reset: every counter with a file is cleared by its owner") {
  Mount mount;
  mount.fill();
  auto counters = mount.made<CounterFile>();
  CHECK(counters.size() > 500);
  mount.on_core([&] {
    for (const auto& [path, counter] : counters) counter->counter().set(7);
  });
  mount.reset();
  mount.check_as_new();
}

TEST_CASE("reset: what a device keeps without its driver is reset") {
  Mount mount;
  const std::string pcc = "class/infiniband/h1/pcc/";
  const std::string driver = "bus/pci/drivers/mango_core/";
  const std::string address = mount.fabric().device("h1")->spec().pci;
  mount.store(pcc + "mode", "host");
  mount.store(pcc + "plugin_dir", "/tmp");
  mount.store("class/infiniband/h1/cfr/ooo_threshold", "9");
  mount.store(driver + "unbind", address);
  mount.reset();
  mount.check_as_new();
}

}  // namespace rocefs::test
