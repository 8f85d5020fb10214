// mango-pccd: the processor of a card. It is started by rocefs, one for each device, and has the
// device's congestion-control algorithms: it loads plugins and calls what is applied. That they are
// others' code is why it is a process of its own.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "pcc/card/log_level.h"
#include "tools/mango-pccd/card.h"
#include "tools/mango-pccd/daemon_log.h"
#include "tools/mango-pccd/daemon_socket.h"
#include "tools/mango-pccd/last_words.h"

using namespace rocefs;

namespace {

// Whether whoever started this is there to be talked to.
bool has_daemon() {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(kDaemonSocket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET;
}

// Plugins' static objects are left as they are: whoever has them may be using them.
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
  uint64_t seed = 1;
  const char* end = argc == 3 ? argv[2] + std::strlen(argv[2]) : nullptr;
  if (argc != 3 || std::from_chars(argv[2], end, seed).ptr != end || !has_daemon()) {
    std::fprintf(stderr, "mango-pccd: rocefs starts it: mango-pccd DEVICE SEED\n");
    return 2;
  }
  ::fcntl(kDaemonSocket, F_SETFD, FD_CLOEXEC);
  announce_own_death();
  DaemonLog log;
  Card card(seed, [&log](mango_log_level_e level, std::string_view text) {
    log.log(log_level_of(level), text);
  });
  serve(card);
}
