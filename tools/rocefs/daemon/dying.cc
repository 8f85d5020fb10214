#include "tools/rocefs/daemon/dying.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace rocefs {
namespace {

constexpr uint64_t kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h
constexpr uint64_t kKilled = uint64_t{1} << (SIGKILL - 1);

// Parses "PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS …" of the first thread (proc(5)); NAME
// may contain any character.
bool is_exiting(const std::string& stat) {
  size_t end = stat.rfind(')');
  if (end == std::string::npos) return false;
  std::istringstream words(stat.substr(end + 1));
  char state = 0;
  std::string skipped;
  uint64_t flags = 0;
  words >> state >> skipped >> skipped >> skipped >> skipped >> skipped >> flags;
  return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
}

bool is_killed(std::istream& status) {
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if (std::stoull(line.substr(line.find(':') + 1), nullptr, 16) & kKilled) return true;
  }
  return false;
}

}  // namespace

bool is_dying(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (std::getline(stat, line) && is_exiting(line)) return true;
  std::ifstream status(fmt::format("/proc/{}/status", process));
  return is_killed(status);
}

}  // namespace rocefs
