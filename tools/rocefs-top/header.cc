#include "tools/rocefs-top/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rocefs::top {
namespace {

constexpr size_t kFigure = 19;  // columns of one of the figures at the right
constexpr size_t kFigures = 2;  // beside each other

// "Out[||||||      43.2 Gb/s]": `part` of 1 is full.
Line meter(const char* name, double part, const std::string& value, size_t width) {
  Line line;
  line.add(fmt::format(" {:<4}", name), Style::kStrong).add("[", Style::kStrong);
  const size_t room = std::max(width, line.width() + 2) - line.width() - 1;
  const double filled = std::clamp(part, 0.0, 1.0) * static_cast<double>(room);
  const size_t bars = part > 0 ? std::max<size_t>(1, static_cast<size_t>(std::lround(filled))) : 0;
  std::string inside = std::string(bars, '|') + std::string(room - std::min(bars, room), ' ');
  const std::string shown = cut(value, room);
  inside.resize(room);
  inside.replace(room - shown.size(), shown.size(), shown);
  const size_t coloured = std::min(bars, room - shown.size());
  line.add(inside.substr(0, coloured), Style::kBar);
  line.add(inside.substr(coloured, room - shown.size() - coloured));
  return line.add(shown, Style::kStrong).add("]", Style::kStrong);
}

void add_figure(Line& line, const char* name, const Totals::Count& count, bool counts, Style mood) {
  const bool rate = !counts && count.per_s;
  const double value = rate ? *count.per_s : count.all;
  const std::string text =
      rate ? number_text(value, Unit::kPerSecond) + "/s" : number_text(value, Unit::kCount);
  line.add("  " + padded(name, 9), Style::kPlain);
  line.add(padded(text, kFigure - 11, true), value > 0 ? mood : Style::kQuiet);
}

}  // namespace

std::string clock_text(const Look& look) {
  if (!look.now_ns) return "-";
  const double seconds = static_cast<double>(*look.now_ns) / 1e9;
  return fmt::format("{:.{}f} s", seconds, look.virtual_clock ? 9 : 1);
}

std::vector<Line> header_lines(const std::string& mount_point, const Look& look,
                               const Totals& totals, bool counts, size_t width) {
  std::vector<Line> lines(4);
  const std::string clock =
      fmt::format("{} clock {} ", look.virtual_clock ? "virtual" : "real", clock_text(look));
  lines[0].add(" rocefs top  ", Style::kStrong);
  const size_t taken = lines[0].width() + clock.size() + 1;
  lines[0].add(cut(mount_point, width > taken ? width - taken : 0));
  lines[0].to(width > clock.size() ? width - clock.size() : 0).add(clock, Style::kStrong);

  const size_t right = kFigure * kFigures + 1;
  const size_t left = width > right + 20 ? width - right : width;
  const bool rates = !counts && totals.out.per_s;
  auto side = [&](const Totals::Count& count) {
    return rates ? number_text(*count.per_s, Unit::kOctetsPerS)
                 : number_text(count.all, Unit::kOctets);
  };
  auto share = [&](const Totals::Count& count) {
    return rates && totals.capacity > 0 ? *count.per_s * 8 / totals.capacity : 0;
  };
  const double load = rates && totals.load ? *totals.load / 100 : 0;
  lines[1] = meter("Out", load, side(totals.out), left);
  lines[2] = meter("In", share(totals.in), side(totals.in), left);
  lines[3].add(" Queued ", Style::kStrong);
  lines[3].add(number_text(totals.queued, Unit::kOctets),
               totals.queued > 0 ? Style::kGood : Style::kQuiet);
  if (totals.paused > 0) lines[3].add(fmt::format(", {} paused", totals.paused), Style::kBad);
  lines[3].add("  Flows ", Style::kStrong);
  lines[3].add(fmt::format("{} of {} run", totals.running, totals.flows),
               totals.running > 0 ? Style::kGood : Style::kQuiet);
  if (left == width) return lines;
  for (size_t i = 1; i < lines.size(); ++i) lines[i].to(left);
  add_figure(lines[1], "Dropped", totals.dropped, counts, Style::kBad);
  add_figure(lines[1], "CNPs", totals.cnps, counts, Style::kNotable);
  add_figure(lines[2], "Lost", totals.lost, counts, Style::kBad);
  add_figure(lines[2], "Retransm.", totals.retransmissions, counts, Style::kBad);
  add_figure(lines[3], "Marked", totals.marked, counts, Style::kNotable);
  add_figure(lines[3], "PAUSE", totals.pauses, counts, Style::kNotable);
  return lines;
}

}  // namespace rocefs::top
