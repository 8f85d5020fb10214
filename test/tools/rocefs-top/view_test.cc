#include "tools/rocefs-top/view.h"

#include <getopt.h>

#include "test/catch.h"
#include "test/tools/rocefs-top/sample_look.h"
#include "tools/rocefs-top/keys.h"
#include "tools/rocefs-top/options.h"

using namespace rocefs;
using namespace rocefs::top;

namespace {

std::string text_of_page(View& view, size_t width = 80, size_t height = 24) {
  std::string text;
  const Page page = view.page(width, height);
  CHECK(page.lines.size() <= height);
  for (const Line& line : page.lines) {
    CHECK(line.width() <= width);
    text += line.text() + "\n";
  }
  return text;
}

bool shows(View& view, const char* wanted) {
  const std::string text = text_of_page(view);
  INFO(text);
  return text.find(wanted) != std::string::npos;
}

void type(View& view, const char* text) {
  for (; *text; ++text) REQUIRE(view.press(*text));
}

// 2 ms in which 200,000 octets were sent, and a queue of 300 octets.
View sample_view(bool virtual_clock = true) {
  View view({"/tmp/n\x1b[2Jic", Screen::kDevices, std::nullopt, kSecond, false});
  view.take(sample_look(1'000'000, sample_files(1'000'000), virtual_clock));
  view.take(sample_look(3'000'000, sample_files(1'200'000, "300"), virtual_clock));
  return view;
}

Result<TopOptions> parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "rocefs-top");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  optind = 0;
  return parse_top(static_cast<int>(words.size()), arguments.data());
}

}  // namespace

TEST_CASE("top: the page has the mount, the clock, totals, tabs and the table") {
  View view = sample_view();
  CHECK(shows(view, "rocefs top  /tmp/n?[2Jic"));
  CHECK(shows(view, "virtual clock 0.003000000 s"));
  CHECK(shows(view, "800 Mb/s]"));
  CHECK(shows(view, "Marked     100K/s"));
  CHECK(shows(view, "Queued 307 B, 1 paused  Flows 1 of 1 run"));
  CHECK(shows(view, " mb_0        ACTIVE  800 Mb/s         -   100K"));
  CHECK(shows(view, "F10Quit"));
}

TEST_CASE("top: keys choose screens, orders and counts") {
  View view = sample_view();
  CHECK(view.press('3'));
  CHECK(shows(view, "QUEUEDv"));
  const std::string by_octets = text_of_page(view);
  CHECK(by_octets.find("   2    0") < by_octets.find("  10    0"));
  CHECK(view.press('I'));
  const std::string turned = text_of_page(view);
  CHECK(turned.find("   2    0") > turned.find("  10    0"));
  CHECK(view.press('>'));
  CHECK(shows(view, "PKTSv"));
  CHECK(view.press('M'));
  CHECK(shows(view, "MARKED/sv") == false);  // no room for an arrow
  CHECK(view.press(kTab));
  CHECK(shows(view, "GOODPUTv"));
  CHECK(view.press('c'));
  CHECK(shows(view, "MOVEDv"));
  CHECK(view.press(kFunction + 6));
  CHECK(shows(view, "Sort by"));
  CHECK(view.press(kHome));
  CHECK(view.press(kEnter));
  CHECK(shows(view, "NAME^"));
  CHECK_FALSE(view.press('q'));
  CHECK_FALSE(view.press(kFunction + 10));
}

TEST_CASE("top: a filter is typed, kept by Enter and left by Escape") {
  View view = sample_view();
  view.press('3');
  view.press('/');
  type(view, "sw_0/10q");  // q is a letter here
  CHECK(shows(view, "Filter: sw_0/10q"));
  CHECK(shows(view, "0 of 2 rows"));
  view.press(kBackspace);
  view.press(kEnter);
  CHECK(shows(view, "1 of 2 rows"));
  view.press('/');
  view.press(kEscape);
  CHECK(shows(view, "1 of 2 rows"));
  view.press(kEscape);
  CHECK_FALSE(shows(view, "of 2 rows"));
}

