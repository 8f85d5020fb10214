// Flows between two mounts: their messages, strangers at the rendezvous, and the states of both
// ends.
#include "rdma/traffic/rendezvous_message.h"
#include "test/rdma/traffic/flow_mount.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("rendezvous: messages parse as they were emitted, and other lines are refused") {
  FlowOffer offer;
  offer.spec = *parse_flow("f1 send mb_0 10.9.0.2 qps=2 size=3000 count=7 retry=3 timeout=9");
  offer.seed = ~uint64_t{0};
  offer.end = {4096, 1, 2, 3, {{0xffffff, 0}, {17, 0xffffff}}};
  Result<FlowMessage> parsed = parse_message(text_of(offer));
  REQUIRE(parsed);
  const auto& same = std::get<FlowOffer>(*parsed);
  CHECK(same.spec.name == "f1");
  CHECK(same.spec.op == FlowOp::kSend);
  CHECK(same.spec.qps == 2);
  CHECK(same.spec.size == 3000);
  CHECK(same.spec.count == 7);
  CHECK(same.spec.retry == 3);
  CHECK(same.spec.timeout == 9);
  CHECK(same.seed == offer.seed);
  CHECK(same.end.qps == offer.end.qps);
  for (const std::string line :
       {"", "flow", "flow 2", "flow 1", "done 1", "done ", "arrived received=1 bytes=1",
        "arrived received=1 bytes=1 mismatched=-1", "arrived received=+1 bytes=1 mismatched=1",
        "ready mtu=4097 address=0 key=0 bytes=0 qps=1:1",
        "ready mtu=0 address=0 key=0 bytes=0 qps=1:1",
        "ready mtu=300 address=0 key=0 bytes=0 qps=1:1",
        "ready mtu=1024 address=0 key=0 bytes=1073741825 qps=1:1",
        "ready mtu=1024 address=0 key=0 bytes=0 qps=16777216:1",
        "ready mtu=1024 address=0 key=0 bytes=0 qps=1", "fail", "fail "}) {
    INFO(line);
    CHECK_FALSE(parse_message(line));
  }
  for (const auto& [from, to] : {std::pair{"name=s", "name=../s"},
                                 {"name=s", "name=start"},
                                 {"op=write", "op=accept"},
                                 {"size=4096", "size=2G"},
                                 {"count=10", "count=0"},
                                 {"qps=300:1", "qps="},
                                 {"file=0", "file=2"},
                                 {"op=write", "op=atomic"},
                                 {"verify=1", "verify=0 verify=1"}}) {
    std::string line = kOffer;
    line.replace(line.find(from), std::strlen(from), to);
    INFO(line);
    CHECK_FALSE(parse_message(line));
  }
  CHECK(parse_message(kOffer));
  // A reason may be cut behind a word; blanks alone are no reason.
  for (const std::string& reason : {std::string(199, 'x') + " y", std::string("a\tb ")}) {
    std::string text = text_of(FlowFailure{reason});
    CHECK(std::get<FlowFailure>(*parse_message(text)).reason == text.substr(5));
    CHECK(std::get<FlowFailure>(*parse_message("fail " + reason + "z")).reason.size() <= 200);
  }
  CHECK_FALSE(parse_message("fail " + std::string(300, ' ') + "x"));
}

TEST_CASE("traffic: lines with an address, and accept, have their own rules") {
  CHECK(parse_flow("f write mb_0 2001:db8::1")->remote);
  CHECK(parse_flow("f read mb_0 10.9.0.2 out=/x")->output == "/x");
  CHECK(parse_flow("f accept mb_0 out=/x from=10.9.0.1")->accepts);
  for (const char* line : {"f write mb_0 10.9.0.2 file=/x out=/y", "f read mb_0 10.9.0.2 file=/x",
                           "f send mb_0 10.9.0.2 out=/y", "f write mb_0 10.9.0.2 gid=1", "f accept",
                           "f accept mb_0 qps=2", "f accept mb_0 file=/x out=/y",
                           "f accept mb_0 from=mb_1", "f uc mb_0 10.9.0.2 file=/x",
                           "f read mb_0 10.9.0.2 out=/x count=2", "exchange write mb_0 mb_1"}) {
    INFO(line);
    CHECK_FALSE(parse_flow(line));
  }
}

