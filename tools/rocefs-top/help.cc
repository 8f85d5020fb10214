#include "tools/rocefs-top/help.h"

namespace rocefs::top {
namespace {

struct HelpRow {
  const char* keys;
  const char* text;
};

constexpr HelpRow kHelpRows[] = {
    {"1 2 3 4, Tab, F2", "devices, links, queues, flows; the next screen"},
    {"Up Down PgUp PgDn Home End", "the row under the cursor (also k j g G)"},
    {"Left Right", "columns that do not fit"},
    {"< >, F6", "sort by the next column; by one of a menu"},
    {"P M N", "sort by what is busiest, by congestion, by name"},
    {"I", "the other way round"},
    {"/ F4", "rows with a text, a|b: one of two; Esc ends it"},
    {"F3, n", "go to a row with a text; to the next one"},
    {"c F5", "counts in place of rates"},
    {"i F9", "hide rows where nothing happens"},
    {"+ - F8 F7, s", "a longer, shorter time between looks; type it"},
    {"p Space", "pause: the page stays as it is"},
    {"h F1, q F10", "this text, the end"},
    {"", ""},
    {"> and <", "what goes out, what comes in"},
    {"RETX", "selective retransmissions, NAKs and time-outs"},
    {"LOAD", "share of the rate, with Ethernet's framing"},
};

}  // namespace

Page help_page(size_t width, size_t height) {
  Page page;
  auto add = [&](Line line) {
    if (page.lines.size() < height) page.lines.push_back(std::move(line));
  };
  add(Line().add(cut(" rocefs top: the NICs, links, queues and flows of a mount", width),
                 Style::kStrong));
  add(Line().add(cut(" Rates are per second of the mount's clock, real or virtual.", width)));
  add({});
  for (const HelpRow& row : kHelpRows) {
    Line line;
    line.add(padded(std::string(" ") + row.keys, std::min<size_t>(width, 28)), Style::kStrong);
    line.add(cut(row.text, width > 28 ? width - 28 : 0));
    add(std::move(line));
  }
  add({});
  add(Line().add(cut(" Any key leads back.", width), Style::kQuiet));
  return page;
}

}  // namespace rocefs::top
