// Picture: looks at many files, and the messages of them.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/picture/message.h"
#include "tools/picture/recording.h"
#include "tools/picture/shape.h"

using namespace rocefs;

TEST_CASE("message: any octets become a JSON string") {
  CHECK(json_string("a\"\\\n\x01") == "\"a\\\"\\\\\\n\\u0001\"");
  CHECK(json_string("\xff") == "\"\xef\xbf\xbd\"");
}

TEST_CASE("looks: a text as it was before get escaped it") {
  CHECK(unescaped("one\\ntwo\\\\") == "one\ntwo\\");
  CHECK(unescaped("\\") == "\\");
  CHECK(unescaped("").empty());
}

TEST_CASE("looks: what the stars of a pattern stand for") {
  CHECK(stars_of("a/*/c/*", "a/b/c/d") == std::vector<std::string_view>{"b", "d"});
  CHECK(stars_of("a", "a")->empty());
  CHECK_FALSE(stars_of("a/*", "a"));
  CHECK_FALSE(stars_of("a/*", "a/b/c"));
  CHECK_FALSE(stars_of("a/*/c", "a/b/d"));
}

TEST_CASE("message: the new lines of a log, also when it has dropped old ones") {
  CHECK(new_lines("", "one\n") == "one\n");
  CHECK(new_lines("one\n", "one\ntwo\n") == "two\n");
  CHECK(new_lines("one\ntwo\n", "two\nthree\n") == "three\n");
  CHECK(new_lines("one\ntwo\n", "two\n").empty());
  CHECK(new_lines("one\n", "two\nthree\n") == "two\nthree\n");
}

TEST_CASE("looks: the texts that have changed, and other files") {
  Looks looks;
  looks.begin() = "a=1\nb=2\n";
  looks.take();
  CHECK(looks.other_files());
  CHECK(whole_group(0, looks) == R"({"g":0,"paths":["a","b"],"values":["1","2"]})");
  looks.begin() = "a=1\nb=x\\ny\n";
  looks.take();
  CHECK_FALSE(looks.other_files());
  CHECK(changes_of_group(0, looks) == R"({"g":0,"c":[1,"x\ny"]})");
  looks.begin() = "half a";  // a look that failed
  CHECK(looks.lines()[1].text == "x\\ny");
  looks.begin() = "b=2\n";
  looks.take();
  CHECK(looks.other_files());
}

TEST_CASE("message: parts that are empty are left out") {
  CHECK(MessageContent{"{}", "", ""}.message("", "") == R"({"groups":[{}]})");
  CHECK(MessageContent{"", "\"d\"", "\"s\""}.message("7", "gone") ==
        R"({"wall":7,"groups":[],"dmesg":["d"],"stores":["s"],"gone":"gone"})");
}

TEST_CASE("shape: cables of switches and devices, and their ports") {
  NetworkNames names{{"sw_0", "sw_1"},
                     {"h0", "h1"},
                     {"h0-sw_0", "sw_0-h0", "sw_0-sw_1", "sw_1-sw_0", "h1-h0.2", "h0.2-h1"}};
  const std::vector<Looks::Line> ports = {{"kernel/debug/rocefs/fabric/sw_0/ports/1/link", "h0"},
                                          {"kernel/debug/rocefs/fabric/sw_0/ports/2/link", "sw_1"},
                                          {"kernel/debug/rocefs/fabric/sw_1/ports/1/link", "sw_0"}};
  const Shape shape = shape_of(std::move(names), ports);
  REQUIRE(shape.nodes.size() == 4);
  REQUIRE(shape.cables.size() == 3);
  CHECK(shape.cables[0].out == "sw_0-h0");
  CHECK((shape.cables[1].a_port == 2 && shape.cables[1].b_port == 1));
  CHECK((shape.nodes[shape.cables[2].a].name == "h0" && shape.cables[2].a_port == 2));
}

namespace {

// Knowledge of a reader after all messages: the texts of group 0, and all lines.
std::string effect(const std::vector<std::string>& messages) {
  nlohmann::json values, lines = nlohmann::json::array();
  for (const std::string& message : messages) {
    const nlohmann::json one = nlohmann::json::parse(message);
    for (const nlohmann::json& group : one["groups"]) {
      if (group.contains("values")) {
        values = group["values"];
        continue;
      }
      const nlohmann::json& changes = group["c"];
      for (size_t i = 0; i < changes.size(); i += 2) {
        values[changes[i].get<size_t>()] = changes[i + 1];
      }
    }
    for (const nlohmann::json& line : one.value("dmesg", nlohmann::json::array())) {
      lines.push_back(line);
    }
  }
  return values.dump() + lines.dump();
}

}  // namespace