TEST_CASE("top: virtual time that stands is said, and pause keeps the page") {
  View view = sample_view();
  view.take(sample_look(3'000'000, sample_files(1'200'000), true));
  CHECK(shows(view, "virtual time stands: counts"));
  CHECK(shows(view, "1.14 MB"));
  view.press('p');
  view.take(sample_look(9'000'000, sample_files(9'200'000), true));
  CHECK(shows(view, "PAUSED"));
  CHECK(shows(view, "0.003000000 s"));
  view.press(' ');
  view.take(sample_look(9'000'000, sample_files(9'200'000), true));
  CHECK(shows(view, "0.009000000 s"));
  view.take_failure("get: no \x1b answer");
  CHECK(shows(view, "get: no ? answer"));
}

TEST_CASE("top: rows beyond the page are reached by the cursor") {
  View view({"/tmp", Screen::kLinks, Order{0, false}, kSecond, false});
  SampleFiles files;
  for (int i = 0; i < 300; ++i) {
    files.push_back({"kernel/debug/rocefs/links/l_" + std::to_string(i) + "/rate", "1G"});
  }
  view.take(sample_look(1, files));
  CHECK(shows(view, " l_0 "));
  CHECK_FALSE(shows(view, " l_299 "));
  view.press(kEnd);
  CHECK(shows(view, " l_299 "));
  view.press(kPageUp);
  CHECK(shows(view, " l_282 "));
  view.press(kHome);
  CHECK(shows(view, " l_0 "));
  for (int i = 0; i < 20; ++i) view.press(kDown);
  CHECK(shows(view, " l_20 "));
  CHECK_FALSE(shows(view, " l_0 "));
  view.press(kFunction + 3);
  type(view, "l_250");
  CHECK(shows(view, " l_250 "));
  view.press(kEnter);
  view.press('n');
  CHECK(shows(view, " l_250 "));
}

TEST_CASE("top: any size of a terminal has a page") {
  View view = sample_view();
  for (int mode :
       std::initializer_list<int>{'1', '2', '3', '4', kFunction + 6, kEscape, '/', kEscape, 'h'}) {
    view.press(mode);
    for (size_t width = 1; width < 90; ++width) {
      for (size_t height = 1; height < 30; ++height) {
        const Page page = view.page(width, height);
        REQUIRE(page.lines.size() <= height);
      }
    }
  }
}

TEST_CASE("top: delays are halved, doubled and typed, within bounds") {
  View view = sample_view();
  view.press('-');
  CHECK(view.delay() == 500 * kMillisecond);
  for (int i = 0; i < 10; ++i) view.press('-');
  CHECK(view.delay() == kShortestDelay);
  view.press('s');
  type(view, "2.5");
  view.press(kEnter);
  CHECK(view.delay() == 2500 * kMillisecond);
  view.press('s');
  type(view, "x");
  view.press(kEnter);
  CHECK(shows(view, "'x' is no time"));
  CHECK(view.delay() == 2500 * kMillisecond);
}

TEST_CASE("top: options that are wrong are refused with the reason") {
  CHECK(parsed({"-b", "-n", "3", "--csv", "--screen", "queues", "--sort", "-octets"})
            ->order->descending == false);
  CHECK(parsed({"-d", "200ms"})->delay == 200 * kMillisecond);
  auto refusal = [](std::vector<std::string> words) { return parsed(words).error().reason; };
  CHECK(refusal({"--csv"}) == "--csv is for --batch");
  CHECK(refusal({"-n", "2"}) == "-n is for --batch");
  CHECK(refusal({"-b", "-n", "0"}) == "-n '0': a number of tables is wanted");
  CHECK(refusal({"-d"}) == "'-d' requires a value");
  CHECK(refusal({"-d", "1h"}).starts_with("-d: '1h' is no time"));
  CHECK(refusal({"--screen", "cpus"}).starts_with("--screen 'cpus': devices, links"));
  CHECK(refusal({"--sort", "x\x1b"}).starts_with("--sort 'x?': devices has name, state, out"));
  CHECK(refusal({"word"}) == "'word' is no option");
  CHECK(refusal({"--nope"}) == "'--nope' is no option");
}
