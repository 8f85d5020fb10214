// Statuses of the functions of libmango.h that take a handle.
#include <catch2/catch.hpp>
#include <thread>

#include "core/base/clock.h"
#include "test/pcc/fake_session.h"

using namespace rocefs;
using namespace rocefs::test;

extern "C" int c_program(mango_pcc_h pcc);

namespace {

struct Counts {
  uint32_t number = 0;
  std::atomic<unsigned>* calls = nullptr;
};

void count_call(void* block) {
  ++*static_cast<Counts*>(block)->calls;
}

mango_pcc_result_t no_change(void*, const mango_pcc_context_t* context) {
  return keep_window(*context);
}

// Waits for another thread's effect.
template <class Condition>
void wait_until(Condition condition) {
  TimeNs limit = monotonic_ns() + 20 * kSecond;
  while (!condition()) {
    REQUIRE(monotonic_ns() < limit);
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("libmango: a C program can use all of the API") {
  FakeHandle fake;
  fake.state.pages.activate(17);
  CHECK(c_program(fake.pcc) == 0);
}

TEST_CASE("libmango: a NULL argument is refused") {
  FakeHandle fake;
  mango_pcc_h pcc = fake.pcc;
  mango_pcc_config_t config{};
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  auto walk = [](const char*, mango_pcc_param_type_e, void*, void*) {};
  constexpr auto type = MANGO_PCC_PARAM_TYPE_UINT32;
  for (mango_status_e status : {mango_pcc_destroy(nullptr),
                                mango_pcc_ctrl_config(nullptr, &config),
                                mango_pcc_ctrl_config(pcc, nullptr),
                                mango_pcc_ctrl_reg_algo(nullptr, 0, count_call, nullptr, 0),
                                mango_pcc_ctrl_reg_algo(pcc, 0, nullptr, nullptr, 0),
                                mango_pcc_ctrl_reg_algo(pcc, 0, count_call, nullptr, 1),
                                mango_pcc_ctrl_reg_algo(pcc, 16, count_call, nullptr, 0),
                                mango_pcc_ctrl_reg_algo_event(nullptr, 0, no_change, 0, nullptr, 0),
                                mango_pcc_ctrl_reg_algo_event(pcc, 0, nullptr, 0, nullptr, 0),
                                mango_pcc_ctrl_reg_algo_event(pcc, 0, no_change, 4, nullptr, 0),
                                mango_pcc_ctrl_unreg_algo(nullptr, 0),
                                mango_pcc_ctrl_unreg_algo(pcc, 16),
                                mango_pcc_ctrl_apply_algo(nullptr, 0, nullptr, 0),
                                mango_pcc_ctrl_apply_algo(pcc, 16, nullptr, 0),
                                mango_pcc_ctrl_run(nullptr, 1),
                                mango_pcc_ctrl_run(pcc, 0),
                                mango_pcc_ctrl_run(pcc, 65),
                                mango_pcc_ctrl_stop(nullptr),
                                mango_pcc_param_register(nullptr, 0, "a", type, 0),
                                mango_pcc_param_register(pcc, 0, nullptr, type, 0),
                                mango_pcc_params_register(nullptr, 0, nullptr, 0),
                                mango_pcc_params_register(pcc, 0, nullptr, 1),
                                mango_pcc_walk_params(nullptr, 0, walk, nullptr, 0),
                                mango_pcc_walk_params(pcc, 0, nullptr, nullptr, 0),
                                mango_pcc_active_qp_list(nullptr, &u32, &u32),
                                mango_pcc_active_qp_list(pcc, nullptr, &u32),
                                mango_pcc_active_qp_list(pcc, &u32, nullptr),
                                mango_pcc_cnp_count_by_qp(nullptr, 17, &u64),
                                mango_pcc_cnp_count_by_qp(pcc, 17, nullptr),
                                mango_pcc_window_current_by_qp(nullptr, 17, &u32),
                                mango_pcc_window_current_by_qp(pcc, 17, nullptr),
                                mango_pcc_window_count_by_qp(nullptr, 17, &u32),
                                mango_pcc_window_count_by_qp(pcc, 17, nullptr)}) {
    CHECK(status == MANGO_STATUS_INVALID_PARAM);
  }
  CHECK(mango_pcc_get_context(nullptr) == nullptr);
  CHECK(mango_pcc_get_context(pcc) != nullptr);
  CHECK(mango_pcc_get_context(pcc) == mango_pcc_get_context(pcc));
}

TEST_CASE("libmango: the interval is 1 us to 1 s") {
  FakeHandle fake;
  mango_pcc_config_t config{};
  config.option = MANGO_PCC_CONFIG_INTERVAL;
  for (auto [interval_us, status] :
       std::vector<std::pair<unsigned, mango_status_e>>{{0, MANGO_STATUS_INVALID_PARAM},
                                                        {1, MANGO_STATUS_OK},
                                                        {1'000'000, MANGO_STATUS_OK},
                                                        {1'000'001, MANGO_STATUS_INVALID_PARAM}}) {
    config.value.interval_us = interval_us;
    CHECK(mango_pcc_ctrl_config(fake.pcc, &config) == status);
  }
  CHECK(fake.handle().controller().interval() == kSecond);
  config.option = static_cast<mango_pcc_config_option_e>(1);
  config.value.interval_us = 1;
  CHECK(mango_pcc_ctrl_config(fake.pcc, &config) == MANGO_STATUS_INVALID_PARAM);
}

TEST_CASE("libmango: the valid parameters of an array are registered") {
  FakeHandle fake;
  Counts counts;
  mango_pcc_h pcc = fake.pcc;
  REQUIRE(mango_pcc_ctrl_reg_algo(pcc, 0, count_call, &counts, sizeof counts) == MANGO_STATUS_OK);
  constexpr auto type = MANGO_PCC_PARAM_TYPE_UINT32;
  mango_pcc_param_t array[] = {
      {"a", type, 0}, {"a", type, 4}, {"b", type, 0}, {"c", type, 999}, {"d", type, 0}};
  auto names = [&] {
    std::string all;
    auto add = [](const char* name, mango_pcc_param_type_e, void*, void* text) {
      *static_cast<std::string*>(text) += name;
    };
    CHECK(mango_pcc_walk_params(pcc, 0, add, &all, 0) == MANGO_STATUS_OK);
    return all;
  };
  CHECK(mango_pcc_params_register(pcc, 0, array, 3) == MANGO_STATUS_ALREADY_OPENED);
  CHECK(names() == "ab");
  CHECK(mango_pcc_params_register(pcc, 0, array, 5) == MANGO_STATUS_INVALID_PARAM);
  CHECK(names() == "abd");
  CHECK(mango_pcc_params_register(pcc, 0, nullptr, 0) == MANGO_STATUS_OK);
  CHECK(mango_pcc_params_register(pcc, 1, array, 1) == MANGO_STATUS_NOT_FOUND);
}

TEST_CASE("libmango: run takes the windows, and stop gives them back") {
  FakeHandle fake;
  mango_pcc_h pcc = fake.pcc;
  std::atomic<unsigned> calls{0};
  Counts counts{.calls = &calls};
  CHECK(mango_pcc_ctrl_stop(pcc) == MANGO_STATUS_NOT_OPENED);
  CHECK(mango_pcc_ctrl_run(pcc, 1) == MANGO_STATUS_BAD_STATE);
  CHECK(fake.state.runs == 0);
  REQUIRE(mango_pcc_ctrl_reg_algo(pcc, 3, count_call, &counts, sizeof counts) == MANGO_STATUS_OK);
  fake.state.answer = MANGO_STATUS_NO_DEVICE;
  CHECK(mango_pcc_ctrl_run(pcc, 1) == MANGO_STATUS_NO_DEVICE);
  fake.state.answer = MANGO_STATUS_OK;
  fake.state.pages.signals->version = 99;
  CHECK(mango_pcc_ctrl_run(pcc, 1) == MANGO_STATUS_NOT_SUPPORTED);
  CHECK(!fake.state.taken);
  fake.state.pages.signals->version = ROCEFS_REGISTERS_VERSION;
  for (unsigned threads : {1u, 4u, 64u}) {
    CHECK(mango_pcc_ctrl_run(pcc, threads) == MANGO_STATUS_OK);
    CHECK(mango_pcc_ctrl_run(pcc, threads) == MANGO_STATUS_BUSY);
    CHECK(fake.state.taken);
    // Activation while all pollers sleep.
    fake.state.pages.activate(17);
    unsigned before = calls;
    wait_until([&] { return calls > before; });
    fake.state.pages.deactivate(17);
    CHECK(mango_pcc_ctrl_stop(pcc) == MANGO_STATUS_OK);
    CHECK(!fake.state.taken);
    before = calls;
    CHECK(mango_pcc_ctrl_stop(pcc) == MANGO_STATUS_NOT_OPENED);
    CHECK(calls == before);
  }
  CHECK(mango_pcc_ctrl_run(pcc, 1) == MANGO_STATUS_OK);
  CHECK(mango_pcc_destroy(std::exchange(fake.pcc, nullptr)) == MANGO_STATUS_OK);
  CHECK(!fake.state.taken);
}

TEST_CASE("libmango: every function may be called during a run") {
  FakeHandle fake;
  mango_pcc_h pcc = fake.pcc;
  std::atomic<unsigned> calls{0};
  Counts counts{.calls = &calls};
  REQUIRE(mango_pcc_ctrl_reg_algo(pcc, 0, count_call, &counts, sizeof counts) == MANGO_STATUS_OK);
  REQUIRE(mango_pcc_param_register(pcc, 0, "number", MANGO_PCC_PARAM_TYPE_UINT32, 0) ==
          MANGO_STATUS_OK);
  for (uint32_t qpn = 17; qpn < 81; ++qpn) fake.state.pages.activate(qpn);
  mango_pcc_config_t config{};
  config.value.interval_us = 1;  // pollers are always late
  REQUIRE(mango_pcc_ctrl_config(pcc, &config) == MANGO_STATUS_OK);
  REQUIRE(mango_pcc_ctrl_run(pcc, 2) == MANGO_STATUS_OK);
  std::vector<uint32_t> list(MANGO_PCC_MAX_QPS);
  auto set = [](const char*, mango_pcc_param_type_e, void* at, void* number) {
    std::memcpy(at, number, 4);
  };
  for (uint32_t i = 1; i <= 100; ++i) {
    uint32_t count = 0;
    CHECK(mango_pcc_ctrl_reg_algo_event(pcc, 1, no_change, 0, nullptr, 0) == MANGO_STATUS_OK);
    CHECK(mango_pcc_ctrl_apply_algo(pcc, i % 2, nullptr, 0) == MANGO_STATUS_OK);
    CHECK(mango_pcc_ctrl_apply_algo(pcc, 0, nullptr, 0) == MANGO_STATUS_OK);
    CHECK(mango_pcc_walk_params(pcc, 0, set, &i, 1) == MANGO_STATUS_OK);
    CHECK(mango_pcc_active_qp_list(pcc, list.data(), &count) == MANGO_STATUS_OK);
    CHECK(count == 64);
    CHECK(fake.handle().controller().value(0, "number").value() == std::to_string(i));
    CHECK(mango_pcc_ctrl_unreg_algo(pcc, 1) == MANGO_STATUS_OK);
    CHECK(mango_pcc_ctrl_unreg_algo(pcc, 0) == MANGO_STATUS_BUSY);
    unsigned before = calls;
    wait_until([&] { return calls > before; });
  }
  CHECK(mango_pcc_ctrl_stop(pcc) == MANGO_STATUS_OK);
}

TEST_CASE("libmango: an algorithm cannot end its own run") {
  FakeHandle fake;
  struct Ends {
    mango_pcc_h pcc;
    std::atomic<int>* status;
  };
  std::atomic<int> status{0};
  Ends ends{fake.pcc, &status};
  auto algorithm = [](void* block) {
    auto& own = *static_cast<Ends*>(block);
    if (mango_pcc_ctrl_run(own.pcc, 1) != MANGO_STATUS_BAD_STATE) return;
    if (mango_pcc_destroy(own.pcc) != MANGO_STATUS_BAD_STATE) return;
    *own.status = mango_pcc_ctrl_stop(own.pcc);
  };
  fake.state.pages.activate(17);
  REQUIRE(mango_pcc_ctrl_reg_algo(fake.pcc, 0, algorithm, &ends, sizeof ends) == MANGO_STATUS_OK);
  REQUIRE(mango_pcc_ctrl_run(fake.pcc, 1) == MANGO_STATUS_OK);
  wait_until([&] { return status != 0; });
  CHECK(status == MANGO_STATUS_BAD_STATE);
  CHECK(mango_pcc_ctrl_stop(fake.pcc) == MANGO_STATUS_OK);
}

TEST_CASE("libmango: engine time advances at the dilation of the page") {
  PccPages pages;
  pages.signals->base_ns = 5'000;
  pages.signals->since_ns = static_cast<uint64_t>(monotonic_ns()) - 4'000'000'000;
  pages.signals->dilation = 400;
  TimeNs now = engine_now(*pages.signals);
  CHECK(now >= 10'005'000);
  CHECK(now < 60'000'000);
}

TEST_CASE("libmango: each status has a text") {
  for (int status = 0; status >= -15; --status) {
    std::string_view words = mango_status_str(static_cast<mango_status_e>(status));
    CHECK(words != "unknown status");
    CHECK(!words.empty());
  }
  CHECK(mango_status_str(static_cast<mango_status_e>(-16)) == std::string("unknown status"));
}
