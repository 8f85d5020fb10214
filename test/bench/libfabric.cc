#include "test/bench/libfabric.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

// Starts a program in that network, with its output in `out`.
pid_t start(const TwoNetworks& networks, unsigned host, std::vector<std::string> command, int out) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  networks.enter(host);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(::open("/dev/null", O_RDWR), STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

double libfabric_write_ns(const TwoNetworks& networks, size_t length, int count) {
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fi_write";
  if (!std::filesystem::exists(program)) return 0;
  int ends[2], result[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && ::pipe(result) == 0, "no socket");
  auto command = [&](const char* address, int end) {
    return std::vector{program, std::string(address), std::to_string(end), std::to_string(length)};
  };
  pid_t server = start(networks, 2, command("10.9.0.12", ends[1]), STDERR_FILENO);
  std::vector<std::string> writes = command("10.9.0.11", ends[0]);
  writes.push_back(std::to_string(count));
  pid_t client = start(networks, 1, writes, result[1]);
  for (int fd : {ends[0], ends[1], result[1]}) ::close(fd);
  char text[64] = {};
  ssize_t got = ::read(result[0], text, sizeof text - 1);
  ::close(result[0]);
  ::waitpid(client, nullptr, 0);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return got > 0 ? std::strtod(text, nullptr) : 0;
}

}  // namespace rocefs::bench