TEST_CASE("recording: a shorter one has the same effect") {
  std::string text = recording_head(R"({"nodes":[],"cables":[]})") + "\n";
  text += R"({"groups":[{"g":0,"paths":["a","b"],"values":["0","0"]}]})"
          "\n";
  for (int i = 1; i < 40; ++i) {
    text +=
        fmt::format(R"({{"groups":[{{"g":0,"c":[{},"{}"]}}],"dmesg":["line {}"]}})", i % 2, i, i) +
        "\n";
    // Another set of files in the middle.
    if (i == 20) {
      text += R"({"groups":[{"g":0,"paths":["a","b","c"],"values":["x","y","z"]}]})"
              "\n";
    }
  }
  std::optional<Recording> recording = Recording::parse(text + "half a line");
  REQUIRE(recording);
  REQUIRE(recording->messages.size() == 41);
  const std::string before = effect(recording->messages);
  const std::string first = recording->messages.front(), last = recording->messages.back();
  REQUIRE(recording->shorten(recording->size() / 2));
  CHECK(recording->messages.size() < 20);
  CHECK(effect(recording->messages) == before);
  CHECK(nlohmann::json::parse(recording->messages.front()) == nlohmann::json::parse(first));
  CHECK(nlohmann::json::parse(recording->messages.back()) == nlohmann::json::parse(last));
  CHECK_FALSE(recording->shorten(10));
}

TEST_CASE("recording: other texts are none") {
  CHECK_FALSE(Recording::parse(""));
  CHECK_FALSE(Recording::parse("{}\n"));
  CHECK_FALSE(Recording::parse("{\"shape\":{\"nodes\":[]}}\n"));
  CHECK_FALSE(Recording::parse(recording_head(R"({"nodes":[],"cables":[]})") + "\nnonsense\n"));
  std::optional<Recording> odd =
      Recording::parse(recording_head(R"({"nodes":[],"cables":[]})") + "\n1\n2\n3\n4\n5\n");
  REQUIRE(odd);
  CHECK_FALSE(odd->shorten(1));
}

TEST_CASE("recording: a shorter one leaves out queues that are never used") {
  const std::string port = "kernel/debug/rocefs/fabric/sw_0/ports/1/";
  std::string paths, values;
  for (const char* file : {"queue/0/bytes", "queue/1/bytes", "queue/3/bytes", "pfc/3/paused",
                           "pfc/4/paused", "queue/3/marked"}) {
    paths += fmt::format("{}\"{}{}\"", paths.empty() ? "" : ",", port, file);
    values += values.empty() ? "\"0\"" : ",\"0\"";
  }
  std::string text = recording_head(R"({"nodes":[],"cables":[]})") + "\n";
  text += fmt::format(
      R"({{"groups":[{{"g":0,"paths":["t",{0}],"values":["5",{1}]}},{{"g":1,"paths":["a"],"values":["0"]}}]}})",
      paths, values);
  text += "\n{\"groups\":[{\"g\":0,\"c\":[0,\"6\",3,\"7\"]}]}\n";
  text += "{\"groups\":[{\"g\":0,\"c\":[3,\"0\",6,\"1\"]}]}\n";
  text += "{\"groups\":[]}\n";
  std::optional<Recording> recording = Recording::parse(text);
  REQUIRE(recording);
  REQUIRE(recording->shorten(recording->size() - 1));
  const nlohmann::json first = nlohmann::json::parse(recording->messages[0])["groups"][0];
  CHECK(first["paths"] == nlohmann::json({"t", port + "queue/0/bytes", port + "queue/3/bytes",
                                          port + "queue/3/marked"}));
  CHECK(first["values"] == nlohmann::json({"5", "0", "0", "0"}));
  CHECK(recording->messages.size() == 4);
  CHECK(nlohmann::json::parse(recording->messages[1])["groups"][0]["c"] ==
        nlohmann::json({0, "6", 2, "7"}));
  CHECK(nlohmann::json::parse(recording->messages[2])["groups"][0]["c"] ==
        nlohmann::json({2, "0", 3, "1"}));
}

TEST_CASE("recording: a change of a file that is not there is malformed") {
  std::optional<Recording> recording =
      Recording::parse(recording_head(R"({"nodes":[],"cables":[]})") +
                       "\n{\"groups\":[{\"g\":0,\"paths\":[\"a\"],\"values\":[\"0\"]}]}\n"
                       "{\"groups\":[{\"g\":0,\"c\":[7,\"1\"]}]}\n");
  REQUIRE(recording);
  CHECK_FALSE(recording->shorten(1));
}