TEST_CASE("traffic: every kind of flow reaches another mount, and both ends report the same") {
  Mount near(2), far(3);
  for (const std::string op : {"write", "send", "read", "atomic", "atomic-write", "uc", "ud"}) {
    INFO(op);
    std::string line = fmt::format("{} {} mb_0 {} qps=3 count=500", op, op, far.address);
    if (!op.starts_with("atomic") && op != "ud") line += " size=5000";
    REQUIRE(near.start(line) == 0);
    REQUIRE(near.outcome(op) == "done");
    REQUIRE(far.outcome(op) == "done");
    CHECK(near.value(op, "messages") == "500");
    CHECK(near.value(op, "mismatched") == "0");
    CHECK(far.value(op, "mismatched") == "0");
    CHECK(near.value(op, "received") == far.value(op, "received"));
    CHECK(near.value(op, "bytes") == far.value(op, "bytes"));
    if (op != "uc" && op != "ud") CHECK(near.value(op, "received") == "500");
    CHECK(near.show(op + "/peer") == far.address);
    CHECK(far.show(op + "/peer") == near.address);
    CHECK(near.store(op + "/stop", "1") == 0);
    CHECK(far.store(op + "/stop", "1") == 0);
    CHECK(near.show(op + "/state").empty());
    CHECK(far.show(op + "/state").empty());
  }
  CHECK(near.host.device().find_qp(near.host.qp->number()) != nullptr);
}

TEST_CASE("traffic: a file is taken only by a waiting flow, which decides where it is written") {
  Mount near(4), far(5);
  std::string directory = "/tmp/rocefs-exchange-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()));
  std::string in = directory + "/in", out = directory + "/out";
  auto write = [](const std::string& path, const std::string& text) {
    FILE* file = ::fopen(path.c_str(), "w");
    REQUIRE(file);
    ::fwrite(text.data(), 1, text.size(), file);
    ::fclose(file);
  };
  auto read = [](const std::string& path) {
    std::string text(2'000'000, 0);
    FILE* file = ::fopen(path.c_str(), "r");
    if (!file) return std::string("none");
    text.resize(::fread(text.data(), 1, text.size(), file));
    ::fclose(file);
    return text;
  };
  std::string bytes;
  for (unsigned i = 0; i < 1'000'003; ++i) bytes += static_cast<char>(mix64(i));
  for (const std::string& content : {bytes, std::string()}) {
    write(in, content);
    for (const std::string op : {"write", "send"}) {
      INFO(op << " " << content.size());
      write(out, "before");
      std::string line = fmt::format("f {} mb_0 {} qps=2 size=4000 file={}", op, far.address, in);
      REQUIRE(near.start(line) == 0);
      CHECK(near.outcome("f") == fmt::format("failed: {}: for a real file somebody here must wait: "
                                             "f accept PORT …",
                                             far.address));
      CHECK(far.show("f/state").empty());
      near.store("f/stop", "1");
      REQUIRE(far.start("f accept mb_0 out=" + out + " from=" + near.address) == 0);
      CHECK(far.show("f/state") == "waiting");
      REQUIRE(near.start(line) == 0);
      REQUIRE(near.outcome("f") == "done");
      CHECK(read(out) == content);
      CHECK(far.outcome("f") == "done");
      near.store("f/stop", "1");
      far.store("f/stop", "1");
    }
    write(out, "before");
    REQUIRE(far.start("f accept mb_0 file=" + in) == 0);
    REQUIRE(near.start(fmt::format("f write mb_0 {}", far.address)) == 0);
    CHECK(near.outcome("f") == "failed: " + far.address + ": f waits for another direction");
    near.store("f/stop", "1");
    CHECK(far.show("f/state") == "waiting");
    REQUIRE(near.start(fmt::format("f read mb_0 {} qps=2 size=4000 out={}", far.address, out)) ==
            0);
    REQUIRE(near.outcome("f") == "done");
    CHECK(read(out) == content);
    near.store("f/stop", "1");
    far.store("f/stop", "1");
  }
  REQUIRE(far.start("f accept mb_0 from=192.0.2.1") == 0);
  REQUIRE(near.start(fmt::format("f write mb_0 {}", far.address)) == 0);
  CHECK(near.outcome("f") == "failed: " + far.address + ": f waits for another address");
  for (const std::string& path : {in, out}) ::unlink(path.c_str());
  ::rmdir(directory.c_str());
}

