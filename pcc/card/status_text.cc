#include "pcc/card/status_text.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace rocefs {
namespace {

constexpr char kRow[] = "{:<8}  {:<8}  {:<16}  {:<10}  {:<8}  {}\n";

std::string window_text(uint32_t window) {
  return window == ROCEFS_NO_WINDOW ? "unlimited" : std::to_string(window);
}

}  // namespace

std::string status_text(const PccStatus& status) {
  std::string text = fmt::format("Device: {}\n{:=<60}\nActive QPs:\n", status.device, "");
  text += fmt::format(kRow, "QP", "PID", "Process", "Ctrl Count", "CNP", "Window Size");
  text += fmt::format("{:-<75}\n", "");
  for (const QpReading& qp : status.qps) {
    text += fmt::format(kRow, qp.qpn, qp.pid, qp.comm, qp.calls, qp.cnps, window_text(qp.window));
  }
  text += fmt::format("Algorithm: {}\nNum threads: {}\n",
                      status.algorithm ? status.algorithm->name : "-", status.pollers);
  if (status.algorithm) {
    text += "Parameters:\n";
    auto parameters = status.algorithm->parameters;
    std::sort(parameters.begin(), parameters.end());
    for (const auto& [name, value] : parameters) text += fmt::format("  {}: {}\n", name, value);
  }
  for (const auto& [name, qps] : status.others) {
    constexpr size_t kShown = 8;
    const size_t shown = std::min(qps.size(), kShown);
    text += fmt::format("Other algorithm: {} (QP {}", name,
                        fmt::join(qps.begin(), qps.begin() + static_cast<ptrdiff_t>(shown), ", "));
    if (qps.size() > shown) text += fmt::format(" and {} more", qps.size() - shown);
    text += ")\n";
  }
  if (!status.owner.empty()) text += fmt::format("Owner: {}\n", status.owner);
  if (status.slow_calls > 0) text += fmt::format("Slow calls: {}\n", status.slow_calls);
  if (!status.last_error.empty()) text += fmt::format("Last error: {}\n", status.last_error);
  return text;
}

}  // namespace rocefs
