// Stock verbs programs over the mount, from mb_0 to mb_1, against what their bytes could cost at
// least: ib_write_bw against one process that moves memory between two others with
// process_vm_readv(2) and process_vm_writev(2), message by message, the least that copy threads
// could do; ib_write_lat and ib_send_lat against two processes that wake each other. They share
// their regions with the engine, or have copy threads move them. Their two programs never rest, so
// on two CPUs the packet core has none of its own; both_ends is one program, which leaves it one.
// The links carry 400 Gb/s, so that they are no limit; each WRITE takes 2 us on two cables.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/clock.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

constexpr size_t kMaxMessage = 1024 * 1024;  // bytes of a message
constexpr int kPort = 18520;
constexpr TimeNs kMaxRun = 60 * kSecond;

using Command = std::vector<std::string>;

bool installed(const char* program) {
  return std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0;
}

// Standard output goes to `out`; -1: nowhere.
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

// Waits until the program has ended; at the deadline kills it and returns false.
bool ends_by(pid_t pid, TimeNs deadline, int* status = nullptr) {
  while (::waitpid(pid, status, WNOHANG) == 0) {
    if (monotonic_ns() >= deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, status, 0);
      return false;
    }
    ::usleep(1000);
  }
  return true;
}

// Stops another program's server, which may not react to SIGTERM.
void stop(pid_t server) {
  ::kill(server, SIGTERM);
  (void)ends_by(server, monotonic_ns() + 5 * kSecond);
}

struct Output {
  std::string text;  // empty if it failed
  bool ended = true;
};