TEST_CASE("traffic: a waiting flow needs an address on an uplink, and has taken no time") {
  Mount mount(8);
  REQUIRE(mount.start("f accept mb_0") == 0);
  CHECK(mount.show("f/state") == "waiting");
  CHECK(mount.value("f", "elapsed_ns") == "0");
  CHECK(mount.start("g accept mb_1") == EADDRNOTAVAIL);
  CHECK(mount.why == "mb_1 has no address on an uplink");
}

TEST_CASE("traffic: an end that is stopped or disappears ends the other end") {
  Mount near(6);
  auto far = std::make_unique<Mount>(7);
  auto begin = [&](Mount& from, Mount& to) {
    REQUIRE(from.start(fmt::format("f write mb_0 {} count=100000000", to.address)) == 0);
    from.await_state("f", "running");
    to.await_state("f", "running");
  };
  begin(near, *far);
  near.store("f/stop", "1");
  CHECK(near.outcome("f") == "stopped");
  CHECK(far->outcome("f") == "failed: " + near.address + ": stopped");
  near.store("f/stop", "1");
  far->store("f/stop", "1");
  begin(near, *far);
  far->store("f/stop", "1");
  CHECK(near.outcome("f") == "failed: " + far->address + ": stopped");
  near.store("f/stop", "1");
  far->store("f/stop", "1");
  begin(near, *far);
  far->die();
  CHECK(near.outcome("f") == "failed: " + far->address + " has gone: the connection was closed");
  near.store("f/stop", "1");
  REQUIRE(near.start(fmt::format("f write mb_0 {}", far->address)) == 0);
  CHECK(near.outcome("f") == "failed: " + far->address + " port 18516: Connection refused");
  near.store("f/stop", "1");
  far.reset();
  far = std::make_unique<Mount>(7);  // with new queue pairs
  REQUIRE(near.start(fmt::format("f write mb_0 {} count=10", far->address)) == 0);
  CHECK(near.outcome("f") == "done");
}

