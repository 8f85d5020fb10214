// Stock verbs programs over the mount, from mb_0 to mb_1, against what their bytes could cost at
// least: ib_write_bw against one process that moves memory between two others with
// process_vm_readv(2) and process_vm_writev(2), which is what the copy threads do; ib_write_lat
// against two processes that wake each other. The links carry 400 Gb/s, so that they are no limit.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/clock.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

constexpr size_t kMessage = 64 * 1024;
constexpr int kPort = 18520;

using Command = std::vector<std::string>;

bool installed(const char* program) {
  return std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0;
}

// Its standard output goes to `out`; -1 for nowhere.
pid_t start(const Command& command, int out) {
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(out >= 0 ? out : nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

std::string output_of(const Command& command) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  pid_t pid = start(command, ends[1]);
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? text : std::string();
}

bool listens(int port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      constexpr const char* kListen = " 0A ";
      if (line.find(fmt::format(":{:04X} ", port)) != line.npos &&
          line.find(kListen) != line.npos) {
        return true;
      }
    }
  }
  return false;
}

// The numbers of a perftest run's last line of results; nothing if it failed.
std::vector<double> perftest(const Mount& mount, const Command& tool) {
  auto within = [&](const char* device) {
    Command command{mount.daemon(), "enter", "-m", mount.at(""), "--"};
    command.insert(command.end(), tool.begin(), tool.end());
    for (const char* word : {"-F", "-x", "1", "-d", device, "-p"}) command.push_back(word);
    command.push_back(std::to_string(kPort));
    return command;
  };
  pid_t server = start(within("mb_0"), -1);
  TimeNs end = monotonic_ns() + 10 * kSecond;
  while (!listens(kPort) && monotonic_ns() < end) ::sched_yield();
  Command client = within("mb_1");
  client.push_back("localhost");
  std::istringstream text(output_of(client));
  ::kill(server, SIGTERM);
  ::waitpid(server, nullptr, 0);
  std::vector<double> last;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<double> numbers;
    for (double number; words >> number;) numbers.push_back(number);
    if (numbers.size() >= 5) last = numbers;
  }
  return last;
}

// CPU time of the daemon's threads, in microseconds: all of them with those that have ended, or
// only those that move no memory.
double cpu_us(pid_t worker, bool copies) {
  auto of = [](const std::string& file) {
    std::ifstream stat(file);
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    std::istringstream words(text.substr(std::min(text.rfind(')'), text.size() - 2) + 2));
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() < 13) return 0.0;
    return (std::stod(fields[11]) + std::stod(fields[12])) * 1e6 /
           static_cast<double>(::sysconf(_SC_CLK_TCK));
  };
  if (copies) return of(fmt::format("/proc/{}/stat", worker));
  double sum = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", worker))) {
    sum += of(task.path() / "stat");
  }
  return sum;
}

// MB/s (of 1e6 bytes) through one staging buffer, between two processes that wait.
double moved_mbps() {
  constexpr int kTurns = 4000;
  static uint8_t area[kMessage];
  pid_t ends[2];
  for (pid_t& end : ends) {
    end = ::fork();
    if (end == 0) {
      std::memset(area, 1, sizeof area);
      ::pause();
      ::_exit(0);
    }
  }
  static uint8_t staging[kMessage];
  iovec local{staging, kMessage}, remote{area, kMessage};
  auto turn = [&] {
    return ::process_vm_readv(ends[0], &local, 1, &remote, 1, 0) > 0 &&
           ::process_vm_writev(ends[1], &local, 1, &remote, 1, 0) > 0;
  };
  bool works = turn();
  double ns = wall_ns([&] {
    for (int i = 0; i < kTurns && works; ++i) works = turn();
  });
  for (pid_t end : ends) {
    ::kill(end, SIGKILL);
    ::waitpid(end, nullptr, 0);
  }
  return works ? kTurns * static_cast<double>(kMessage) / ns * 1e3 : 0;
}

double copied_mbps() {
  constexpr int kTurns = 20000;
  static uint8_t from[kMessage], to[kMessage];
  double ns = wall_ns([&] {
    for (int i = 0; i < kTurns; ++i) {
      std::memcpy(to, from, kMessage);
      asm volatile("" : : "r"(to) : "memory");
    }
  });
  return kTurns * static_cast<double>(kMessage) / ns * 1e3;
}

