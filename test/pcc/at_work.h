// Algorithms under the virtual clock, called at their due times as in an engine.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pcc/algorithms/built_ins.h"
#include "pcc/run/controller.h"
#include "test/rdma/congested.h"
#include "test/rdma/star.h"

namespace rocefs::test {

using Parameters = std::initializer_list<std::pair<const char*, const char*>>;

// Runs one algorithm for all queue pairs of a device.
class AtWork final : public WindowController {
 public:
  AtWork(World& world, Device& device, const char* algorithm, Parameters parameters = {},
         uint64_t seed = 1)
      : world_(world),
        device_(device),
        controller_(seed, [](mango_log_level_e, std::string_view) {}),
        event_(event_of<&AtWork::on_time>(this)) {
    add_built_ins(controller_);
    slot_ = *controller_.find(algorithm);
    update(parameters);
    REQUIRE(controller_.apply(slot_) == MANGO_STATUS_OK);
    auto taken = device.registers().take(*this);
    REQUIRE(taken);
    page_ = *taken;
    REQUIRE(controller_.begin(device.registers().signals()->at<rocefs_signals_page>(0),
                              page_->at<rocefs_control_page>(0), 1) == MANGO_STATUS_OK);
    device.registers().on_change([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired() && controller_.running()) world_.scheduler.after(event_, 0);
    });
    world_.scheduler.after(event_, 0);
  }
  ~AtWork() override { stop(); }

  void windows_lost(Device&) override { controller_.end(); }
  void stop() {
    if (!controller_.running()) return;
    controller_.end();
    world_.scheduler.cancel(event_);
    device_.registers().give_back(*this);
  }
  void update(Parameters parameters) {
    std::vector<PccController::Change> changes;
    for (auto [name, value] : parameters) changes.push_back({name, value});
    REQUIRE(controller_.update(slot_, changes));
  }
  PccController& controller() { return controller_; }
  rocefs_qp_control& line(uint32_t qpn) {
    return page_->at<rocefs_control_page>(0)->qps[qpn - ROCEFS_FIRST_QPN];
  }
  uint32_t window(uint32_t qpn) { return static_cast<uint32_t>(line(qpn).window); }
  const rocefs_control_page& page() { return *page_->at<rocefs_control_page>(0); }

 private:
  void on_time(TimeNs now) {
    TimeNs next = controller_.poll(0, now);
    if (next != kNever) world_.scheduler.at(event_, next);
  }

  World& world_;
  Device& device_;
  PccController controller_;
  unsigned slot_ = 0;
  std::shared_ptr<SharedMemory> page_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Event event_;
};

// Queue pairs with a line in the register pages, in order.
inline std::vector<uint32_t> active_qps(Device& device) {
  std::vector<uint32_t> qpns;
  for (uint32_t qpn = ROCEFS_FIRST_QPN; qpn < ROCEFS_FIRST_QPN + ROCEFS_MAX_QPS; ++qpn) {
    if (device.registers().signals_of(qpn)->generation % 2 != 0) qpns.push_back(qpn);
  }
  return qpns;
}

// Incast: endless WRITE flows from hosts to one receiver, the last host.
struct Incast {
  struct Shape {
    unsigned hosts = 2;  // senders
    unsigned flows = 2;  // total, spread over the senders
    uint64_t rate_bps = 10'000'000'000;
    uint32_t mtu = 4096;
  };
  Shape shape;
  Star star;
  std::vector<std::unique_ptr<RunningFlow>> flows;
  double idle_rtt_ns = 0;
  explicit Incast(const Shape& wanted, uint64_t seed = 1)
      : shape(wanted), star(wanted.hosts + 1, wanted.rate_bps, seed) {
    for (auto& device : star.fabric.devices()) {
      set_ecn(device->port(), {{"roce_np/min_time_between_cnps", "0"}});
    }
    measure_idle();
  }
  Device& sender(unsigned index) {
    return star.device(fmt::format("h{}", index % shape.hosts + 1));
  }
  Device& receiver() { return star.device(fmt::format("h{}", shape.hosts + 1)); }
  FlowSpec spec(unsigned index) {
    FlowSpec spec = RunningFlow::spec_of(fmt::format("f{}", index).c_str(), FlowOp::kWrite,
                                         sender(index).name().c_str(), receiver().name().c_str());
    spec.mtu = shape.mtu;
    spec.size = 64 * 1024;
    spec.window = 8192;
    spec.verify = false;
    return spec;
  }
  void start(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      flows.push_back(
          std::make_unique<RunningFlow>(star, spec(static_cast<unsigned>(flows.size()))));
    }
  }
  void start() { start(shape.flows); }
  void run(TimeNs duration) { star.scheduler.run_until(star.scheduler.now() + duration); }
  void stop() {
    for (auto& flow : flows) flow->flow.stop();
  }
  ~Incast() { stop(); }

  uint64_t queue() { return star.queue(shape.hosts + 1).bytes.get(); }
  double payload_bps() const {
    return static_cast<double>(shape.rate_bps) * shape.mtu / (shape.mtu + 20.0 + 8 + 12 + 4 + 38);
  }

 private:
  // Measures the round trip of a packet without queueing.
  void measure_idle() {
    FlowSpec one = spec(0);
    one.size = shape.mtu;
    one.count = 1;
    WindowTaker taker;
    REQUIRE(taker.take(sender(0)));
    RunningFlow flow(star, one);
    run(kMillisecond);
    REQUIRE(flow.state == "done");
    idle_rtt_ns = static_cast<double>(sender(0).registers().usual_rtt() - 16 * kMicrosecond) * 8 +
                  16 * kMicrosecond;
    sender(0).registers().give_back(taker);
  }
};

}  // namespace rocefs::test