TEST_CASE("traffic: an offer that arrives while its flow is being stopped starts nothing") {
  Mount far(16);
  REQUIRE(far.start("s accept mb_0") == 0);
  std::promise<void> busy, free;
  Task hold = [&] {
    busy.set_value();
    free.get_future().wait();
  };
  REQUIRE(far.host.engine->post(hold));
  busy.get_future().wait();
  auto stopped = std::async([&] { return far.store("s/stop", "1"); });
  Stranger stranger(far.address);
  // The store has given the stop to the core when it has begun.
  while (far.stores == 1) std::this_thread::yield();
  stranger.say(kOffer + "\n");
  bool came = far.host.comes([&] { return far.show("s/peer") == "127.0.0.1"; });
  free.set_value();
  REQUIRE(came);
  CHECK(stopped.get() == 0);
  CHECK(stranger.hear() == "fail stopped\n");
  CHECK(far.show("s/state") == "stopped");
  for (int i = 0; i < 20; ++i) {
    int64_t flows = -1;
    far.host.on_core([&] { flows = far.host.engine->outstanding().flows; });
    REQUIRE(flows == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_CASE("rendezvous: silent, malformed and endless lines are refused, and other flows continue") {
  Mount near(8), far(9);
  auto answer = [&](const std::string& said) {
    Stranger stranger(far.address);
    stranger.say(said);
    return stranger.hear();
  };
  CHECK(answer("GET / HTTP/1.1\r\n\r\n") == "fail 'GET / HTTP/1.1?' is no message of a flow\n");
  CHECK(answer("done\n") == "fail a flow begins with its offer\n");
  CHECK(answer(std::string(200'000, 'x')).empty());
  CHECK(answer(std::string(1000, '\n')).starts_with("fail"));
  // More connections than there is room for: silent ones make way.
  std::vector<std::unique_ptr<Stranger>> silent;
  for (size_t i = 0; i < 2 * FlowRendezvous::kMaxLines; ++i) {
    silent.push_back(std::make_unique<Stranger>(far.address));
  }
  REQUIRE(near.start(fmt::format("f write mb_0 {} count=10", far.address)) == 0);
  CHECK(near.outcome("f") == "done");
  // A message in the wrong state, and a near end that disappears.
  {
    Stranger stranger(far.address);
    stranger.say(kOffer + "\n");
    far.await_state("s", "running");
    CHECK(far.show("s/peer") == "127.0.0.1");
    stranger.say("done\ndone\n");
    CHECK(stranger.hear().starts_with("ready mtu=4096 "));
    CHECK(far.outcome("s").starts_with("failed: 127.0.0.1"));
  }
  far.store("s/stop", "1");
  {
    Stranger stranger(far.address);
    stranger.say(kOffer + "\n");
    far.await_state("s", "running");
  }
  CHECK(far.outcome("s").starts_with("failed: 127.0.0.1 has gone: "));
}

TEST_CASE("rendezvous: an impossible offer is refused and leaves nothing behind") {
  Mount near(12), far(13);
  auto offer = [](const std::string& op, const std::string& mtu) {
    return fmt::format(
        "flow 1 name=k op={} size=4096 count=1 window=64 timeout=14 retry=7 verify=1 file=0 "
        "seed=1 mtu={} address=0 key=0 bytes=0 qps=17:1\n",
        op, mtu);
  };
  for (int i = 0; i < 9; ++i) {
    for (const std::string op : {"ud", "write", "read"}) {
      for (const std::string mtu : {"256", "0", "300"}) {
        if (mtu == "256" && op != "ud") continue;
        INFO(op << " " << mtu);
        Stranger stranger(far.address);
        stranger.say(offer(op, mtu));
        CHECK(stranger.hear().starts_with("fail "));
        CHECK(far.show("k/state").empty());
      }
    }
  }
  CHECK(near.start(fmt::format("f write mb_0 {} mtu=300", far.address)) == EINVAL);
  // The name is free again.
  REQUIRE(far.start("k accept mb_0") == 0);
  REQUIRE(near.start(fmt::format("k write mb_0 {} count=10", far.address)) == 0);
  CHECK(near.outcome("k") == "done");
}

TEST_CASE("rendezvous: an offer whose connection ends before it is ready leaves nothing behind") {
  Mount near(14), far(15);
  std::string many = "qps=300:1";
  for (int i = 1; i < 1000; ++i) many += fmt::format(",{}:1", 300 + i);  // takes many turns
  for (int i = 0; i < 80; ++i) {
    Stranger stranger(far.address);
    std::string line = kOffer;
    line.replace(line.find("name=s"), 6, fmt::format("name=s{}", i));
    line.replace(line.find("qps=300:1"), 9, many);
    stranger.say(line + "\n");
    // Most of these flows have begun and are not ready yet.
    while (far.show("exchange").ends_with("connections 0")) std::this_thread::yield();
  }
  for (int i = 0; i < 80; ++i) {
    std::string name = fmt::format("s{}", i);
    INFO(name);
    // A flow that was ready has a directory, and is over.
    if (!far.show(name + "/state").empty()) {
      CHECK(far.outcome(name).starts_with("failed: 127.0.0.1 has gone: "));
      CHECK(far.store(name + "/stop", "1") == 0);
    }
    TimeNs end = monotonic_ns() + 20 * kSecond;
    int begun = EEXIST;
    while (begun == EEXIST && monotonic_ns() < end) {
      begun = far.start(name + " accept mb_0");
      if (begun == EEXIST) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(begun == 0);
    CHECK(far.store(name + "/stop", "1") == 0);
    CHECK(far.store(name + "/stop", "1") == 0);
  }
  REQUIRE(near.start(fmt::format("f write mb_0 {} count=10", far.address)) == 0);
  CHECK(near.outcome("f") == "done");
}

TEST_CASE("rendezvous: an impossible flow is refused at once") {
  Mount near(10), far(11);
  CHECK(near.start(fmt::format("f write mb_1 {}", far.address)) == EADDRNOTAVAIL);
  CHECK(near.start("f write mb_0 2001:db8::1") == EADDRNOTAVAIL);
  CHECK(near.start(fmt::format("f write mb_0 {}", near.address)) == EINVAL);
  CHECK(near.why == near.address + " is mb_0 of this mount: name it so");
  CHECK(near.store("exchange_port", "0") == 0);
  CHECK(near.show("exchange") == near.address + " port 0: off\nconnections 0");
  CHECK(near.start(fmt::format("f write mb_0 {}", far.address)) == ENETUNREACH);
  CHECK(far.show("exchange") == far.address + " port 18516: listening\nconnections 0");
}
