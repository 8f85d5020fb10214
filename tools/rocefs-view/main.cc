// rocefs-view: serves a page that shows a mount. `rocefs view` starts it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "core/process/mount_table.h"
#include "core/version/version.h"
#include "tools/rocefs-view/server.h"
#include "tools/rocefs-view/view_options.h"

namespace {

using namespace rocefs;

constexpr int kUsage = 2, kFailed = 1;

int fail(int status, const Error& error) {
  std::fprintf(stderr, "rocefs view: %s\n", error.reason.c_str());
  if (status == kUsage) std::fputs("rocefs view --help tells more\n", stderr);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Result<ViewOptions> options = parse_view(argc, argv);
  if (!options) return fail(kUsage, options.error());
  if (options->help) return std::fputs(kViewUsage, stdout), 0;
  if (options->version) return std::printf("rocefs %s\n", kVersion), 0;
  Result<std::string> mount_point = chosen_mount(options->mount_point);
  if (!mount_point) return fail(kFailed, mount_point.error());
  Result<MountFiles> files = MountFiles::open(*mount_point);
  if (!files) return fail(kFailed, files.error());

  // Waited for by a thread of its own; a look at a mount that hangs must not keep the program.
  sigset_t ends;
  sigemptyset(&ends);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  auto server = ViewServer::listen(*files, options->address, options->port, !options->read_only,
                                   options->interval);
  if (!server) return fail(kFailed, server.error());
  std::printf("%s shows %s\n", (*server)->url().c_str(), mount_point->c_str());
  if (std::fflush(stdout) != 0) return fail(kFailed, {EIO, "the page's address cannot be written"});
  std::thread([&ends] {
    int signal = 0;
    ::sigwait(&ends, &signal);
    ::_exit(0);
  }).detach();
  (*server)->run();
  // Threads that wait for a mount, or for a browser, are not waited for.
  std::fprintf(stderr, "rocefs view: %s: the mount has ended\n", mount_point->c_str());
  ::_exit(kFailed);
}
