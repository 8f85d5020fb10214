#include "pcc/card/messages.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <limits>
#include <string>

using namespace rocefs;

namespace {

std::string said(decltype(CardAnswer::what) what) {
  return format_word(CardAnswer{17, std::move(what)});
}

}  // namespace

TEST_CASE("messages: orders are formatted as lines of words") {
  CHECK(format_order({17, CardOrder::Load{"/tmp/my plugins", false}}) ==
        "17 load /tmp/my%20plugins");
  CHECK(format_order({18, CardOrder::Load{"/tmp", true}}) == "18 load /tmp force");
  CHECK(format_order({17, CardOrder::Apply{3, std::nullopt}}) == "17 apply 3");
  CHECK(format_order({17, CardOrder::Apply{3, 25}}) == "17 apply 3 25");
  CHECK(format_order({18, CardOrder::Start{4, 60}}) == "18 start 4 60");
  CHECK(format_order({19, CardOrder::Stop{}}) == "19 stop");
  CHECK(format_order({1, CardOrder::Update{2, {{"wai", "80"}, {"g", ""}}}}) ==
        "1 update 2 wai 80 g %");
  CHECK(format_order({2, CardOrder::Debug{true}}) == "2 debug 1");
  CHECK(format_order({2, CardOrder::Read{3}}) == "2 read 3");
  CHECK(format_order({1, CardOrder::Echo{"100%\n"}}) == "1 echo 100%25%0A");
  CHECK(format_order({1, CardOrder::Dump{17}}) == "1 dump 17");
}

TEST_CASE("messages: every kind of answer parses back to itself") {
  PccLoaded loaded;
  loaded.files = {{"a b.so", "mine", ""}, {"bad.so", "", "no symbol"}, {"odd.so", "", ""}};
  loaded.files.push_back({"new.so", "newer", "", true});
  loaded.algorithms = {{3, "mine", "of mine", {{"alpha", "1"}, {"beta", "0.5"}}}, {4, "n", "", {}}};
  for (const std::string& message :
       {said(CardAnswer::Done{}), said(Error{EBUSY, "it runs"}), said(loaded), said(PccLoaded{}),
        said(loaded.algorithms[0]), said(CardAnswer::Echoed{"Hello\n"}),
        said(CardAnswer::NextRound{kNever}), format_word(CardLog{LogLevel::kWarning, "a b\n"}),
        format_word(CardDied{"in algorithm x on QP 17"})}) {
    INFO(message);
    Result<CardWord> word = parse_word(message);
    REQUIRE(word);
    CHECK(format_word(*word) == message);
  }
  auto again = std::get<PccLoaded>(std::get<CardAnswer>(*parse_word(said(loaded))).what);
  REQUIRE(again.files.size() == 4);
  CHECK(again.files[3].again);
  CHECK(again.files[0].name == "a b.so");
  CHECK(again.files[0].loaded == "mine");
  CHECK(again.files[1].reason == "no symbol");
  REQUIRE(again.algorithms.size() == 2);
  CHECK(again.algorithms[0].parameters[1].second == "0.5");
}

TEST_CASE("messages: an invalid order is refused") {
  for (const char* message : {"",
                              " ",
                              "17",
                              "17 ",
                              "apply 3",
                              "17 jump",
                              "0 stop",
                              "017 stop",
                              "+17 stop",
                              "17  stop",
                              "17 stop ",
                              "17 stop 1",
                              "17 apply",
                              "17 apply x",
                              "17 apply 03",
                              "17 apply -1",
                              "17 apply 4294967296",
                              "17 apply 3 4 5",
                              "17 start 1",
                              "17 update 3 wai",
                              "17 echo",
                              "17 echo a b",
                              "17 echo %2",
                              "17 echo %41",
                              "17 echo %0a",
                              "17 load /a\nb",
                              "17 load /a 1",
                              "17 load /a force force",
                              "17 round -5",
                              "17 debug 2",
                              "18446744073709551616 stop"}) {
    INFO(message);
    Result<CardOrder> order = parse_order(message);
    REQUIRE_FALSE(order);
    CHECK(order.error().code == EPROTO);
  }
}

TEST_CASE("messages: an algorithm with too many or too long parameters is refused") {
  auto with = [](size_t parameters, size_t octets) {
    PccAlgorithmInfo one{3, "mine", "of mine", {}};
    for (size_t i = 0; i < parameters; ++i) {
      one.parameters.emplace_back("p" + std::to_string(i), std::string(octets, '1'));
    }
    return bool{parse_word(said(one))};
  };
  CHECK(with(64, 64));
  CHECK_FALSE(with(65, 1));
  CHECK_FALSE(with(1, 65));
}

TEST_CASE("messages: an invalid answer is refused") {
  for (const char* message : {"",
                              "17",
                              "17 ok yes",
                              "17 ok\n",
                              "17 error",
                              "17 error 0 x",
                              "17 error -5 x",
                              "17 error 5",
                              "17 error 41 x",   // no such errno
                              "17 error 512 x",  // kernel-internal errno
                              "17 error 4096 x",
                              "17 parameters 16 a b",
                              "17 parameters 4294967295 a b",
                              "17 parameters 3 % b",
                              "17 parameters 3 none b",
                              "17 parameters 3 ../a b",
                              "17 parameters 3 a b c/d 1",
                              "17 parameters 3 a b .. 1",
                              "17 parameters 3 a b c 1 c 2",
                              "17 parameters 3 a b c 1%0A2",
                              "17 algorithms\nloaded a.so ../b",
                              "17 algorithms\nalgorithm 3 a x\nalgorithm 3 b x",
                              "17 algorithms\nalgorithm 3 a x\nalgorithm 4 a x",
                              "17 algorithms\n",
                              "17 algorithms\nloaded a",
                              "17 algorithms\nloaded a %",
                              "17 algorithms\nalgorithm 3 a",
                              "17 due x",
                              "17 due -1",
                              "17 algorithms\nalgorithm 3 a b c",
                              "17 algorithms\nalgorithm 3 a b\nloaded f g",
                              "log 4 x",
                              "log 1",
                              "log1 x",
                              "died",
                              "0 ok"}) {
    INFO(message);
    CHECK_FALSE(parse_word(message));
  }
}
