#include "tools/rocefs/rig/wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/base/units.h"
#include "core/process/mount_table.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/rig/condition.h"

namespace rocefs {

const char* const kWaitUsage =
    R"(usage: rocefs wait [-m MOUNTPOINT] [--timeout TIME] CONDITION…

Waits until all conditions hold at once. A condition is one of

  PATH=PATTERN PATH!=PATTERN           the file's text matches a pattern of the shell, or does not
  'PATH<NUMBER' 'PATH<=NUMBER' 'PATH>NUMBER' 'PATH>=NUMBER'

PATH begins at the mount point, or with a slash. It may have wildcards: all files that match must
meet the condition, and there must be one. A file that does not exist yet is waited for.

  -m MOUNTPOINT    mount of the files ($ROCEFS_MOUNT, or the only mounted rocefs)
  --timeout TIME   the longest wait: 500ms, 5s, 2m, 1h or seconds (60); 0 looks once, `none` has
                   no limit
  -h, --help       this text
  -V, --version

The exit status is 0 if the conditions hold, 124 after TIME, with a line for each condition that
does not hold, 1 if the files cannot be read, and 2 if the command line is wrong.

  rocefs wait --timeout 10s 'class/infiniband/mb_*/ports/1/state=4: ACTIVE'
  rocefs wait 'class/infiniband/mb_0/ports/1/counters/port_xmit_packets>=1000'
)";

namespace {

constexpr char kWaitProgram[] = "rocefs wait";
constexpr int kTimedOut = 124;  // as of timeout(1)
constexpr TimeNs kDefaultTimeout = 60 * kSecond;
constexpr TimeNs kMaxTimeout = 1'000'000 * kSecond;  // its sum with the clock's time is a time
// Time beyond the deadline that a mount may take to answer.
constexpr TimeNs kAnswer = 2 * kSecond;

struct WaitOptions {
  bool help = false, version = false;
  std::string mount_point;
  TimeNs timeout = kDefaultTimeout;
  std::vector<Condition> conditions;
};

// Takes minutes (1m) and hours (1h) beside the units of parse_duration().
Result<TimeNs> timeout_of(const std::string& said) {
  std::string text = said;
  if (text == "none") return kNever;
  TimeNs factor = 1;
  if (text.ends_with('m') || text.ends_with('h')) {
    factor = text.back() == 'm' ? 60 : 3600;
    text.back() = 's';
  }
  if (!text.empty() && text.find_first_not_of(".0123456789") == std::string::npos) text += "s";
  Result<TimeNs> time = parse_duration(text);
  if (!time) {
    return errorf(EINVAL, "--timeout {}: {}", said,
                  factor == 1 ? time.error().reason : "a number is wanted before m or h");
  }
  if (*time > kMaxTimeout / factor) return errorf(ERANGE, "--timeout {}: none has no limit", said);
  return *time * factor;
}

Result<WaitOptions> parse_wait(int argc, char** argv) {
  WaitOptions options;
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {"timeout", required_argument, nullptr, 't'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":m:hV", kLong, nullptr)) != -1;) {
    if (c == 'h' || c == 'V') {
      (c == 'h' ? options.help : options.version) = true;
      return options;
    }
    if (c == 'm') {
      options.mount_point = optarg;
    } else if (c == 't') {
      Result<TimeNs> timeout = timeout_of(optarg);
      if (!timeout) return timeout.error();
      options.timeout = *timeout;
    } else {
      return errorf(EINVAL, "{} {}", argv[optind - 1],
                    c == ':' ? "requires a value" : "is no option");
    }
  }
  for (; argv[optind]; ++optind) {
    Result<Condition> condition = Condition::parse(argv[optind]);
    if (!condition) return condition.error();
    options.conditions.push_back(std::move(*condition));
  }
  if (options.conditions.empty()) return Error{EINVAL, "a condition is wanted"};
  return options;
}