Output output_of(const Command& command) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  TimeNs deadline = monotonic_ns() + kMaxRun;
  pid_t pid = start(command, ends[1]);
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (pollfd readable{ends[0], POLLIN, 0};;) {
    TimeNs left = std::max(deadline - monotonic_ns(), TimeNs{0});
    if (::poll(&readable, 1, static_cast<int>(left / kMillisecond)) <= 0) break;
    ssize_t got = ::read(ends[0], part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  bool ended = ends_by(pid, deadline, &status);
  return {status == 0 ? text : std::string(), ended};
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

// Waits until the server listens. False if it has ended instead.
bool awaits(pid_t server, int port) {
  TimeNs end = monotonic_ns() + 10 * kSecond;
  siginfo_t ended{};
  while (!listens(port) && monotonic_ns() < end) {
    ::waitid(P_PID, static_cast<id_t>(server), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == server) return false;
    ::sched_yield();
  }
  return true;
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
  Command client = within("mb_1");
  client.push_back("localhost");
  std::istringstream text(awaits(server, kPort) ? output_of(client).text : "");
  stop(server);
  std::vector<double> last;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<double> numbers;
    for (double number; words >> number;) numbers.push_back(number);
    if (numbers.size() >= 5) last = numbers;
  }
  return last;
}

// The same with programs that do not share their regions with the engine.
std::vector<double> moving(const Mount& mount, const Command& tool) {
  ::setenv("ROCEFS_SHARE_REGIONS", "0", 1);
  std::vector<double> numbers = perftest(mount, tool);
  ::unsetenv("ROCEFS_SHARE_REGIONS");
  return numbers;
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

// MB/s (of 1e6 bytes) through one staging buffer, between two waiting processes. Its pages are new
// each time: their placement changes the speed by half.
double moved_mbps(size_t message) {
  const size_t turns = 256 * kMaxMessage / message;
  static uint8_t area[kMaxMessage];
  void* staging = ::mmap(nullptr, message, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (staging == MAP_FAILED) return 0;
  pid_t ends[2];
  for (pid_t& end : ends) {
    end = ::fork();
    if (end == 0) {
      std::memset(area, 1, sizeof area);
      ::pause();
      ::_exit(0);
    }
  }
  iovec local{staging, message}, remote{area, message};
  auto turn = [&] {
    return ::process_vm_readv(ends[0], &local, 1, &remote, 1, 0) > 0 &&
           ::process_vm_writev(ends[1], &local, 1, &remote, 1, 0) > 0;
  };
  bool works = turn();
  double ns = wall_ns([&] {
    for (size_t i = 0; i < turns && works; ++i) works = turn();
  });
  ::munmap(staging, message);
  for (pid_t end : ends) {
    ::kill(end, SIGKILL);
    ::waitpid(end, nullptr, 0);
  }
  return works ? static_cast<double>(turns * message) / ns * 1e3 : 0;
}

double copied_mbps(size_t message) {
  const size_t turns = 1024 * kMaxMessage / message;
  static uint8_t from[kMaxMessage], to[kMaxMessage];
  double ns = wall_ns([&] {
    for (size_t i = 0; i < turns; ++i) {
      std::memcpy(to, from, message);
      asm volatile("" : : "r"(to) : "memory");
    }
  });
  return static_cast<double>(turns * message) / ns * 1e3;
}

// Microseconds to wake another process.
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

// MB/s of libfabric's shared memory, as its own ping-pong counts it, or why there is no figure.
// Sometimes its ends wait for each other for ever.
struct Libfabric {
  std::optional<double> mbps;
  const char* why = "";
};
Libfabric libfabric(size_t message) {
  if (!installed("fi_pingpong")) return {std::nullopt, "not installed"};
  Command command{"fi_pingpong",           "-p", "shm",  "-e", "rdm", "-I", "1000", "-S",
                  std::to_string(message), "-B", "18530"};
  pid_t server = start(command, -1);
  if (!awaits(server, 18530)) {
    stop(server);
    return {std::nullopt, "failed"};
  }
  command[9] = "-P";
  command.push_back("localhost");
  Output output = output_of(command);
  stop(server);
  if (!output.ended) return {std::nullopt, "did not end"};
  std::istringstream text(output.text);
  // bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() >= 7 && fields[0].find_first_of("km") != fields[0].npos) {
      return {std::stod(fields[5])};
    }
  }
  return {std::nullopt, "failed"};
}

void bandwidth(const Mount& mount, size_t message, Table& table) {
  const size_t messages = 1024 * kMaxMessage / message;
  std::vector<double> core, copies;
  const Command tool{"ib_write_bw", "-s", std::to_string(message), "-n", std::to_string(messages)};
  auto mbps_of = [](const std::vector<double>& numbers) {
    return numbers.size() < 5 ? 0.0 : numbers[3] * 1.048576;  // perftest counts by 2^20
  };
  auto measured = [&](auto run) {
    double core_before = cpu_us(mount.worker(), false), all_before = cpu_us(mount.worker(), true);
    double reached = mbps_of(run(mount, tool));
    double of_core = cpu_us(mount.worker(), false) - core_before;
    double of_all = cpu_us(mount.worker(), true) - all_before;
    core.push_back(of_core / static_cast<double>(messages));
    copies.push_back((of_all - of_core) / static_cast<double>(messages));
    return reached;
  };
  (void)mbps_of(perftest(mount, tool));
  Rounds mbps = interleave(
      5, {[&] { return mbps_of(perftest(mount, tool)); }, [&] { return moved_mbps(message); },
          [&] { return copied_mbps(message); }, [&] { return measured(moving); }});
  auto row = [&](const std::string& figure, size_t own, size_t other, const char* what) {
    return Row{figure, fmt::format("{:.0f} MB/s", mbps[own]),
               fmt::format("{:.0f} MB/s {}", mbps[other], what),
               fmt::format("{:.2f}", mbps.ratio(own, other)), ""};
  };
  table.push_back(
      judged(row(fmt::format("ib_write_bw {} KiB", message / 1024), 0, 1, "readv+writev"),
             mbps.ratio(0, 1), Bound::kAtLeast, 0.85, ""));
  table.push_back(row("  beside one memcpy", 0, 2, "memcpy"));
  Libfabric fabric = libfabric(message);
  Row beside{"  beside libfabric's shm (fi_pingpong)", "", fabric.why, "", ""};
  if (fabric.mbps) {
    beside.reference = fmt::format("{:.0f} MB/s", *fabric.mbps);
    beside.ratio = fmt::format("{:.2f}", mbps[0] / *fabric.mbps);
  }
  table.push_back(beside);
  table.push_back(row("  regions not shared", 3, 1, "readv+writev"));
  for (auto& [figure, us] : {std::pair("core", core), std::pair("copy threads", copies)}) {
    table.push_back({fmt::format("    CPU per message: {}", figure),
                     fmt::format("{:.1f} us", median(us)), "", "", ""});
  }
}

// Microseconds of a WRITE between two queue pairs of one program; nothing if it failed.
double both_ends_us(const Mount& mount) {
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  Command command{mount.daemon(), "enter", "-m",
                  mount.at(""),   "--",    self.parent_path() / "both_ends",
                  "mb_0",         "mb_1",  "5000"};
  std::istringstream text(output_of(command).text);
  double us = 0;
  text >> us;
  return us;
}

void latency(const Mount& mount, Table& table) {
  auto measured = [&](const char* tool, auto run) {
    return [&mount, tool, run] {
      auto numbers = run(mount, {tool, "-s", "8", "-n", "2000"});
      return numbers.size() < 6 ? 0.0 : numbers[4];
    };
  };
  Rounds us =
      interleave(5, {measured("ib_write_lat", perftest), measured("ib_send_lat", perftest),
                     measured("ib_write_lat", moving), measured("ib_send_lat", moving), woken_us});
  constexpr const char* kFigures[] = {"ib_write_lat 8 B, median", "ib_send_lat 8 B, median",
                                      "  ib_write_lat, regions not shared",
                                      "  ib_send_lat, regions not shared"};
  for (size_t i = 0; i < std::size(kFigures); ++i) {
    table.push_back({kFigures[i], fmt::format("{:.1f} us", us[i]),
                     fmt::format("{:.1f} us futex", us[4]), fmt::format("{:.1f}", us.ratio(i, 4)),
                     ""});
  }
  auto alone = [&](bool shares) {
    if (!shares) ::setenv("ROCEFS_SHARE_REGIONS", "0", 1);
    double half_turn = both_ends_us(mount);
    ::unsetenv("ROCEFS_SHARE_REGIONS");
    return half_turn;
  };
  Rounds one = interleave(5, {[&] { return alone(true); }, [&] { return alone(false); }});
  constexpr double kMost[] = {8, 20};
  constexpr const char* kOfOne[] = {"WRITE of 8 B in one program, median", "  regions not shared"};
  for (size_t i = 0; i < std::size(kOfOne); ++i) {
    Row row{kOfOne[i], fmt::format("{:.1f} us", one[i]), "", "", ""};
    table.push_back(judged(std::move(row), one[i], Bound::kAtMost, kMost[i], " us"));
  }
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
  if (perftest(mount, {"ib_write_bw", "-s", "64", "-n", "10"}).empty()) {
    table.push_back(
        judged({"ib_write_bw fails: is the provider built, may it enter?", "", "", "", ""}, 0,
               Bound::kAtLeast, 0.85, ""));
    return;
  }
  for (size_t message : {kMaxMessage / 16, kMaxMessage}) bandwidth(mount, message, table);
  latency(mount, table);
}

}  // namespace rocefs::bench
