// Umad file by itself, on an engine that is not started: calls to the core run at once, and the
// test advances time.
#pragma once

#include <poll.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "mad_cc/umad/umad_file.h"
#include "test/mad_cc/port/mad_rig.h"

namespace rocefs {

class UmadRig : public MadCarrier {
 public:
  PollLoop loop;
  std::unique_ptr<Engine> engine = make_engine(loop);
  MadPort port{*this, engine->scheduler()};
  std::vector<mad::Mad> transmitted;
  std::vector<mad::Address> to;
  std::vector<std::string> log;
  std::shared_ptr<ReaderMemory> memory = ReaderMemory::create(loop);
  std::shared_ptr<File> file = make_umad_file(
      *engine, port, memory, [this](const std::string& line) { log.push_back(line); });
  mad::Address peer{.lid = 7, .qpn = 1, .qkey = mad::kQkey};

  std::unique_ptr<OpenFile> open(uid_t uid) {
    return std::move(*file->open(file, Caller{uid, 0, 0}));
  }
  void transmit(MadReceiver&, const mad::Address& address, const mad::Mad& mad) override {
    transmitted.push_back(mad);
    to.push_back(address);
  }
  void receive(const mad::Mad& mad) {
    port.receive(peer, mad);
    run_control();
  }
  void pass(TimeNs ns) {
    engine->scheduler().run_until(engine->scheduler().now() + ns);
    run_control();
  }
  // Runs what the core has posted.
  void run_control() {
    loop.post([this] { loop.stop(); });
    loop.run();
  }

 private:
  static std::unique_ptr<Engine> make_engine(PollLoop& loop) {
    auto made = Engine::create({ClockMode::kVirtual}, loop);
    REQUIRE(made);
    return std::move(*made);
  }
};

// Open file as a program uses it: results are those of the system calls, errnos negative.
class Program {
 public:
  explicit Program(UmadRig& rig, uid_t uid = 0) : rig_(rig), open_(rig.open(uid)) {}

  template <class T>
  long ioctl(uint32_t command, T& argument) {
    std::string_view bytes(reinterpret_cast<const char*>(&argument), sizeof argument);
    long returned = -EINPROGRESS;
    open_->ioctl(command, bytes, bytes.size(), operation(), [&](Result<IoctlReply> reply) {
      returned = reply ? reply->result : -reply.error().code;
      if (reply) std::memcpy(&argument, reply->bytes.data(), reply->bytes.size());
    });
    rig_.run_control();
    return returned;
  }
  long enable_pkey() {
    long returned = -EINPROGRESS;
    open_->ioctl(umad::kEnablePkey, {}, 0, operation(), [&](Result<IoctlReply> reply) {
      returned = reply ? reply->result : -reply.error().code;
    });
    return returned;
  }
  // Returns the agent's number.
  long agent(uint8_t mgmt_class = mad::kSubnAdm, uint8_t rmpp = 0,
             std::initializer_list<uint8_t> methods = {}) {
    umad::Registration asked{};
    asked.qpn = mad::is_smp(mgmt_class) ? 0 : 1;
    asked.mgmt_class = mgmt_class;
    asked.class_version = mgmt_class == mad::kSubnAdm ? 2 : 1;
    asked.rmpp_version = rmpp;
    for (uint8_t method : methods) asked.methods[method / 32] |= uint32_t{1} << method % 32;
    long returned = ioctl(umad::kRegisterAgent, asked);
    return returned == 0 ? static_cast<long>(asked.agent) : returned;
  }

  static umad::Header header(uint32_t agent = 0, uint32_t timeout_ms = 100) {
    umad::Header header{};
    header.agent = agent;
    header.timeout_ms = timeout_ms;
    header.qpn = __builtin_bswap32(1);
    header.qkey = __builtin_bswap32(mad::kQkey);
    header.lid = __builtin_bswap16(7);
    return header;
  }
  long write(const std::string& bytes) {
    long returned = -EINPROGRESS;
    open_->write(bytes, operation(), [&](Result<size_t> wrote) {
      returned = wrote ? static_cast<long>(*wrote) : -wrote.error().code;
    });
    rig_.run_control();
    return returned;
  }
  // Returns 0, or the errno.
  long send(const mad::Mad& mad, const umad::Header& with = header()) {
    return send(mad::message_of(mad), with);
  }
  long send(const mad::Message& sent, const umad::Header& with) {
    std::string bytes = umad::format(with, sent, header_size);
    long wrote = write(bytes);
    return wrote == static_cast<long>(bytes.size()) ? 0 : wrote;
  }

  // Reads into `got` and `header_got`, and the rest into `message`.
  long read(size_t size = 1 << 20, bool nonblocking = true) {
    result = -EINPROGRESS;
    OperationPtr asked = operation();
    asked->set_nonblocking(nonblocking);
    open_->read(0, size, asked, [this](Result<std::string> bytes) { take(std::move(bytes)); });
    reading = asked;
    return result;
  }
  void take(Result<std::string> bytes) {
    result = bytes ? static_cast<long>(bytes->size()) : -bytes.error().code;
    if (!bytes || bytes->size() < header_size) return;
    got = *bytes;
    header_got = {};
    std::memcpy(&header_got, got.data(), header_size);
    message.assign(got.begin() + static_cast<long>(header_size), got.end());
  }
  short poll() { return open_->poll({}); }
  short poll(int& woken) {
    return open_->poll([&woken] { ++woken; });
  }
  void close() { open_.reset(); }
  OpenFile& open() { return *open_; }

  size_t header_size = umad::kOldHeaderSize;
  long result = 0;  // of the last read, which may be answered later
  OperationPtr reading;
  std::string got;
  umad::Header header_got{};
  mad::Message message;

 private:
  static OperationPtr operation() { return std::make_shared<Operation>(Caller{}); }

  UmadRig& rig_;
  std::unique_ptr<OpenFile> open_;
};

}  // namespace rocefs
