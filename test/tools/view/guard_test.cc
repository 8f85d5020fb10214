// Rights to look at a mount, and to store, by the page of rocefs-view.
#include <catch2/catch.hpp>

#include "tools/rocefs-view/guard.h"
#include "tools/rocefs-view/view_options.h"

using namespace rocefs;

namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

Result<ViewOptions> parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rocefs-view");
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  optind = 0;
  return parse_view(static_cast<int>(arguments.size()), words.data());
}

}  // namespace

TEST_CASE("guard: a request names the server by an address or as localhost, and its port") {
  const Guard guard(8470, kToken);
  for (const char* host : {"127.0.0.1:8470", "localhost:8470", "[::1]:8470", "192.0.2.7:8470"}) {
    INFO(host);
    CHECK(guard.own_host(host));
  }
  for (const char* host :
       {"", "evil.example:8470", "127.0.0.1", "127.0.0.1:8471", "127.0.0.1.evil.example:8470",
        "localhost.evil.example:8470", "[::1:8470", "127.1:8470", "[evil]:8470",
        "127.0.0.1:8470@evil.example:8470", "LOCALHOST:8470x"}) {
    INFO(host);
    CHECK_FALSE(guard.own_host(host));
  }
  const Guard usual(80, kToken);
  CHECK(usual.own_host("127.0.0.1"));
  CHECK(usual.own_host("127.0.0.1:80"));
  CHECK_FALSE(usual.own_host("evil.example"));
}

TEST_CASE("guard: a store needs the token, and comes from the page or from no browser") {
  const Guard guard(8470, kToken);
  const std::string host = "127.0.0.1:8470";
  CHECK(guard.may_store(host, "", kToken));
  CHECK(guard.may_store(host, "http://127.0.0.1:8470", kToken));
  CHECK_FALSE(guard.may_store(host, "http://localhost:8470", kToken));
  CHECK_FALSE(guard.may_store(host, "https://127.0.0.1:8470", kToken));
  CHECK_FALSE(guard.may_store(host, "null", kToken));
  CHECK_FALSE(guard.may_store("evil.example:8470", "", kToken));
  CHECK_FALSE(guard.may_store(host, "", ""));
  CHECK_FALSE(guard.may_store(host, "", kToken.substr(1)));
  CHECK_FALSE(guard.may_store(host, "", kToken + "0"));
  CHECK_FALSE(guard.may_store(host, "", "1" + kToken.substr(1)));
  CHECK_FALSE(Guard(8470, "").may_store(host, "", ""));
}

TEST_CASE("guard: tokens are 32 hexadecimal digits, and differ") {
  CHECK(new_token().size() == 32);
  CHECK(new_token() != new_token());
}

TEST_CASE("rocefs view: --listen takes addresses and ports") {
  CHECK(parsed({})->port == 8470);
  CHECK(parsed({"--listen", "[::1]:0"})->address == "::1");
  CHECK(parsed({"--listen", "0.0.0.0:65535"})->port == 65535);
  for (const char* place : {"", ":", "8470", "localhost:1", "127.0.0.1:", "127.0.0.1:x",
                            "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:8470 "}) {
    INFO(place);
    CHECK_FALSE(parsed({"--listen", place}));
  }
  CHECK(parsed({"--interval", "1s"})->interval == kSecond);
  CHECK_FALSE(parsed({"--interval", "49ms"}));
  CHECK_FALSE(parsed({"--interval", "11s"}));
  CHECK_FALSE(parsed({"extra"}));
  CHECK_FALSE(parsed({"--nothing"}));
}
