// Conversations of the golden capture, with one end played by our code: a queue pair that is
// brought into the state of the capture's, and posts the same requests.
#pragma once

#include <set>
#include <string>

#include "rdma/wire/aeth.h"
#include "test/rdma/uplink/golden_peer.h"
#include "test/rdma/uplink/uplinked.h"

namespace rocefs::test {

struct Conversation {
  const char* name;
  size_t first, last;  // packets of the capture
  QpType type = QpType::kRc;
};

// Action of the played end for one packet.
struct Line {
  Spoken spoken;
  bool opener;  // said by the end that has spoken first
};

inline std::vector<Line> lines_of(const std::vector<Bytes>& golden, const Conversation& which) {
  std::vector<Line> lines;
  for (size_t i = which.first; i <= which.last; ++i) {
    Spoken spoken = spoken_of(golden.at(i));
    bool same = true;
    if (!lines.empty()) {
      const wire::Headers &a = lines[0].spoken.headers, &b = spoken.headers;
      same = a.is_ipv6 ? a.v6.src == b.v6.src : a.v4.src == b.v4.src;
    }
    lines.push_back({std::move(spoken), same});
  }
  return lines;
}

// The local end. Packets are passed to it as in the capture.
class End {
 public:
  static constexpr uint32_t kMtu = 1024;
  static constexpr uint32_t kQkey = 0x11111111;
  static constexpr uint64_t kTargets = Host::kArea / 2;  // where the far end writes and reads
  static constexpr uint32_t kRoom = 8192;                // octets of a message
  static constexpr uint64_t kInbox = kTargets - 2 * kRoom;

  End(Host& host, const Ip& own, const Ip& peer, QpType type, QpAttributes attributes)
      : host_(host), own_(own) {
    attributes.path.local = own;
    attributes.path.remote = peer;
    attributes.path_mtu = kMtu;
    attributes.qkey = kQkey;
    attributes.min_rnr_timer = 27;  // 122.88 ms
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    bool up = false;
    host_.on_core([&] {
      unread_ = *host_.device().memory().add(host_.memory, Host::kAddress, Host::kArea, Host::kPd,
                                             kLocalWrite | kRemoteWrite);
      QpInit init;
      init.type = type;
      init.pd = Host::kPd;
      init.send_cq = &sent_;
      init.receive_cq = &received_;
      init.send_depth = init.receive_depth = 256;
      qp_ = *host_.device().create_qp(init);
      up = bool(qp_->bring_up(attributes));
    });
    REQUIRE(up);
  }
  ~End() {
    host_.on_core([this] { host_.device().destroy_qp(*qp_); });
  }

  uint32_t number() const { return qp_->number(); }
  uint32_t unread_key() const { return unread_; }
  QpState state() {
    QpState state{};
    host_.on_core([&] { state = qp_->state(); });
    return state;
  }
  const Ip& address() const { return own_; }
  // A receive request of kRoom octets at kInbox.
  void give_receive() {
    ReceiveRequest request;
    request.sges = part(kInbox, kRoom);
    post(request);
  }
  Sge part(uint64_t at, uint32_t length) const { return {Host::kAddress + at, length, host_.key}; }
  void post(const auto& request) {
    bool posted = false;
    host_.on_core([&] { posted = bool(qp_->post(request)); });
    REQUIRE(posted);
  }
  std::vector<Completion> sent(size_t count) { return await(sent_, count); }
  std::vector<Completion> received(size_t count) { return await(received_, count); }
  Bytes bytes(uint64_t at, size_t length) {
    Bytes copy;
    host_.on_core([&] {
      auto from = host_.memory->bytes().subspan(at, length);
      copy.assign(from.begin(), from.end());
    });
    return copy;
  }
  void put(uint64_t at, const Bytes& bytes) {
    host_.on_core(
        [&] { std::copy(bytes.begin(), bytes.end(), host_.memory->bytes().subspan(at).begin()); });
  }
  // Bytes that are on their way may take a moment.
  bool holds(uint64_t at, const Bytes& wanted) {
    for (TimeNs end = monotonic_ns() + 5 * kSecond; monotonic_ns() < end;) {
      if (bytes(at, wanted.size()) == wanted) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  std::vector<Completion> await(CompletionQueue& queue, size_t count) {
    std::vector<Completion> all;
    for (TimeNs end = monotonic_ns() + 10 * kSecond; monotonic_ns() < end;) {
      host_.on_core([&] {
        Completion batch[64];
        size_t polled = queue.poll(batch);
        all.insert(all.end(), batch, batch + polled);
      });
      if (all.size() >= count) break;
      std::this_thread::yield();
    }
    return all;
  }

  Host& host_;
  const Ip own_;
  CompletionQueue sent_{1024}, received_{1024};
  uint32_t unread_ = 0;  // the key of the same memory without the right to read
  Qp* qp_ = nullptr;
};

// A conversation with the peer at one of its ends.
class Replay {
 public:
  // `opener`: the peer is the end that spoke first.
  Replay(Host& host, const Ip& own, Peer& peer, std::vector<Line> lines, QpType type, bool opener);

  // In the capture's order, but our answers are awaited before the peer continues.
  void run();
  size_t heard() const { return heard_; }

 private:
  struct Asked {
    uint64_t at = 0;  // where its answer goes
    Bytes answer;     // a READ's or an atomic's
    WcStatus status = WcStatus::kSuccess;
  };

  bool peers(const Line& line) const { return line.opener == opener_; }
  const Line* find(auto which) const {
    auto found = std::find_if(lines_.begin(), lines_.end(), which);
    return found == lines_.end() ? nullptr : &*found;
  }
  uint64_t target(uint64_t va) const { return End::kTargets + 0x8000 + va - first_va_; }
  QpAttributes attributes();
  void answer_in_turn();
  const wire::Aeth* refusal() const;
  Bytes answer_to(const Spoken& request) const;

  // Lines of the peer.
  void say(const Spoken& spoken);
  bool withheld(const Spoken& spoken) const;
  void prepare(const Spoken& request);
  Spoken for_us(Spoken spoken) const;
  void check_taken(const Spoken& request);
  // Lines of our end.
  void ask(const Spoken& first);
  void expect(Spoken spoken);
  void finish();

  std::vector<Line> lines_;
  const bool opener_;
  const QpType type_;
  Peer& peer_;
  size_t at_ = 0;  // the line
  uint32_t key_ = 0, first_key_ = 0;
  uint64_t first_va_ = 0;
  bool deaf_ = false;                 // our end expects a PSN that never comes
  std::set<uint32_t> asked_, given_;  // PSNs: of our requests, of the peer's that got a receive
  std::vector<Asked> requests_;
  Bytes taken_;  // octets of the peer's message so far
  uint64_t taken_at_ = 0;
  Bytes last_heard_;
  size_t heard_ = 0;
  std::optional<End> end_;
};

}  // namespace rocefs::test
