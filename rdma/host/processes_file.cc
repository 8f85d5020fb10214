#include "rdma/host/processes_file.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "rdma/host/link_text.h"

namespace rocefs {

std::string processes_in(const std::string& network) {
  auto close = [](DIR* directory) { ::closedir(directory); };
  std::unique_ptr<DIR, decltype(close)> proc(::opendir("/proc"), close);
  std::vector<unsigned> pids;
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    unsigned pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr != end) continue;
    if (link_text(fmt::format("/proc/{}/ns/net", pid)) == network) pids.push_back(pid);
  }
  std::sort(pids.begin(), pids.end());
  return fmt::format("{}{}", fmt::join(pids, "\n"), pids.empty() ? "" : "\n");
}

void ProcessesFile::content(Answer<std::string> answer) {
  waiting_.push_back(std::move(answer));
  if (!walking_) walk();
}

void ProcessesFile::walk() {
  walking_ = true;
  auto ready = [self = shared_from_this(),
                asked = std::exchange(waiting_, {})](std::string text) mutable {
    for (auto& answer : asked) answer(text);
    self->walking_ = false;
    if (!self->waiting_.empty()) self->walk();
  };
  std::string network = network_();
  if (network.empty()) return ready("");
  worker_.post([&engine = engine_, network, ready = std::move(ready)]() mutable {
    engine.tell_control([text = processes_in(network), ready = std::move(ready)]() mutable {
      ready(std::move(text));
    });
  });
}

}  // namespace rocefs