// Pattern that stands for this path alone.
std::string literally(const std::string& path) {
  std::string pattern;
  for (char letter : path) {
    if (std::strchr("*?[\\", letter)) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

// Whether files may appear or answer later.
bool passes_by_itself(int code) {
  return code == ENOENT || code == ENOTDIR || code == ENODEV || code == EAGAIN || code == ESRCH;
}

// Fails if a directory cannot be read, by an errno that no waiting mends. One that cannot be
// searched has no file for the pattern, as in a shell: it is told of where there is no other.
Result<std::vector<std::string>> files_of(const std::string& pattern) {
  static std::optional<Error> refused, unsearched;  // glob(3) hands nothing to its callbacks
  refused.reset();
  unsearched.reset();
  auto refuse = [](const char* path, int code) {
    if (passes_by_itself(code)) return 0;
    refused = errorf(code, "{}: {}", path, std::strerror(code));
    return 1;
  };
  // glob(3) takes a file that it cannot look at for none.
  glob_t found{};
  found.gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  found.gl_readdir = [](void* directory) { return ::readdir(static_cast<DIR*>(directory)); };
  found.gl_closedir = [](void* directory) { ::closedir(static_cast<DIR*>(directory)); };
  found.gl_stat = [](const char* path, struct stat* file) { return ::stat(path, file); };
  found.gl_lstat = [](const char* path, struct stat* file) {
    if (::lstat(path, file) == 0) return 0;
    const int code = errno;
    if (!unsearched && !passes_by_itself(code)) {
      unsearched = errorf(code, "{}: {}", path, std::strerror(code));
    }
    errno = code;
    return -1;
  };
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_ALTDIRFUNC, refuse, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  if (refused) return *refused;
  if (unsearched && files.empty()) return *unsearched;
  return files;
}

// Text without the newline at its end. The file stays open: it can be polled for a change.
Result<std::string> read_all(int file) {
  std::string text;
  char part[4096];
  for (ssize_t size; (size = ::read(file, part, sizeof part)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error{errno, std::strerror(errno)};
    text.append(part, static_cast<size_t>(size));
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// One look at the files of a condition. They stay open, for poll(2).
class ConditionLook {
 public:
  // EACCES, ENOTCONN and other errors that no waiting mends.
  static Result<ConditionLook> at(const Condition& condition, const std::string& mount_point);

  bool holds() const { return unmet_.empty(); }
  // Line about the first file that does not meet the condition.
  const std::string& unmet() const { return unmet_; }
  const std::vector<Fd>& files() const { return files_; }

 private:
  std::string unmet_;
  std::vector<Fd> files_;
};

Result<ConditionLook> ConditionLook::at(const Condition& condition,
                                        const std::string& mount_point) {
  const bool absolute = condition.path().starts_with('/');
  const std::string place = absolute ? "" : mount_point + "/";
  Result<std::vector<std::string>> found = files_of(literally(place) + condition.path());
  if (!found) return found.error();
  std::vector<std::string> paths = std::move(*found);
  ConditionLook look;
  // A path without wildcards is looked up for its own errno.
  const bool plain = condition.path().find_first_of("*?[") == std::string::npos;
  if (paths.empty() && plain) paths.push_back(place + condition.path());
  if (paths.empty()) look.unmet_ = condition.path() + ": no such file";
  for (const std::string& path : paths) {
    const std::string shown = path.substr(place.size());
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    Result<std::string> text =
        file ? read_all(file.get()) : Result<std::string>(Error{errno, std::strerror(errno)});
    if (!text && !passes_by_itself(text.error().code)) {
      return errorf(text.error().code, "{}: {}", path, text.error().reason);
    }
    Result<bool> met = text ? condition.met_by(*text) : Result<bool>(text.error());
    if (file) look.files_.push_back(std::move(file));
    if ((met && *met) || !look.unmet_.empty()) continue;
    look.unmet_ = met ? fmt::format("{} is '{}', not {}", shown, *text, condition.requirement())
                      : fmt::format("{}: {}", shown, met.error().reason);
  }
  return look;
}

// Device number of a mount; nothing once it has ended, also if other files are at its path then.
std::optional<dev_t> device_of(const std::string& mount_point) {
  struct stat root {};
  if (::stat(mount_point.c_str(), &root) != 0) return std::nullopt;
  return root.st_dev;
}

// Part of a path that leads to an existing file, without links. It ends before wildcards.
std::string existing_part(const std::string& path) {
  std::string part = path.substr(0, path.find_first_of("*?[\\"));
  for (size_t slash; (slash = part.rfind('/')) != std::string::npos;) {
    part.resize(slash);
    std::unique_ptr<char, decltype(&std::free)> real(::realpath((part + "/").c_str(), nullptr),
                                                     std::free);
    if (real) return real.get();
  }
  return "";
}

// Mount that a path with a slash at its beginning leads to; empty if that is no rocefs.
std::string rocefs_of(const std::string& path) {
  const std::string place = existing_part(path);
  const Mount* nearest = nullptr;
  const std::vector<Mount> table = mount_table();
  for (const Mount& mount : table) {
    const std::string& point = mount.point;
    const bool above = place.starts_with(point) &&
                       (point == "/" || place.size() == point.size() || place[point.size()] == '/');
    if (above && (!nearest || point.size() >= nearest->point.size())) nearest = &mount;
  }
  return nearest && nearest->is_rocefs() ? nearest->point : "";
}

// Mounts of the files, each from the first look at which it is there.
class Mounts {
 public:
  Mounts(const std::vector<Condition>& conditions, const std::string& mount_point)
      : conditions_(conditions), mount_point_(mount_point), known_(conditions.size()) {}

  // ENOTCONN if one has ended.
  Result<void> check() {
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (!known_[i]) {
        known_[i] = mount_of(conditions_[i].path());
      } else if (device_of(known_[i]->point) != known_[i]->device) {
        return errorf(ENOTCONN, "{}: the mount has ended", known_[i]->point);
      }
    }
    return {};
  }

 private:
  struct Known {
    std::string point;
    dev_t device;
  };

  std::optional<Known> mount_of(const std::string& path) const {
    const std::string point = path.starts_with('/') ? rocefs_of(path) : mount_point_;
    const std::optional<dev_t> device = point.empty() ? std::nullopt : device_of(point);
    return device ? std::optional(Known{point, *device}) : std::nullopt;
  }

  const std::vector<Condition>& conditions_;
  const std::string& mount_point_;
  std::vector<std::optional<Known>> known_;  // by condition
};

// Knobs and states wake a poll when they change; counters and measured values do not, and are read
// again after a time that grows. An empty mount point: all paths are absolute.
Result<int> wait_until(const WaitOptions& options, TimeNs deadline,
                       const std::string& mount_point) {
  constexpr TimeNs kFirst = 5 * kMillisecond, kLongest = 50 * kMillisecond;
  Mounts mounts(options.conditions, mount_point);
  for (TimeNs pause = kFirst;; pause = std::min(pause * 3 / 2, kLongest)) {
    std::vector<ConditionLook> looks;
    if (Result<void> there = mounts.check(); !there) return there.error();
    for (const Condition& condition : options.conditions) {
      Result<ConditionLook> look = ConditionLook::at(condition, mount_point);
      if (!look) return look.error();
      looks.push_back(std::move(*look));
    }
    if (std::all_of(looks.begin(), looks.end(), [](const auto& look) { return look.holds(); })) {
      return 0;
    }
    const TimeNs left = deadline == kNever ? kNever : deadline - monotonic_ns();
    if (left <= 0) {
      for (const ConditionLook& look : looks) {
        if (!look.holds()) std::fprintf(stderr, "%s: %s\n", kWaitProgram, look.unmet().c_str());
      }
      return kTimedOut;
    }
    std::vector<pollfd> files;
    for (const ConditionLook& look : looks) {
      for (const Fd& file : look.files()) files.push_back({file.get(), POLLPRI, 0});
    }
    const TimeNs wait = std::min(pause, left);
    const timespec time{wait / kSecond, wait % kSecond};
    // A file that changes all the time, or has gone, wakes each poll at once.
    const timespec least{0, kMillisecond};
    if (::ppoll(files.data(), files.size(), &time, nullptr) > 0) ::nanosleep(&least, nullptr);
  }
}

// Mount of the relative paths; empty if there are none. A named one that does not answer may do so
// later.
Result<std::string> mount_of(const WaitOptions& options) {
  const bool relative =
      std::any_of(options.conditions.begin(), options.conditions.end(),
                  [](const Condition& one) { return !one.path().starts_with('/'); });
  if (!relative) return std::string();
  Result<std::string> chosen = chosen_mount(options.mount_point);
  while (!chosen && chosen.error().code == ETIMEDOUT) chosen = chosen_mount(options.mount_point);
  return chosen;
}

int choose_and_wait(const WaitOptions& options) {
  const TimeNs deadline = options.timeout == kNever ? kNever : monotonic_ns() + options.timeout;
  Result<std::string> mount_point = mount_of(options);
  Result<int> status =
      mount_point ? wait_until(options, deadline, *mount_point) : Result<int>(mount_point.error());
  return status ? *status : print_failure({1, "wait: " + status.error().reason});
}

// choose_and_wait() in another process: a caller whose file system does not answer waits in the
// kernel, beyond the reach of a timer.
Result<int> wait_bounded(const WaitOptions& options) {
  const pid_t looker = ::fork();
  if (looker < 0) return Error{errno, std::strerror(errno)};
  if (looker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(choose_and_wait(options));
  }
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, looker, 0)));
  const TimeNs limit = options.timeout + kAnswer;
  const timespec time{limit / kSecond, limit % kSecond};
  pollfd ended{process.get(), POLLIN, 0};
  int status = 0;
  if (!process || ::ppoll(&ended, 1, &time, nullptr) != 0) {
    while (::waitpid(looker, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  ::kill(looker, SIGKILL);
  std::fprintf(stderr, "%s: the files do not answer\n", kWaitProgram);
  return kTimedOut;
}

}  // namespace

int wait_for_files(int argc, char** argv) {
  Result<WaitOptions> options = parse_wait(argc, argv);
  if (!options) return refuse_usage(kWaitProgram, options.error());
  if (options->version) return print_version();
  if (options->help) {
    std::fputs(kWaitUsage, stdout);
    return finish_output(0);
  }
  ::signal(SIGCHLD, SIG_DFL);  // the exit status of the child is the answer
  if (options->timeout == kNever) return choose_and_wait(*options);
  Result<int> status = wait_bounded(*options);
  if (!status) return print_failure({1, std::string("wait: ") + status.error().reason});
  return *status;
}

}  // namespace rocefs
