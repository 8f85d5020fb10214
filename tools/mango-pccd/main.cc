// mango-pccd: the processor of a card. rocefs starts one for each device; it loads plugins and
// calls the applied congestion control algorithm. A process of its own, because plugins are others'
// code. It starts itself once for each plugin that it is about to load. `mango-pccd replay` needs
// no daemon.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/process/open_files.h"
#include "core/process/standard_files.h"
#include "core/version/version.h"
#include "pcc/card/log_level.h"
#include "tools/mango-pccd/card.h"
#include "tools/mango-pccd/daemon_log.h"
#include "tools/mango-pccd/daemon_socket.h"
#include "tools/mango-pccd/last_words.h"
#include "tools/mango-pccd/privileges.h"
#include "tools/mango-pccd/replay.h"
#include "tools/mango-pccd/trial.h"

using namespace rocefs;

namespace {

constexpr const char* kHelp = R"(usage: mango-pccd replay TRACE.csv --algo FILE.so|NAME [OPTION]…

Runs congestion-control algorithms for a device of rocefs, which starts it: nobody else has to.
`mango-pccd replay` feeds a recording into an algorithm, without a mount; it has --help.

  -h, --help      this text
  -V, --version

mango-ctl(1) speaks to it by the files of the mount.
)";

// True if the daemon's socket is open.
bool has_daemon() {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(kDaemonSocket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET;
}

// Parses a complete decimal number.
template <class T>
bool parse(const char* text, T& number) {
  const char* end = text + std::strlen(text);
  auto [stopped, error] = std::from_chars(text, end, number);
  return error == std::errc() && stopped == end;
}

// Ends with _exit(): destructors of plugins' static objects do not run, since their threads may use
// the objects.
[[noreturn]] void serve(Card& card) {
  for (;;) {
    std::optional<DaemonDatagram> datagram = receive_datagram();
    if (!datagram) ::_exit(0);
    Result<CardOrder> order = parse_order(datagram->text);
    if (!order) end_because("rocefs says what this mango-pccd does not understand");
    CardAnswer answer = card.obey(*order, datagram->descriptors[0], datagram->descriptors[1]);
    std::string text = format_word(answer);
    if (text.size() > kMaxCardMessage) {
      text = format_word(CardAnswer{order->id, Error{E2BIG, "the answer is too long"}});
    }
    send_datagram(text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_files();
  // Lines of plugins are logged when they are printed: the output is a pipe.
  ::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const std::string_view option = argc == 2 ? argv[1] : "";
  if (option == "-V" || option == "--version") {
    std::printf("mango-pccd %s (rocefs)\n", kVersion);
    return 0;
  }
  if (option == "-h" || option == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == kTrialWord) try_plugin(argv[2]);
  if (argc > 1 && argv[1] == kReplayWord) return replay({argv + 2, argv + argc});
  uint64_t seed = 1;
  uid_t uid = 0;
  gid_t gid = 0;
  rlim_t open_files = 0;
  unsigned debug = 0;
  bool understood = argc == 7 && parse(argv[6], debug) && parse(argv[2], seed) &&
                    parse(argv[3], uid) && parse(argv[4], gid) && parse(argv[5], open_files);
  if (!understood || !has_daemon()) {
    std::fprintf(stderr,
                 "mango-pccd: rocefs starts it: mango-pccd DEVICE SEED UID GID FILES DEBUG\n");
    return 2;
  }
  ::fcntl(kDaemonSocket, F_SETFD, FD_CLOEXEC);
  limit_open_files(open_files);
  if (std::string why = become_owner(uid, gid); !why.empty()) end_because(why);
  announce_own_exit();
  announce_own_death();
  DaemonLog log;
  Card card(seed, debug == 1, [&log](mango_log_level_e level, std::string_view text) {
    log.log(log_level_of(level), text);
  });
  serve(card);
}