// Microseconds from one process to another that sleeps.
double woken_us() {
  constexpr int kTurns = 20000;
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* turn = new (page) std::atomic<uint32_t>(0);
  auto play = [&](uint32_t mine) {
    for (int i = 0; i < kTurns; ++i) {
      while (turn->load() != mine) {
        ::syscall(SYS_futex, turn, FUTEX_WAIT, 1 - mine, nullptr, nullptr, 0);
      }
      turn->store(1 - mine);
      ::syscall(SYS_futex, turn, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  };
  pid_t other = ::fork();
  if (other == 0) {
    play(1);
    ::_exit(0);
  }
  double ns = wall_ns([&] { play(0); });
  ::waitpid(other, nullptr, 0);
  ::munmap(page, 4096);
  return ns / kTurns / 2 / 1000;
}

// MB/s of libfabric's shared memory, as its own ping-pong counts it; nothing where it is not
// installed.
std::optional<double> libfabric_mbps() {
  if (!installed("fi_pingpong")) return std::nullopt;
  Command command{
      "fi_pingpong", "-p",   "shm", "-e", "rdm", "-I", "4000", "-S", std::to_string(kMessage),
      "-B",          "18530"};
  pid_t server = start(command, -1);
  TimeNs end = monotonic_ns() + 10 * kSecond;
  while (!listens(18530) && monotonic_ns() < end) ::sched_yield();
  command[9] = "-P";
  command.push_back("localhost");
  std::istringstream text(output_of(command));
  ::kill(server, SIGTERM);
  ::waitpid(server, nullptr, 0);
  // bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() >= 7 && fields[0] == "64k") return std::stod(fields[5]);
  }
  return std::nullopt;
}

void bandwidth(const Mount& mount, Table& table) {
  constexpr int kMessages = 5000;
  std::vector<double> core, all;
  auto measured = [&] {
    double core_before = cpu_us(mount.worker(), false), all_before = cpu_us(mount.worker(), true);
    auto numbers = perftest(
        mount, {"ib_write_bw", "-s", std::to_string(kMessage), "-n", std::to_string(kMessages)});
    core.push_back((cpu_us(mount.worker(), false) - core_before) / kMessages);
    all.push_back((cpu_us(mount.worker(), true) - all_before) / kMessages);
    return numbers.size() < 5 ? 0.0 : numbers[3] * 1.048576;  // perftest counts by 2^20
  };
  (void)measured();
  core.clear(), all.clear();
  std::vector<double> mbps = interleave(5, {measured, moved_mbps, copied_mbps});
  Row row{"ib_write_bw 64 KiB", fmt::format("{:.0f} MB/s", mbps[0]),
          fmt::format("{:.0f} MB/s readv+writev", mbps[1]),
          fmt::format("{:.2f}", mbps[0] / mbps[1]), ""};
  table.push_back(judged(row, mbps[0] / mbps[1], Bound::kAtLeast, 0.5, ""));
  table.push_back({"  beside one memcpy", "", fmt::format("{:.0f} MB/s", mbps[2]),
                   fmt::format("{:.2f}", mbps[0] / mbps[2]), ""});
  std::optional<double> fabric = libfabric_mbps();
  table.push_back({"  beside libfabric's shm (fi_pingpong)", "",
                   fabric ? fmt::format("{:.0f} MB/s", *fabric) : "not installed",
                   fabric ? fmt::format("{:.2f}", mbps[0] / *fabric) : "", ""});
  table.push_back({"  CPU per message: core", fmt::format("{:.1f} us", median(core)), "", "", ""});
  table.push_back(
      {"  CPU per message: core and copies", fmt::format("{:.1f} us", median(all)), "", "", ""});
}

void latency(const Mount& mount, Table& table) {
  auto measured = [&] {
    auto numbers = perftest(mount, {"ib_write_lat", "-s", "8", "-n", "2000"});
    return numbers.size() < 6 ? 0.0 : numbers[4];
  };
  std::vector<double> us = interleave(5, {measured, woken_us});
  table.push_back({"ib_write_lat 8 B, median", fmt::format("{:.1f} us", us[0]),
                   fmt::format("{:.1f} us futex", us[1]), fmt::format("{:.1f}", us[0] / us[1]),
                   ""});
}

}  // namespace

void bench_verbs(Table& table) {
  if (!installed("ib_write_bw")) {
    fmt::print(stderr, "skipped: perftest is not installed\n");
    return;
  }
  unpin();
  Mount mount;
  if (!mount.up()) return;
  for (const char* link : {"mb_0-sw_0", "sw_0-mb_0", "mb_1-sw_0", "sw_0-mb_1"}) {
    std::ofstream(mount.at(fmt::format("kernel/debug/rocefs/links/{}/rate", link))) << "400G\n";
  }
  bandwidth(mount, table);
  latency(mount, table);
}

}  // namespace rocefs::bench
