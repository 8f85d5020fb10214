// Program that sets the windows of a device for some seconds, with poller threads of its own. Build
// it against a build tree and run it:
//
//   c++ -std=c++17 -Ibuild/include tools/examples/own_pollers.cc -o /tmp/own -Lbuild/lib -lmango
//   LD_LIBRARY_PATH=build/lib ROCEFS_MOUNT=/tmp/nic /tmp/own mb_0 10
#include <libmango.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Parameters {
  double keep;
  unsigned int add;
};
constexpr Parameters kInitial{0.5, 100};

void algorithm(void* block) {
  const auto& parameters = *static_cast<Parameters*>(block);
  unsigned int window = mango_pcc_window_current();
  unsigned int cnps = mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP);
  unsigned int next =
      cnps > 0 ? static_cast<unsigned int>(window * parameters.keep) : window + parameters.add;
  mango_pcc_window_update(next < 1024 ? 1024 : next);
}

void check(mango_status_e status, const char* what) {
  if (status == MANGO_STATUS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, mango_status_str(status));
  std::exit(1);
}

void show(mango_pcc_h pcc) {
  std::vector<uint32_t> qps(MANGO_PCC_MAX_QPS);
  uint32_t count = 0;
  check(mango_pcc_active_qp_list(pcc, qps.data(), &count), "active QPs");
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t window = 0, calls = 0;
    uint64_t cnps = 0;
    // A queue pair may be destroyed between the two calls.
    if (mango_pcc_window_current_by_qp(pcc, qps[i], &window) != MANGO_STATUS_OK) continue;
    mango_pcc_window_count_by_qp(pcc, qps[i], &calls);
    mango_pcc_cnp_count_by_qp(pcc, qps[i], &cnps);
    std::printf("QP %u: window %u, set %u times, %llu CNPs\n", qps[i], window, calls,
                static_cast<unsigned long long>(cnps));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* device = argc > 1 ? argv[1] : "mb_0";
  int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  mango_pcc_h pcc;
  check(mango_pcc_create(device, &pcc), device);
  mango_pcc_config_t config{};
  config.option = MANGO_PCC_CONFIG_INTERVAL;
  config.value.interval_us = 60;
  check(mango_pcc_ctrl_config(pcc, &config), "interval");
  check(mango_pcc_ctrl_reg_algo(pcc, 1, algorithm, &kInitial, sizeof kInitial), "algorithm");
  check(mango_pcc_ctrl_run(pcc, 2), "run");
  for (int i = 0; i < seconds; ++i) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    show(pcc);
  }
  check(mango_pcc_ctrl_stop(pcc), "stop");
  check(mango_pcc_destroy(pcc), "destroy");
  return 0;
}
