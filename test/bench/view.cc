// Cost of being looked at: CPU time of `rocefs view` and of its mount while a page listens, and
// what that does to a flow under the real clock.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

constexpr int kNics = 200;
constexpr TimeNs kPhase = 4 * kSecond;
constexpr int kViewRounds = 3, kFlowRounds = 7;
constexpr size_t kFlowBytes = size_t{2} << 30;

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// CPU time of the threads of a process, ns, by thread.
std::map<std::string, double> cpu_of_threads(pid_t pid) {
  std::map<std::string, double> threads;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    threads[entry.path()] = std::strtod(content(entry.path() / "schedstat").c_str(), nullptr);
  }
  return threads;
}

// CPU time of some work: all threads together, and the busiest one, ns.
struct Cost {
  double all = 0, busiest = 0;
};
Cost cost_of(pid_t pid, const std::function<void()>& work) {
  const std::map<std::string, double> before = cpu_of_threads(pid);
  work();
  Cost cost;
  for (const auto& [thread, time] : cpu_of_threads(pid)) {
    const auto known = before.find(thread);
    const double own = time - (known == before.end() ? 0 : known->second);
    cost.all += own;
    cost.busiest = std::max(cost.busiest, own);
  }
  return cost;
}

// The program `rocefs view`, at 5 looks a second.
class ViewServer {
 public:
  explicit ViewServer(const std::string& mount) {
    const std::string program =
        std::filesystem::path(Mount::daemon()).parent_path() / "rocefs-view";
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(program.c_str(), program.c_str(), "-m", mount.c_str(), "--listen", "127.0.0.1:0",
              "--interval", "200ms", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    const Fd out(ends[0]);
    std::string line;
    char part[256];
    for (ssize_t size; line.find('\n') == line.npos;) {
      if ((size = ::read(out.get(), part, sizeof part)) <= 0) return;
      line.append(part, static_cast<size_t>(size));
    }
    const size_t colon = line.find(':', line.find("//"));
    port_ = static_cast<uint16_t>(std::strtoul(line.c_str() + colon + 1, nullptr, 10));
  }
  ~ViewServer() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  uint16_t port() const { return port_; }  // 0: it has not started
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

// A page that listens: takes what the feed says, until it is destroyed.
class Page {
 public:
  explicit Page(uint16_t port) : pid_(::fork()) {
    if (pid_ != 0) return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
    const std::string request =
        fmt::format("GET /api/feed HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", port);
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(connection, where, sizeof address) != 0) ::_exit(1);
    if (::write(connection, request.data(), request.size()) < 0) ::_exit(1);
    static char part[1 << 18];
    while (::read(connection, part, sizeof part) > 0) {
    }
    ::_exit(0);
  }
  ~Page() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
};

// CPU time of the packet core, the busiest thread, for one flow, in ms.
double core_time(const Mount& mount) {
  const Cost cost = cost_of(mount.worker(), [&] {
    static int number = 0;
    const std::string name = fmt::format("f{}", number++);
    const std::string flow = mount.at("kernel/debug/rocefs/traffic/" + name);
    std::ofstream(mount.at("kernel/debug/rocefs/traffic/start"))
        << fmt::format("{} write h0 h1 size=64K count={}", name, kFlowBytes >> 16) << std::flush;
    std::string state;
    while ((state = content(flow + "/state")) == "running\n") ::usleep(20'000);
    require(state == "done\n", "the flow did not end");
  });
  return cost.busiest / 1e6;
}

}  // namespace

void bench_view(Table& table) {
  char config[] = "/tmp/rocefs-bench.XXXXXX";
  const Fd file(::mkstemp(config));
  std::ofstream(config) << "[topology]\nkind = star\nhosts = " << kNics << "\nrate = 400G\n";
  const Mount mount(std::nullopt, fmt::format("config={}", config));
  ::unlink(config);
  if (!mount.up()) return;
  const ViewServer server(mount.at(""));
  if (server.port() == 0) {
    fmt::print(stderr, "skipped: no build/bin/rocefs-view\n");
    return;
  }
  std::vector<double> daemon, view;
  for (int round = 0; round < kViewRounds; ++round) {
    const Page page(server.port());
    ::usleep(1'000'000);  // the first message has all files
    const TimeNs begin = monotonic_ns();
    Cost server_cost;
    const Cost cost = cost_of(mount.worker(), [&] {
      server_cost = cost_of(server.pid(), [] { ::usleep(unsigned{kPhase / 1000}); });
    });
    const auto wall = static_cast<double>(monotonic_ns() - begin);
    daemon.push_back(cost.all / wall * 100);
    view.push_back(server_cost.all / wall * 100);
  }
  const double all = median(daemon) + median(view);
  table.push_back(judged({fmt::format("rocefs view, {} NICs at 5 Hz: CPU", kNics),
                          fmt::format("{:.1f} %", all),
                          fmt::format("mount {:.1f}, server {:.1f}", median(daemon), median(view)),
                          "",
                          {},
                          {}},
                         all, Bound::kAtMost, 10, " %"));
  Rounds rounds = interleave(kFlowRounds, {[&] {
                                             const Page page(server.port());
                                             return core_time(mount);
                                           },
                                           [&] { return core_time(mount); }});
  table.push_back(judged({"packet core's CPU for 2 GiB while a page listens",
                          fmt::format("{:.0f} ms", rounds[0]),
                          fmt::format("alone {:.0f} ms", rounds[1]),
                          fmt::format("{:.2f}", rounds.ratio(0, 1)),
                          {},
                          {}},
                         rounds.ratio(0, 1), Bound::kAtMost, 1.05, ""));
}

}  // namespace rocefs::bench
