// Parameters of a slot and of each queue pair that runs it.
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>

#include "pcc/run/call.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Changes = std::vector<PccController::Change>;
constexpr TimeNs kInterval = PccWorld::kInterval;

std::string value(PccController& controller, const char* name) {
  Result<std::string> value = controller.value(0, name);
  REQUIRE(value);
  return *value;
}

struct Walked {
  std::vector<std::string> names;
  std::vector<uint32_t> numbers;
  uint32_t set = 0;
};

void walk_row(const char* name, mango_pcc_param_type_e type, void* at, void* user_data) {
  auto& walked = *static_cast<Walked*>(user_data);
  walked.names.push_back(name);
  if (type != MANGO_PCC_PARAM_TYPE_UINT32) return;
  auto& number = *static_cast<uint32_t*>(at);
  walked.numbers.push_back(number);
  if (walked.set) number = walked.set;
}

}  // namespace

TEST_CASE(
    "parameters: an update takes effect at the next call of each queue pair, and keeps the rest") {
  PccWorld world;
  std::map<uint32_t, std::vector<uint64_t>> seen;
  std::function<void(PccScript&)> look = [&](PccScript& script) {
    seen[PccCall::current()->qpn()] = {script.number, ++script.kept};
  };
  world.controller.add(0, scripted("a", look));
  for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(3 * kInterval);
  Changes changes = {{"number", "0x10"}, {"fraction", "0.25"}};
  REQUIRE(world.controller.update(0, changes));
  CHECK(world.calls(17) == 0);
  world.run(4 * kInterval);
  CHECK(seen[17] == std::vector<uint64_t>{16, 4});
  CHECK(seen[18] == std::vector<uint64_t>{16, 4});
  world.pages.activate(19);
  world.run(6 * kInterval);
  CHECK(seen[19] == std::vector<uint64_t>{16, 2});
  CHECK(value(world.controller, "number") == "16");
  CHECK(value(world.controller, "fraction") == "0.25");
}

TEST_CASE("parameters: an update is all or nothing, and a refusal gives the reason") {
  PccWorld world;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  world.controller.add(0, scripted("a", nothing));
  struct Row {
    Changes changes;
    int code;
    const char* reason;
  };
  for (const Row& row : std::initializer_list<Row>{
           {{{"number", "5"}, {"other", "1"}}, ENOENT, "a has no parameter other"},
           {{{"number", "5"}, {"fraction", "x"}}, EINVAL, "fraction: 'x' is not a number"},
           {{{"number", "5"}, {"number", "4294967296"}},
            EINVAL,
            "number: '4294967296' is outside 0 to 4294967295"},
           {{{"kept", "5"}}, ENOENT, "a has no parameter kept"}}) {
    Result<void> result = world.controller.update(0, row.changes);
    REQUIRE(!result);
    CHECK(result.error().code == row.code);
    CHECK(result.error().reason == row.reason);
    CHECK(value(world.controller, "number") == "0");
  }
  CHECK(world.controller.update(3, {}).error().code == ENOENT);
  CHECK(world.controller.value(3, "number").error().code == ENOENT);
  CHECK(world.controller.value(0, "kept").error().code == ENOENT);
}

TEST_CASE("parameters: a walk reads the first queue pair, or writes all, including later ones") {
  PccWorld world;
  std::map<uint32_t, uint32_t> seen;
  std::function<void(PccScript&)> look = [&](PccScript& script) {
    seen[PccCall::current()->qpn()] = script.number;
  };
  world.controller.add(0, scripted("a", look));
  // No run: the initial block.
  Walked nobody;
  nobody.set = 3;
  CHECK(world.controller.walk(0, walk_row, &nobody, 0) == MANGO_STATUS_OK);
  CHECK(nobody.names == std::vector<std::string>{"number", "fraction"});
  CHECK(nobody.numbers == std::vector<uint32_t>{0});
  CHECK(value(world.controller, "number") == "0");

  for (uint32_t qpn : {17u, 18u, 19u}) world.pages.activate(qpn);
  REQUIRE(world.begin(2) == MANGO_STATUS_OK);
  Walked write;
  write.set = 8;
  CHECK(world.controller.walk(0, walk_row, &write, 1) == MANGO_STATUS_OK);
  CHECK(write.numbers == std::vector<uint32_t>{0, 0, 0, 0});
  for (unsigned mode : {0u, 2u, 0xffffffffu}) {
    Walked read;
    read.set = 9;
    CHECK(world.controller.walk(0, walk_row, &read, mode) == MANGO_STATUS_OK);
    CHECK(read.numbers == std::vector<uint32_t>{8});
  }
  world.pages.activate(20);
  for (unsigned poller : {0u, 1u}) world.controller.poll(poller, 0);
  for (unsigned poller : {0u, 1u}) world.controller.poll(poller, kInterval);
  CHECK(seen == std::map<uint32_t, uint32_t>{{17, 8}, {18, 8}, {19, 8}, {20, 8}});

  CHECK(world.controller.walk(1, walk_row, &write, 1) == MANGO_STATUS_NOT_FOUND);
  CHECK(world.controller.walk(16, walk_row, &write, 1) == MANGO_STATUS_INVALID_PARAM);
  CHECK(world.controller.walk(0, nullptr, &write, 1) == MANGO_STATUS_INVALID_PARAM);
}

