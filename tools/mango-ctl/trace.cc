// rdma pcc trace: the algorithm's decisions as a table, as CSV or as a picture.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "core/base/kstrto.h"
#include "tools/mango-ctl/calls.h"
#include "tools/mango-ctl/child.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/csv.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/text_file.h"

namespace rocefs {
namespace {

struct TraceOptions {
  std::string device, csv, plot;
  uint64_t count = 20;
  bool calls = false, follow = false;
};

void print_table(Session& session, const std::vector<CsvRow>& rows, size_t first) {
  std::vector<CsvRow> shown = {rows[0]};
  shown.insert(shown.end(), rows.begin() + static_cast<ptrdiff_t>(first), rows.end());
  std::vector<size_t> widths(rows[0].size());
  for (const CsvRow& row : shown) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const CsvRow& row : shown) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    session.print(line + "\n");
  }
}

void show(Session& session, std::string_view text, size_t count) {
  std::vector<CsvRow> rows = csv_rows(text);
  if (rows.empty()) return;
  size_t first = rows.size() - std::min(count, rows.size() - 1);
  print_table(session, rows, first);
  for (size_t i = first; session.json() && i < rows.size(); ++i) {
    Json row;
    for (size_t column = 0; column < rows[i].size(); ++column) {
      const std::string& value = rows[i][column];
      row[rows[0][column]] = value == kNoWindow ? Json(nullptr) : number_or_text(value);
    }
    session.add(std::move(row));
  }
}

// Quotes for gnuplot, with single quotes.
std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

// Picture of the windows over time: a line for each queue pair, a mark at each CNP.
class Plot {
 public:
  // Fails with ENODATA if there is nothing to draw.
  Result<void> read(const std::vector<CsvRow>& rows) {
    if (rows.empty()) return Error{ENODATA, "the trace is empty"};
    size_t time = csv_column(rows[0], "time_ns"), qp = csv_column(rows[0], "qp");
    size_t window = csv_column(rows[0], "new_window"), cnp = csv_column(rows[0], "cnp");
    if (std::max({time, qp, window, cnp}) >= rows[0].size()) {
      return Error{EPROTO, "the trace has other columns than these: time_ns, qp, new_window, cnp"};
    }
    for (size_t i = 1; i < rows.size(); ++i) {
      const CsvRow& row = rows[i];
      if (row[window] == kNoWindow) continue;  // not drawn: without limit
      double at_ns = std::strtod(row[time].c_str(), nullptr);
      if (first_ns_ < 0) first_ns_ = at_ns;
      double size = std::strtod(row[window].c_str(), nullptr);
      std::string point = fmt::format("{:.6f} {:.3f}\n", (at_ns - first_ns_) / 1e6, size / 1024);
      if (row[cnp] != "0") marks_ += point;
      lines_[std::atol(row[qp].c_str())] += point;
    }
    if (lines_.empty()) return Error{ENODATA, "the trace has no window to draw"};
    return {};
  }

  std::string script(const std::string& device, const std::string& file, bool svg) const {
    std::string text, plots;
    for (const auto& [qp, points] : lines_) {
      text += fmt::format("$qp{} << EOD\n{}EOD\n", qp, points);
      plots += fmt::format("{}$qp{} using 1:2 with steps lw 1.5 title 'QP {}'",
                           plots.empty() ? "plot " : ", ", qp, qp);
    }
    if (!marks_.empty()) {
      text += fmt::format("$cnp << EOD\n{}EOD\n", marks_);
      plots += ", $cnp using 1:2 with points pt 7 ps 0.5 lc rgb '#cc3311' title 'CNP'";
    }
    text += fmt::format("set terminal {} noenhanced size 1200,600 font 'Helvetica,11'{}\n",
                        svg ? "svg" : "pngcairo", svg ? " background 'white'" : "");
    text += fmt::format("set output {}\nset title {}\n", single_quoted(file),
                        single_quoted("PCC on " + device));
    text +=
        "set xlabel 'Time (ms)'\nset ylabel 'Window (KiB)'\nset xrange [0:*]\nset yrange [0:*]\n";
    text += "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n";
    text += lines_.size() <= kMaxKeyEntries ? "set key outside right\n" : "unset key\n";
    return text + plots + "\nset output\n";
  }

