// Cards: mb_0 and mb_1 with PCC on fake backends. The engine's thread does not run: its work is
// done at once.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "core/tree/knob_transaction.h"
#include "pcc/card/pcc.h"
#include "rdma/nic/device.h"
#include "rdma/tree/files.h"
#include "rdma/tree/pci_driver.h"
#include "test/pcc/fake_backend.h"

namespace rocefs::test {

struct Cards {
  PollLoop loop;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Fabric> fabric;
  Tree tree{::geteuid(), ::getegid()};
  CallerFiles files{loop, [](const std::string&) {}};
  std::map<std::string, FakeBackend::Journal> journals;
  std::vector<std::string> log;
  std::vector<uint64_t> revoked;
  std::unique_ptr<Pcc> pcc;
  std::unique_ptr<PciDriver> driver;

  explicit Cards(OwnDirectories plugins = {}, bool mgmt = true,
                 ClockMode mode = ClockMode::kVirtual) {
    auto created = Engine::create({mode, 1}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    fabric =
        std::make_unique<Fabric>(default_topology(), 1, engine->scheduler(), engine->outstanding());
    for (auto& device : fabric->devices()) {
      REQUIRE(device->registers().open(mode));
    }
    auto make = [this](Device& device, PccBackend::Listener& listener) {
      return std::make_unique<FakeBackend>(journals[device.name()], listener);
    };
    auto noted = [this](LogLevel, const std::string& line) { log.push_back(line); };
    auto driver_noted = [this](const std::string& line) { log.push_back(line); };
    auto revoke = [this](uint64_t program) { revoked.push_back(program); };
    pcc = std::make_unique<Pcc>(Pcc::Parts{tree, *engine, *fabric, files, make, std::move(plugins),
                                           mgmt, revoke, noted, driver_noted});
    driver = std::make_unique<PciDriver>(tree, *fabric, *engine, LinkKnobs(*fabric, *engine),
                                         std::vector<DeviceExtension*>{pcc.get()});
    pcc->begin_modes();
  }

  // Runs what the engine posted to the control thread.
  void settle() {
    loop.post([this] { loop.stop(); });
    loop.run();
  }

  Device& device(const std::string& name = "mb_0") { return *fabric->device(name); }
  FakeBackend::Journal& card(const std::string& name = "mb_0") { return journals[name]; }
  // Last order of the backend.
  std::string last_order() { return card().orders.empty() ? std::string() : card().orders.back(); }

  // Paths are relative to mb_0's pcc/ unless they begin with kernel/, class/ or bus/.
  std::string path_of(const std::string& path) {
    for (const char* top : {"kernel/", "class/", "bus/"}) {
      if (path.starts_with(top)) return path;
    }
    return "class/infiniband/mb_0/pcc/" + path;
  }
  std::shared_ptr<File> file(const std::string& path) {
    Tree::Node* node = tree.follow(path_of(path));
    return node ? node->file : nullptr;
  }
  std::vector<std::string> entries(const std::string& path) {
    std::vector<std::string> names;
    Tree::Node* node = tree.follow(path_of(path));
    REQUIRE(node);
    for (Ino ino : tree.entries(node->ino)) names.push_back(tree.find(ino)->name);
    return names;
  }
  // Content without the trailing newline, or the name of the errno.
  std::string read(const std::string& path) {
    std::shared_ptr<File> found = file(path);
    return found ? read(found) : "no file";
  }
  std::string read(const std::shared_ptr<File>& found) {
    auto open = found->open(found, {});
    REQUIRE(open);
    std::string said = "no answer";
    (*open)->read(0, 1 << 26, std::make_shared<Operation>(Caller{}), [&](Result<std::string> text) {
      said = text ? *text : strerrorname_np(text.error().code);
    });
    if (said.ends_with('\n')) said.pop_back();
    return said;
  }
  // Returns "ok" or the name of the errno, with the reason in `why`; "later" for a pending answer,
  // which goes to `later`.
  std::string store(const std::string& path, const std::string& text) {
    std::shared_ptr<File> found = file(path);
    if (!found) return "no file";
    auto said = std::make_shared<std::string>("later");
    later = said;
    found->store(text + "\n", std::make_shared<Operation>(Caller{}),
                 [this, said](Result<void> result) {
                   *said = result ? "ok" : strerrorname_np(result.error().code);
                   why = result ? "" : result.error().reason;
                 });
    return *said;
  }
  std::string why;
  std::shared_ptr<std::string> later;

  // Activates a queue pair in the register pages.
  void activate(uint32_t qpn, int32_t pid = 132044, const std::string& comm = "ib_write_bw") {
    device().registers().prepare(qpn, QpOwner{pid, comm});
    device().registers().activate(qpn);
    settle();
  }
  void deactivate(uint32_t qpn) {
    device().registers().deactivate(qpn);
    settle();
  }
  rocefs_qp_signals& signals(uint32_t qpn) { return *device().registers().signals_of(qpn); }
  rocefs_qp_control& control(uint32_t qpn) {
    auto& page = *card().control->at<rocefs_control_page>(0);
    return page.qps[qpn - ROCEFS_FIRST_QPN];
  }
  void set_window(uint32_t qpn, uint32_t octets) {
    control(qpn).window = uint64_t{signals(qpn).generation} << 32 | octets;
  }
  bool cfr_acts() { return device().cfr().enabled(); }
  void bind(bool yes) {
    std::string path = std::string("bus/pci/drivers/mango_core/") + (yes ? "bind" : "unbind");
    REQUIRE(store(path, device().spec().pci) == "ok");
    settle();
  }
};

}  // namespace rocefs::test
