// Writes and ioctls of programs at a umad file, while answers come and time passes. No read is
// longer than its buffer, and when all is closed the port has no pending work.
//
// An input is a series of records: a byte of Op, one of its argument, a length of two bytes, and as
// many bytes.
#include <algorithm>
#include <cerrno>
#include <span>

#include "mad_cc/umad/umad_file.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;
using namespace rocefs::mad;

namespace {

enum Op : uint8_t {
  kWrite,     // the bytes
  kIoctl,     // command `argument` of the four, or the first four bytes; the bytes as its argument
  kRegister,  // an agent of RMPP version `argument`, whose class, version and methods are the bytes
  kRead,      // 56 octets and 16 times `argument` more; waits if the bytes say so
  kAnswer,    // the last MAD transmitted, with the bytes from octet 24 on
  kReceive,   // the bytes, from LID `argument`
  kPass,      // `argument` ms
  kInterrupt,
  kReopen,
  kUnbind,
  kOps,
};

PollLoop& loop() {
  static PollLoop one;
  return one;
}

// Exists for requests of files; never runs.
Engine& engine() {
  static std::unique_ptr<Engine> one = [] {
    auto made = Engine::create({}, loop());
    fuzz::require(bool(made));
    return std::move(*made);
  }();
  return *one;
}

class World final : public MadCarrier {
 public:
  World() { open_ = std::move(*file_->open(file_, {})); }

  void take(uint8_t op, uint8_t argument, std::span<const uint8_t> data) {
    std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
    Mad mad;
    std::memcpy(mad.bytes.data(), data.data(), std::min(data.size(), kMadSize));
    switch (op % kOps) {
      case kWrite:
        return write(bytes);
      case kIoctl:
        return ioctl(argument, bytes);
      case kRegister:
        return add_agent(argument, mad);
      case kRead:
        return read(56 + size_t{argument} * 16, bytes.empty());
      case kAnswer:
        mad = last_;
        mad.set_method(mad.method() ^ kResponseBit);
        std::memcpy(mad.bytes.data() + 24, data.data(), std::min(data.size(), kMadSize - 24));
        return port_.receive({.lid = 7}, mad);
      case kReceive:
        return port_.receive({.lid = argument}, mad);
      case kPass:
        scheduler_.run_until(scheduler_.now() + argument * kMillisecond);
        return;
      case kInterrupt:
        if (reading_) reading_->interrupt();
        return;
      case kReopen:
        open_ = std::move(*file_->open(file_, {}));
        return;
      case kUnbind:
        port_.leave();
        file_->mark_removed();
        port_.arrive();
        return renew();
    }
  }
  void settle() {
    loop().post([] { loop().stop(); });
    loop().run();
    short events = open_->poll([] {});
    fuzz::require((events & POLLOUT) != 0);
  }
  void finish() {
    open_.reset();
    settle_closed();
    fuzz::require(port_.sends_under_way() == 0);
    fuzz::require(port_.limiter().counters().outstanding.get() == 0);
  }

 private:
  void renew() {
    fuzz::require(open_->poll({}) == (POLLERR | POLLHUP));
    file_ = make_umad_file(engine(), port_, memory_, [](const std::string&) {});
    open_ = std::move(*file_->open(file_, {}));
  }
  void settle_closed() {
    loop().post([] { loop().stop(); });
    loop().run();
  }
  static OperationPtr operation() { return std::make_shared<Operation>(Caller{}); }
  void write(std::string_view bytes) {
    bool answered = false;
    open_->write(bytes, operation(), [&](Result<size_t> wrote) {
      answered = true;
      fuzz::require(wrote ? *wrote == bytes.size() : wrote.error().code > 0);
    });
    settle_closed();
    fuzz::require(answered);
  }
  void ioctl(uint32_t command, std::string_view argument) {
    constexpr uint32_t kCommands[] = {umad::kRegisterAgent, umad::kUnregisterAgent,
                                      umad::kEnablePkey, umad::kRegisterAgent2};
    bool known = command % 5 < 4;
    if (known) {
      command = kCommands[command % 5];
    } else if (argument.size() >= 4) {
      std::memcpy(&command, argument.data(), 4);
    }
    bool answered = false;
    open_->ioctl(command, argument, argument.size(), operation(), [&](Result<IoctlReply> reply) {
      answered = true;
      fuzz::require(reply ? reply->bytes.size() <= std::max<size_t>(argument.size(), 40)
                          : reply.error().code > 0);
    });
    settle_closed();
    fuzz::require(answered);
  }
  void add_agent(uint8_t rmpp, const Mad& from) {
    umad::Registration asked{};
    asked.mgmt_class = from.mgmt_class();
    asked.qpn = is_smp(asked.mgmt_class) ? 0 : 1;
    asked.class_version = from.class_version();
    asked.oui[2] = 1;
    asked.rmpp_version = rmpp;
    std::memcpy(asked.methods, from.bytes.data() + 8, sizeof asked.methods);
    ioctl(0, {reinterpret_cast<const char*>(&asked), sizeof asked});
  }
  void read(size_t size, bool nonblocking) {
    reading_ = operation();
    reading_->set_nonblocking(nonblocking);
    open_->read(0, size, reading_, [size](Result<std::string> bytes) {
      fuzz::require(bytes ? bytes->size() <= size && (bytes->empty() || bytes->size() >= 56 + 24)
                          : bytes.error().code > 0);
    });
  }
  void transmit(MadReceiver&, const Address&, const Mad& mad) override { last_ = mad; }

  Scheduler scheduler_;
  MadPort port_{*this, scheduler_};
  std::shared_ptr<ReaderMemory> memory_ = ReaderMemory::create(loop());
  std::shared_ptr<File> file_ = make_umad_file(engine(), port_, memory_, [](const std::string&) {});
  std::unique_ptr<OpenFile> open_;
  OperationPtr reading_;
  Mad last_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::span<const uint8_t> input(data, size);
  for (int record = 0; record < 64 && input.size() >= 4; ++record) {
    size_t length = std::min<size_t>(input[2] << 8 | input[3], input.size() - 4);
    world.take(input[0], input[1], input.subspan(4, length));
    world.settle();
    input = input.subspan(4 + length);
  }
  world.finish();
  return 0;
}