 private:
  static constexpr size_t kMaxKeyEntries = 20;

  double first_ns_ = -1;
  std::map<long, std::string> lines_;
  std::string marks_;
};

Result<void> write_csv(Session& session, const std::string& file, const std::string& text) {
  if (file == "-") {
    session.stream(text);
    return {};
  }
  Result<Replacement> csv = Replacement::of(file, 0644);
  if (!csv) return csv.error();
  Result<void> done = csv->write(text);
  if (!done) return done;
  return csv->commit();
}

Result<void> write_plot(const std::string& device, const std::string& file,
                        const std::vector<CsvRow>& rows) {
  Plot plot;
  if (Result<void> read = plot.read(rows); !read) return read;
  Result<Replacement> picture = Replacement::of(file, 0644);
  if (!picture) return picture.error();
  std::string script = plot.script(device, picture->path(), file.ends_with(".svg"));
  Result<int> status = run_program({"gnuplot"}, script);
  if (!status) return status.error();
  if (*status != 0) return errorf(EIO, "{}: gnuplot ended with {}", file, *status);
  return picture->commit();
}

Result<void> trace(Session& session, const std::string& device, const TraceOptions& options) {
  if (options.calls) return record_calls(session, device, options.csv, options.follow);
  Result<std::string> text = session.tree().read(device_file(device, "pcc/trace"));
  if (!text) return text.error();
  if (options.csv.empty() && options.plot.empty()) {
    show(session, *text, options.count);
    return {};
  }
  session.streams();
  Result<void> done;
  if (!options.plot.empty()) done = write_plot(device, options.plot, csv_rows(*text));
  if (done && !options.csv.empty()) done = write_csv(session, options.csv, *text);
  return done;
}

std::string check_picture(const std::string& file) {
  bool good = file.ends_with(".png") || file.ends_with(".svg");
  return good ? "" : fmt::format("{}: FILE.png or FILE.svg is wanted", file);
}

std::string check_lines(const std::string& text) {
  return kstrtou64(text, 10) ? "" : fmt::format("'{}': a number of lines is wanted", text);
}

void run_trace(Session& session, const TraceOptions& options) {
  if (options.calls && (options.csv.empty() || !options.plot.empty())) {
    return session.fail(Error{EINVAL, "--calls: --csv FILE is wanted, and no other form"});
  }
  if (options.follow && !options.calls) {
    return session.fail(Error{EINVAL, "--follow: --calls is wanted with it"});
  }
  session.each_device(options.device,
                      [&](const std::string& name) { return trace(session, name, options); });
}

}  // namespace

std::vector<Command> trace_commands() {
  return {
      CommandOf<TraceOptions>{
          .path = "rdma pcc trace",
          .summary = "Show how the windows changed",
          .manual = "The last changes are printed as a table, or all are written as CSV or drawn "
                    "as a picture. A picture has a line for each queue pair and a mark at each "
                    "CNP; gnuplot(1) draws it.\n\nWith --calls each call of the algorithm is "
                    "written, with what it saw and did, for `rdma pcc replay`; the device records "
                    "calls while its file pcc/trace_calls is 1.",
          .examples = {"rdma pcc trace mb_0 -n 50",
                       "rdma pcc trace mb_0 --csv trace.csv --plot trace.svg",
                       "rdma pcc trace mb_0 --calls --csv calls.csv --follow"},
          .arguments = {one_device<TraceOptions>(),
                        {&TraceOptions::count,
                         {.name = "-n,--count",
                          .value = "N",
                          .help = "lines of the table",
                          .check = check_lines}},
                        {&TraceOptions::csv,
                         {.name = "--csv",
                          .value = "FILE",
                          .help = "file for the whole trace; - is stdout",
                          .offer = Offer::kFiles}},
                        {&TraceOptions::plot,
                         {.name = "--plot",
                          .value = "FILE.png|svg",
                          .help = "file for a picture of windows and CNPs over time",
                          .offer = Offer::kFiles,
                          .check = check_picture}},
                        {&TraceOptions::calls,
                         {.name = "--calls", .help = "with --csv: calls, instead of changes"}},
                        {&TraceOptions::follow,
                         {.name = "--follow", .help = "with --calls: until ^C"}}},
          .run = run_trace},
  };
}

}  // namespace rocefs