TEST_CASE("parameters: a callback of a walk may not call back into the controller") {
  PccWorld world;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  world.controller.add(0, scripted("a", nothing));
  auto again = [](const char*, mango_pcc_param_type_e, void*, void* user_data) {
    auto& controller = *static_cast<PccController*>(user_data);
    CHECK(controller.apply(0) == MANGO_STATUS_BAD_STATE);
  };
  CHECK(world.controller.walk(0, again, &world.controller, 1) == MANGO_STATUS_OK);
  CHECK(world.controller.apply(0) == MANGO_STATUS_OK);
}

TEST_CASE("parameters: a parameter is registered once, within the block, with a valid file name") {
  PccWorld world;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  PccAlgorithm algorithm = scripted("a", nothing);
  size_t size = algorithm.initial.size();
  world.controller.add(0, std::move(algorithm));
  auto add = [&](std::string name, mango_pcc_param_type_e type, size_t offset) {
    return world.controller.add_parameter(0, {std::move(name), type, offset});
  };
  constexpr auto u32 = MANGO_PCC_PARAM_TYPE_UINT32, u64 = MANGO_PCC_PARAM_TYPE_UINT64;
  CHECK(add("number", u64, 0) == MANGO_STATUS_ALREADY_OPENED);
  CHECK(world.controller.algorithm(0)->parameters[0].type == u32);
  CHECK(add("last", u32, size - 4) == MANGO_STATUS_OK);
  CHECK(add("past", u32, size - 3) == MANGO_STATUS_INVALID_PARAM);
  CHECK(add("past", u64, size - 4) == MANGO_STATUS_INVALID_PARAM);
  CHECK(add("past", u32, SIZE_MAX) == MANGO_STATUS_INVALID_PARAM);
  CHECK(add("type", static_cast<mango_pcc_param_type_e>(7), 0) == MANGO_STATUS_INVALID_PARAM);
  for (const char* name : {"", "a b", "a/b", ".hidden", "a=b"}) {
    INFO(name);
    CHECK(add(name, u32, 0) == MANGO_STATUS_INVALID_PARAM);
  }
  CHECK(world.controller.add_parameter(1, {"x", u32, 0}) == MANGO_STATUS_NOT_FOUND);
  CHECK(world.controller.add_parameter(16, {"x", u32, 0}) == MANGO_STATUS_INVALID_PARAM);
  for (int i = 3; i < MANGO_PCC_MAX_PARAMS; ++i) {
    CHECK(add("p" + std::to_string(i), u32, 0) == MANGO_STATUS_OK);
  }
  CHECK(add("one_more", u32, 0) == MANGO_STATUS_LIMIT);
}

TEST_CASE("parameters: those of built-in algorithms have ranges, and a minimum below its maximum") {
  PccWorld world;
  add_built_ins(world.controller);
  auto slot_of = [&](std::string_view name) {
    for (unsigned slot = 0; slot < kBuiltIns; ++slot) {
      if (world.controller.algorithm(slot)->name == name) return slot;
    }
    return kBuiltIns;
  };
  struct Row {
    const char* algorithm;
    Changes changes;
    int code;
    const char* reason;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"dcqcn", {{"g", "2"}}, EINVAL, "g: 2 is outside 0 to 1"},
           {"dcqcn", {{"g", "-0.5"}}, EINVAL, "g: -0.5 is outside 0 to 1"},
           {"dcqcn", {{"g", "1"}}, 0, ""},
           {"dcqcn", {{"wai", "5"}, {"mode", "7"}}, EINVAL, "mode: 7 is outside 0 to 1"},
           {"dcqcn",
            {{"wai", "5"}, {"min_window", "0x80001"}},
            EINVAL,
            "min_window 524289 is above max_window 524288"},
           {"dcqcn", {{"max_window", "4095"}}, EINVAL, "min_window 4096 is above max_window 4095"},
           {"dcqcn", {{"max_window", "0"}, {"min_window", "0"}}, 0, ""},
           {"dcqcn", {{"min_window", "600000"}, {"max_window", "600000"}}, 0, ""},
           {"aimd", {{"beta", "1.5"}}, EINVAL, "beta: 1.5 is outside 0 to 1"},
           {"rttvegas", {{"d_factor", "1.01"}}, EINVAL, "d_factor: 1.01 is outside 0 to 1"},
           {"rttvegas", {{"alpha", "16385"}}, EINVAL, "alpha 16385 is above beta 16384"},
           {"rttvegas", {{"max_window", "1"}}, EINVAL, "min_window 4096 is above max_window 1"}}) {
    INFO(row.algorithm << " " << row.changes[0].name << "=" << row.changes[0].value);
    Result<void> result = world.controller.update(slot_of(row.algorithm), row.changes);
    CHECK((result ? 0 : result.error().code) == row.code);
    CHECK((result ? "" : result.error().reason) == row.reason);
  }
  CHECK(*world.controller.value(slot_of("dcqcn"), "wai") == "80");
}

TEST_CASE("controller: a dump has parameters by name, and the rest of the block") {
  PccWorld world;
  std::function<void(PccScript&)> act = [](PccScript& script) { script.kept = 0x0102; };
  world.controller.add(0, scripted("holder", act));
  CHECK(world.controller.dump(17).error().code == ENOENT);
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(PccWorld::kInterval);
  Result<std::string> text = world.controller.dump(17);
  REQUIRE(text);
  CHECK(text->starts_with("QP 17 holder\n  number=0\n  fraction=0\n  "));
  CHECK(text->find(" of 40 octets are no parameters\n") != std::string::npos);
  CHECK(text->find("\n  0x0014: 00 00 00 00\n") != std::string::npos);
  CHECK(text->ends_with("\n  0x0020: 02 01 00 00 00 00 00 00"));
  CHECK(world.controller.dump(18).error().code == ENOENT);
}
