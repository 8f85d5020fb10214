#include "mad_cc/umad/umad_reads.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/tree/caller_file.h"

namespace rocefs {

void UmadReads::arrived(UmadArrival arrival) {
  if (ended_) return;
  arrivals_.push_back(std::move(arrival));
  serve();
  if (!arrivals_.empty()) wake();
}

void UmadReads::dropped() {
  log_("MADs are dropped: a program does not read them");
}

void UmadReads::wake() {
  if (Task woken = std::exchange(wake_, nullptr)) woken();
}

// Sets the length here: the header size may change while messages wait.
std::string UmadReads::format(UmadArrival& arrival, size_t most) const {
  size_t length = header_size_ + arrival.message.size();
  if (arrival.received) arrival.header.length = static_cast<uint32_t>(length);
  std::span<const uint8_t> message = arrival.message;
  return umad::format(arrival.header, message.first(std::min(most, message.size())), header_size_);
}

void UmadReads::read(uint64_t offset, size_t size, const OperationPtr& operation,
                     Answer<std::string> answer) {
  if (ended_) return answer(port_gone());
  if (answer_rest(offset, size, operation->caller().pid, answer)) return;
  if (size < header_size_) return answer(errorf(EINVAL, "{} octets are less than a header", size));
  if (!begun_) return answer(std::string());
  Reader reader{size, operation, std::move(answer)};
  if (arrivals_.empty()) return wait(std::move(reader));
  readers_.push_back(std::move(reader));
  serve();
}

void UmadReads::wait(Reader reader) {
  if (reader.operation->nonblocking()) return reader.answer(Error{EAGAIN, "no message"});
  if (readers_.size() >= kMaxReaders) {
    return reader.answer(errorf(ENOMEM, "{} reads of this open file wait", readers_.size()));
  }
  readers_.push_back(std::move(reader));
  readers_.back().operation->on_interrupt(
      [own = weak_from_this(), one = std::prev(readers_.end())] {
        if (std::shared_ptr<UmadReads> here = own.lock()) here->readers_.erase(one);
      });
}

// Serves in a loop, not by recursion, however many readers are answered at once.
void UmadReads::serve() {
  if (std::exchange(serving_, true)) return;
  while (!readers_.empty() && !arrivals_.empty()) {
    Reader reader = std::move(readers_.front());
    readers_.pop_front();
    reader.operation->on_interrupt(nullptr);  // which knows its place in readers_
    UmadArrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    deliver(std::move(reader), std::move(arrival));
  }
  serving_ = false;
}

void UmadReads::deliver(Reader reader, UmadArrival arrival) {
  size_t length = header_size_ + arrival.message.size();
  if (reader.size >= length) {
    room_->give(arrival);
    return reader.answer(format(arrival));
  }
  bool segments = arrival.received && arrival.message.size() > mad::kMadSize;
  if (segments && reader.size >= header_size_ + mad::kMadSize)
    return show_first(std::move(reader), std::move(arrival));
  put_back(std::move(arrival));
  reader.answer(errorf(EINVAL, "the message has {} octets, the read {}", length, reader.size));
}

// Writes the first segment, whose header has the length of all. Signals wait (serve()): once the
// read has ended, its buffer may be reused.
void UmadReads::show_first(Reader reader, UmadArrival arrival) {
  ReaderMemory::Read read{reader.operation->caller(), reader.size,
                          header_size_ + arrival.message.size()};
  std::string first = format(arrival, mad::kMadSize);
  memory_->show(read, std::move(first),
                [here = shared_from_this(), reader = std::move(reader),
                 arrival = std::move(arrival)](ReaderMemory::Outcome outcome) mutable {
                  here->shown(std::move(reader), std::move(arrival), outcome);
                });
}

void UmadReads::shown(Reader reader, UmadArrival arrival, ReaderMemory::Outcome outcome) {
  if (ended_) return reader.answer(port_gone());
  const Caller& caller = reader.operation->caller();
  size_t length = header_size_ + arrival.message.size();
  if (outcome == ReaderMemory::Outcome::kFits && rests_.size() < kMaxRests) {
    room_->give(arrival);
    std::string all = format(arrival);
    std::string part = all.substr(0, reader.size);
    rests_.push_back({caller.pid, reader.size, std::move(all), std::move(arrival.share)});
    return reader.answer(std::move(part));
  }
  log_unshown(caller, length, outcome);
  put_back(std::move(arrival));
  int code = outcome == ReaderMemory::Outcome::kFault ? EFAULT : ENOSPC;
  reader.answer(errorf(code, "the message has {} octets, the read {}", length, reader.size));
  serve();
  if (!arrivals_.empty()) wake();
}

void UmadReads::log_unshown(const Caller& reader, size_t length, ReaderMemory::Outcome outcome) {
  bool forbidden = outcome == ReaderMemory::Outcome::kForbidden;
  if (!forbidden && outcome != ReaderMemory::Outcome::kUnknown) return;
  if (std::exchange(logged_unshown_, true)) return;
  std::string_view why = forbidden ? "ptrace(2) of it must be allowed (kernel.yama.ptrace_scope, "
                                     "CAP_SYS_PTRACE)"
                                   : "it is not seen to wait in read(2), or its memory blocks";
  log_(fmt::format("{} [{}] cannot be told that an answer has {} octets: {}", comm_of(reader.pid),
                   reader.pid, length, why));
}

void UmadReads::put_back(UmadArrival arrival) {
  arrivals_.push_front(std::move(arrival));
}

// Continues a read(2) in parts: only such a request has an offset, because the file has no
// position.
bool UmadReads::answer_rest(uint64_t offset, size_t size, pid_t thread,
                            Answer<std::string>& answer) {
  auto rest = std::find_if(rests_.begin(), rests_.end(),
                           [&](const Rest& one) { return one.thread == thread; });
  if (rest == rests_.end() || rest->offset != offset) {
    if (rest != rests_.end()) rests_.erase(rest);  // it was given up
    if (offset == 0) return false;
    answer(std::string());
    return true;
  }
  std::string part = rest->bytes.substr(offset, size);
  rest->offset += part.size();
  if (rest->offset == rest->bytes.size()) rests_.erase(rest);
  answer(std::move(part));
  return true;
}

short UmadReads::poll(Task wake) {
  if (ended_) return POLLERR | POLLHUP;
  if (wake) wake_ = std::move(wake);
  short events = POLLOUT | POLLWRNORM;
  return arrivals_.empty() ? events : events | POLLIN | POLLRDNORM;
}

void UmadReads::end() {
  if (std::exchange(ended_, true)) return;
  arrivals_.clear();
  rests_.clear();
  for (Reader& reader : std::exchange(readers_, {})) {
    reader.operation->on_interrupt(nullptr);
    reader.answer(port_gone());
  }
  wake();
}

}  // namespace rocefs
