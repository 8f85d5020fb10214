// Headers that the address of a connection or datagram asks for, on the wire: traffic class, hop
// limit, flow label and the UDP source port that follows from it; and the migration state.
#include <catch2/catch.hpp>
#include <vector>

#include "rdma/packet/datagram.h"
#include "test/rdma/transport/lone.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

QpAttributes asking(uint32_t flow_label) {
  QpAttributes attributes;
  attributes.path.traffic_class = 0x68;
  attributes.path.hop_limit = 9;
  attributes.path.flow_label = flow_label;
  return attributes;
}

// Linux's rdma_flow_label_to_udp_sport(): 0xabcde is 0x2a:0x3cde by 14 bits.
constexpr uint32_t kLabel = 0xabcde;
constexpr uint16_t kPortOfLabel = 0xc000 | (0x2a ^ 0x3cde);

void check_addresses(const wire::Headers& headers, bool ipv6) {
  REQUIRE(headers.is_ipv6 == ipv6);
  CHECK((ipv6 ? headers.v6.traffic_class : headers.v4.tos) == 0x68);
  CHECK((ipv6 ? headers.v6.hop_limit : headers.v4.ttl) == 9);
  if (ipv6) CHECK(headers.v6.flow_label == kLabel);
  CHECK(headers.udp.src_port == kPortOfLabel);
}

}  // namespace

TEST_CASE("addresses: requests and answers carry what the address of the connection asks for") {
  for (bool ipv6 : {false, true}) {
    INFO("IPv6: " << ipv6);
    Lone lone(asking(kLabel), 1 << 16, ipv6);
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kWrite, 0)));
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kRead, 8)));
    for (int i = 0; i < 2; ++i) {
      PacketPtr request = lone.near.data();
      check_addresses(Lone::headers_of(*request), ipv6);
      lone.request(std::move(request));
    }
    PacketPtr response = lone.far.data(), ack = lone.far.qp.responder().emit_acknowledge();
    check_addresses(Lone::headers_of(*response), ipv6);
    check_addresses(Lone::headers_of(*ack), ipv6);
  }
}

// Connections without a flow label are spread by their queue pairs.
TEST_CASE("addresses: without a flow label the source port is that of the queue pairs") {
  Lone bare(asking(0)), labelled(asking(kLabel)), coarse(asking(kLabel | 0xff00000));
  uint16_t ports[3];
  Lone* all[] = {&bare, &labelled, &coarse};
  for (int i = 0; i < 3; ++i) {
    all[i]->write(1, 0);
    ports[i] = Lone::headers_of(*all[i]->near.data()).udp.src_port;
    CHECK(ports[i] >= wire::kFirstSourcePort);
  }
  CHECK(ports[0] != kPortOfLabel);
  CHECK(ports[1] == kPortOfLabel);
  CHECK(ports[2] == kPortOfLabel);  // a label has 20 bits
}

TEST_CASE("addresses: a datagram carries what its own address asks for, and its GRH tells it") {
  for (size_t gid : {0, 1}) {
    INFO("GID " << gid);
    bool ipv6 = gid == 0;
    Pair pair(QpType::kUd);
    std::fill_n(pair.far_bytes().begin(), 140, uint8_t{0xff});
    pair.link.post(pair.link.receive(7, 0, 140));
    SendRequest send = pair.link.send(1, 200, 100);
    send.path = asking(kLabel).path;
    send.path.local = gids_of(pair.link.near_device.port().spec())[gid];
    send.path.remote = gids_of(pair.link.far_device.port().spec())[gid];
    std::vector<wire::Headers> seen;
    Watch forth(pair, "mb_0-sw_0", [&](const wire::Parsed& parsed, Packet&) {
      seen.push_back(parsed.headers);
      return false;
    });
    pair.link.post(send);
    pair.run();
    REQUIRE(seen.size() == 1);
    check_addresses(seen[0], ipv6);
    auto received = pair.received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].byte_len == 140);
    CHECK(received[0].grh == (ipv6 ? Grh::kIpv6 : Grh::kIpv4));
    std::array<uint8_t, wire::kMaxHeaderLen> emitted{};
    wire::emit(seen[0], emitted);
    std::vector<uint8_t> grh(kGrhLen);
    size_t length = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
    std::copy_n(emitted.begin(), length, grh.end() - static_cast<ptrdiff_t>(length));
    auto far = pair.far_bytes();
    CHECK(std::vector<uint8_t>(far.begin(), far.begin() + kGrhLen) == grh);
    CHECK(pair.same(200, kGrhLen, 100));
  }
}

// IBTA 17.2.8: a queue pair begins in the state MIGRATED, which MigReq 1 says. Soft-RoCE sends 0.
TEST_CASE("addresses: MigReq is 1 in what is sent, and either is taken") {
  Lone lone;
  for (bool migrated : {true, false}) {
    uint64_t at = migrated ? 0 : 1;
    lone.write(7, at);
    PacketPtr request = lone.near.data();
    wire::Headers headers = Lone::headers_of(*request);
    CHECK(headers.bth.mig_req);
    headers.bth.mig_req = migrated;
    Lone::rewrite(*request, headers);
    lone.request(std::move(request));
    CHECK(lone.far.bytes[at] == 7);
    PacketPtr answer = lone.far.qp.responder().emit_acknowledge();
    headers = Lone::headers_of(*answer);
    CHECK(headers.bth.mig_req);
    headers.bth.mig_req = migrated;
    Lone::rewrite(*answer, headers);
    lone.take(std::move(answer));
    CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
  }
}
