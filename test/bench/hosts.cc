// TCP and ping between two hosts over one emulated switch, compared with a thread that only copies
// frames between two TAP devices with the same offloads. Needs root, iperf3 and ping.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

bool run(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char part[4096];
  while (size_t got = pipe ? std::fread(part, 1, sizeof part, pipe) : 0) text.append(part, got);
  if (pipe) ::pclose(pipe);
  return text;
}

// The number behind the last occurrence of a word; 0 if there is none.
double number_after(const std::string& text, const std::string& word) {
  size_t at = text.rfind(word);
  return at == text.npos ? 0 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

// Two machines: commands that run another one on the first and the second.
struct Machines {
  std::string on[2];

  // Gb/s that the second receives from the first in a second.
  double tcp() const {
    FILE* server = ::popen((on[1] + "iperf3 -s -1 >/dev/null 2>&1").c_str(), "r");
    while (!run(on[1] + "ss -Hltn 'sport = :5201' | grep -q .")) ::sched_yield();
    std::string said = output_of(on[0] + "iperf3 -J -c 10.77.0.2 -t 1 2>/dev/null");
    ::pclose(server);
    size_t received = said.rfind("\"sum_received\"");
    if (received == said.npos) return 0;
    size_t end = said.find('}', received);
    return number_after(said.substr(received, end - received), "\"bits_per_second\":") / 1e9;
  }
  // Mean microseconds of a round trip.
  double ping() const {
    std::string said = output_of(on[0] + "ping -q -A -c 500 10.77.0.2 2>/dev/null");
    size_t at = said.rfind("mdev = ");
    return at == said.npos ? 0 : number_after(said.substr(said.find('/', at)), "/") * 1000;
  }
};

// A process that copies frames between TAP devices in two network namespaces.
class BareCable {
 public:
  BareCable() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      forward(ends[1]);
    }
    ::close(ends[1]);
    int spaces[2];
    up_ = ::read(ends[0], spaces, sizeof spaces) == sizeof spaces;
    ::close(ends[0]);
    for (int i = 0; up_ && i < 2; ++i) {
      machines_.on[i] = fmt::format("nsenter --net=/proc/{}/fd/{} -- ", pid_, spaces[i]);
    }
  }
  ~BareCable() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool up() const { return up_; }
  const Machines& machines() const { return machines_; }

 private:
  // The TAP device of host 1 or 2, in a new network namespace; -1 if there is none.
  static int make(int host, int& space) {
    if (::unshare(CLONE_NEWNET) != 0) return -1;
    space = ::open("/proc/self/ns/net", O_RDONLY);
    int tap = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "eth0");
    bool made = tap >= 0 && ::ioctl(tap, TUNSETIFF, &request) == 0 &&
                ::ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) == 0 &&
                run(fmt::format("ip link set lo up && ip link set eth0 mtu 4192 up && "
                                "ip addr add 10.77.0.{}/24 dev eth0",
                                host));
    return made ? tap : -1;
  }
  [[noreturn]] static void forward(int ready) {
    int spaces[2], taps[2];
    for (int i = 0; i < 2; ++i) taps[i] = make(i + 1, spaces[i]);
    if (taps[0] < 0 || taps[1] < 0) ::_exit(1);
    (void)!::write(ready, spaces, sizeof spaces);
    ::close(ready);
    std::vector<char> buffer(70'000);
    for (;;) {
      bool idle = true;
      for (int from = 0; from < 2; ++from) {
        for (int left = 64; left > 0; --left) {
          ssize_t got = ::read(taps[from], buffer.data(), buffer.size());
          if (got <= 0) break;
          (void)!::write(taps[1 - from], buffer.data(), static_cast<size_t>(got));
          idle = false;
        }
      }
      pollfd both[2] = {{taps[0], POLLIN, 0}, {taps[1], POLLIN, 0}};
      if (idle) ::poll(both, 2, -1);
    }
  }

  pid_t pid_ = -1;
  bool up_ = false;
  Machines machines_;
};

}  // namespace

void bench_hosts(Table& table) {
  BareCable bare;
  Mount mount;
  std::string daemon = Mount::daemon();
  Machines hosts;
  for (int i = 0; i < 2; ++i) {
    hosts.on[i] = fmt::format("{} host -m {} mb_{} -- ", daemon, mount.at(""), i);
  }
  // A cable that is not the bottleneck.
  bool ready = bare.up() && mount.up() && run(hosts.on[0] + "true") &&
               run(fmt::format("for link in {}/*; do echo 100G >$link/rate; done",
                               mount.at("kernel/debug/rocefs/links")));
  if (!ready) {
    fmt::print(stderr, "skipped: no hosts, or no TAP devices for their reference\n");
    return;
  }
  Rounds tcp = interleave(5, {[&] { return hosts.tcp(); }, [&] { return bare.machines().tcp(); }});
  Row row{"TCP between two hosts, one switch", fmt::format("{:.2f} Gb/s", tcp[0]),
          fmt::format("bare TAPs {:.2f} Gb/s", tcp[1]), fmt::format("{:.2f}", tcp.ratio(0, 1)), ""};
  table.push_back(judged(row, tcp.ratio(0, 1), Bound::kAtLeast, 0.5, ""));
  Rounds ping =
      interleave(5, {[&] { return hosts.ping(); }, [&] { return bare.machines().ping(); }});
  row = {"ping between two hosts, round trip", fmt::format("{:.0f} us", ping[0]),
         fmt::format("bare TAPs {:.0f} us", ping[1]), fmt::format("{:.2f}", ping.ratio(0, 1)), ""};
  table.push_back(judged(row, ping.ratio(0, 1), Bound::kAtMost, 3, ""));
}

}  // namespace rocefs::bench
