// rocefs-view: serves a page that shows a mount. `rocefs view` starts it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "core/process/mount_table.h"
#include "core/process/standard_files.h"
#include "core/version/version.h"
#include "tools/rocefs-view/recorder.h"
#include "tools/rocefs-view/view_api.h"
#include "tools/rocefs-view/view_options.h"
#include "tools/watch/mount_shape.h"

namespace {

using namespace rocefs;

constexpr int kUsage = 2, kFailed = 1;

int fail(int status, const Error& error) {
  std::fprintf(stderr, "rocefs view: %s\n", error.reason.c_str());
  if (status == kUsage) std::fputs("rocefs view --help tells more\n", stderr);
  return status;
}

void block_ends() {
  sigset_t ends;
  sigemptyset(&ends);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// Waits for the signals on a thread of its own: a look at a mount that hangs must not keep the
// program.
void end_by_signal() {
  std::thread([] {
    sigset_t ends;
    sigemptyset(&ends);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
    int signal = 0;
    ::sigwait(&ends, &signal);
    ::_exit(0);
  }).detach();
}

// Prints the page's address. Whether that could be written.
bool tell(const PageServer& server, const std::string& what) {
  std::printf("%s shows %s\n", server.url().c_str(), what.c_str());
  return std::fflush(stdout) == 0;
}

int show_mount(PageServer& server, const ViewOptions& options) {
  Result<std::string> mount_point = chosen_mount(options.mount_point);
  if (!mount_point) return fail(kFailed, mount_point.error());
  Result<MountFiles> files = MountFiles::open(*mount_point);
  if (!files) return fail(kFailed, files.error());
  Feed feed(*files, options.interval, [&server] { server.stop(); });
  const ViewApi api(server, *files, feed);
  std::unique_ptr<Recorder> recorder;
  if (!options.record.empty()) {
    Result<std::string> shape = shape_json(*files, false);
    if (!shape) return fail(kFailed, shape.error());
    auto begun = Recorder::begin(options.record, *shape, feed);
    if (!begun) return fail(kFailed, begun.error());
    recorder = std::move(*begun);
  }
  if (!tell(server, *mount_point)) ::_exit(fail(kFailed, {EIO, "the address cannot be written"}));
  end_by_signal();
  server.run();
  // Threads that wait for a mount, or for a browser, are not waited for.
  std::fprintf(stderr, "rocefs view: %s: the mount has ended\n", mount_point->c_str());
  ::_exit(kFailed);
}

int replay(PageServer& server, const ViewOptions& options) {
  if (Result<void> added = add_replay(server, options.replay); !added) {
    return fail(kFailed, added.error());
  }
  if (!tell(server, options.replay)) return fail(kFailed, {EIO, "the address cannot be written"});
  end_by_signal();
  server.run();
  return fail(kFailed, {EIO, "the server has ended"});
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_files();
  Result<ViewOptions> options = parse_view(argc, argv);
  if (!options) return fail(kUsage, options.error());
  if (options->help || options->version) {
    if (options->help) std::fputs(kViewUsage, stdout);
    if (options->version) std::printf("rocefs %s\n", kVersion);
    return flush_standard_output("rocefs view", 0);
  }
  block_ends();
  auto server = PageServer::listen(options->address, options->port,
                                   !options->read_only && options->replay.empty());
  if (!server) return fail(kFailed, server.error());
  return options->replay.empty() ? show_mount(**server, *options) : replay(**server, *options);
}
