// Two devices, each with a program's channel, and a tap on the wire between them.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "rdma/cm/ucma.h"
#include "rdma/cm/ucma_abi.h"
#include "test/rdma/world.h"

namespace rocefs::test {

// Tap on all CM messages in both directions: a test may drop or double one.
class CmWire {
 public:
  explicit CmWire(World& world) {
    for (const char* name : {"mb_0-sw_0", "mb_1-sw_0"}) {
      taps_.push_back(std::make_unique<Meddler>(world, world.link(name), 1, Meddler::Odds{}));
      taps_.back()->script = [this, tap = taps_.back().get()](const wire::Parsed& parsed,
                                                              Packet& packet) {
        return see(*tap, parsed, packet);
      };
    }
  }
  // Fates of the next messages of a kind, in order: '-' lost, '2' doubled, '.' delivered.
  void fate(std::string_view kind, std::string_view fates) {
    for (char one : fates) fates_[std::string(kind)].push_back(one);
  }
  // Messages sent since the last call: "req rep rtu".
  void expect(std::string_view wanted) {
    std::string got = std::exchange(said_, {});
    CHECK(got == wanted);
  }
  std::vector<cm::Message> messages;

 private:
  bool see(Meddler& tap, const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.dest_qpn != kGsiQpn) return false;
    auto message = cm::parse({payload_bytes(packet), packet.payload.length});
    if (!message) return false;
    messages.push_back(message->message);
    std::string name(cm::kNames[message->message.index()]);
    said_ += (said_.empty() ? "" : " ") + name;
    auto& fates = fates_[name];
    if (fates.empty()) return false;
    char fate = fates.front();
    fates.pop_front();
    if (fate == '2') tap.deliver(tap.copy(packet));
    return fate == '-';
  }

  std::vector<std::unique_ptr<Meddler>> taps_;
  std::map<std::string, std::deque<char>> fates_;
  std::string said_;
};

// Program at its channel, with librdmacm's commands.
class Program {
 public:
  explicit Program(Ucma& ucma, uint64_t name, uint32_t uid = 0) : ucma_(ucma), name_(name) {
    ucma_.open(name, {uid, uid == 0}, [this] { ++woken; });
  }
  // Program on a host.
  Program(Ucma& ucma, uint64_t name, CmScope scope) : ucma_(ucma), name_(name) {
    ucma_.open(name, {0, true, std::move(scope)}, [this] { ++woken; });
  }
  ~Program() { ucma_.close(name_); }
  UcmaChannel& channel() { return *ucma_.channel(name_); }

  template <class C>
  static std::vector<uint8_t> octets(ucma::Command command, const C& body, size_t out) {
    ucma::Header header{static_cast<uint32_t>(command), sizeof body, static_cast<uint16_t>(out)};
    std::vector<uint8_t> bytes(sizeof header + sizeof body);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
    return bytes;
  }
  // Returns an errno, or 0; the answer is in `answer`.
  template <class C>
  int call(ucma::Command command, const C& body, void* answer = nullptr, size_t out = 0,
           std::span<const uint8_t> option = {}, UcmaChannel* other = nullptr) {
    auto reply = channel().command(octets(command, body, out), option, other);
    if (!reply) return reply.error().code;
    emptied = reply->emptied;
    if (answer) std::memcpy(answer, reply->bytes.data(), reply->bytes.size());
    return 0;
  }
  template <class C>
  void must(ucma::Command command, const C& body) {
    INFO("command " << static_cast<int>(command));
    REQUIRE(call(command, body) == 0);
  }
  static ucma::SockaddrIn6 ipv4(unsigned last, uint16_t port, std::array<uint8_t, 3> net) {
    ucma::SockaddrIn6 address{};
    address.bytes = {2,      0,      uint8_t(port >> 8), uint8_t(port), net[0],
                     net[1], net[2], uint8_t(last)};
    return address;
  }

  // [::]:port.
  static ucma::SockaddrIn6 any_ipv6(uint16_t port) {
    ucma::SockaddrIn6 address{};
    address.bytes = {10, 0, uint8_t(port >> 8), uint8_t(port)};
    return address;
  }

  uint32_t create(uint64_t uid, PortSpace space = PortSpace::kTcp) {
    ucma::CreateId asked{};
    asked.uid = uid;
    asked.space = static_cast<uint16_t>(space);
    asked.qp_type = space == PortSpace::kUdp ? 4 : 2;
    ucma::IdAnswer answer{};
    REQUIRE(call(ucma::Command::kCreateId, asked, &answer, sizeof answer) == 0);
    return answer.id;
  }
  uint32_t destroy(uint32_t id) {
    ucma::EventsAnswer answer{};
    REQUIRE(call(ucma::Command::kDestroyId, ucma::DestroyId{0, id, 0}, &answer, sizeof answer) ==
            0);
    return answer.events_reported;
  }
  void listen(uint32_t id, const ucma::SockaddrIn6& at, uint32_t backlog = 8) {
    must(ucma::Command::kBindIp, ucma::BindIp{0, at, id});
    must(ucma::Command::kListen, ucma::Listen{id, backlog});
  }
  void resolve(uint32_t id, const ucma::SockaddrIn6& to) {
    must(ucma::Command::kResolveIp, ucma::ResolveIp{{}, to, id, 1000});
    expect(CmEventType::kAddressResolved);
    must(ucma::Command::kResolveRoute, ucma::ResolveRoute{id, 1000});
    expect(CmEventType::kRouteResolved);
  }
  ucma::ConnectionParameters parameters(uint32_t qpn, std::string_view text = "") {
    ucma::ConnectionParameters p{};
    p.qpn = qpn;
    p.valid = 1;
    p.responder_resources = 3;
    p.initiator_depth = 2;
    p.retry_count = 5;
    p.rnr_retry_count = 6;
    std::memcpy(p.private_data.data(), text.data(), text.size());
    p.private_size = static_cast<uint8_t>(text.size());
    return p;
  }
  void connect(uint32_t id, uint32_t qpn, std::string_view text = "") {
    must(ucma::Command::kConnect, ucma::Connect{parameters(qpn, text), id, 0, {}});
  }
  void accept(uint32_t id, uint64_t uid, uint32_t qpn, std::string_view text = "") {
    must(ucma::Command::kAccept, ucma::Accept{uid, parameters(qpn, text), id, 0, {}});
  }
  // Active side: the RTU.
  void confirm(uint32_t id) { must(ucma::Command::kAccept, ucma::Accept{0, {}, id, 0, {}}); }
  ucma::QpAttr attributes(uint32_t id, uint32_t state) {
    ucma::QpAttr answer{};
    REQUIRE(call(ucma::Command::kInitQpAttr, ucma::InitQpAttr{0, id, state}, &answer,
                 sizeof answer) == 0);
    return answer;
  }
  // Next event, which must be there.
  ucma::EventAnswer event() {
    ucma::EventAnswer answer{};
    REQUIRE(call(ucma::Command::kGetEvent, ucma::GetEvent{0}, &answer, sizeof answer) == 0);
    return answer;
  }
  ucma::EventAnswer expect(CmEventType type, int32_t status = 0) {
    ucma::EventAnswer got = event();
    CHECK(got.type == static_cast<uint32_t>(type));
    CHECK(static_cast<int32_t>(got.status) == status);
    return got;
  }
  bool quiet() { return channel().events() == 0; }

  int woken = 0;
  bool emptied = false;

 private:
  Ucma& ucma_;
  const uint64_t name_;
};

struct CmRig {
  World world;
  CmWire wire{world};
  Cma cma{world.fabric, 0};
  Ucma ucma{cma};
  Program near{ucma, 1}, far{ucma, 2};
  uint16_t port = 7000;

  // mb_0 has 10.x.y.1, or the default address.
  ucma::SockaddrIn6 address(const char* device, uint16_t number) {
    const auto& v4 = world.device(device).port().spec().ipv4;
    return Program::ipv4(v4[3], number, {v4[0], v4[1], v4[2]});
  }
  void pass(TimeNs time = kMillisecond) { world.scheduler.run_until(world.scheduler.now() + time); }
  CmManager& manager(const char* device) { return cma.manager(world.device(device)); }

  struct Pair {
    uint32_t near = 0, far = 0, listener = 0;
  };
  // Connection from mb_0 to mb_1, of queue pairs 0x111 and 0x222.
  Pair connected() {
    Pair ids;
    ids.listener = far.create(0xa0);
    far.listen(ids.listener, address("mb_1", port));
    ids.near = near.create(0xb0);
    near.resolve(ids.near, address("mb_1", port));
    near.connect(ids.near, 0x111, "hello");
    pass();
    ids.far = far.expect(CmEventType::kConnectRequest).id;
    far.accept(ids.far, 0xa1, 0x222, "welcome");
    pass();
    near.expect(CmEventType::kConnectResponse);
    near.confirm(ids.near);
    pass();
    far.expect(CmEventType::kEstablished);
    return ids;
  }
};

}  // namespace rocefs::test
