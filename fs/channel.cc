#include "fs/channel.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "fs/kernel_io.h"

namespace rocefs {
namespace {

// Definitions younger than the headers of Debian 12 (include/uapi/linux/fuse.h of Linux 6.9).
constexpr int32_t kNotifyResend = 7;
constexpr uint32_t kHasResend = 1u << (39 - 32);  // in flags2
constexpr uint32_t kNoExportSupport = 1u << (38 - 32);

std::string_view name_of(uint32_t opcode) {
  switch (opcode) {
    case 0:
      return "own";
    case FUSE_LOOKUP:
      return "lookup";
    case FUSE_GETATTR:
      return "getattr";
    case FUSE_SETATTR:
      return "setattr";
    case FUSE_READLINK:
      return "readlink";
    case FUSE_OPEN:
      return "open";
    case FUSE_READ:
      return "read";
    case FUSE_WRITE:
      return "write";
    case FUSE_RELEASE:
      return "release";
    case FUSE_OPENDIR:
      return "opendir";
    case FUSE_READDIR:
      return "readdir";
    case FUSE_RELEASEDIR:
      return "releasedir";
    case FUSE_POLL:
      return "poll";
    case FUSE_STATFS:
      return "statfs";
    case FUSE_IOCTL:
      return "ioctl";
    default:
      return "other";
  }
}

// Returns whether the operation must not be executed twice.
bool journalled(uint32_t opcode) {
  switch (opcode) {
    case FUSE_SETATTR:
    case FUSE_OPEN:
    case FUSE_WRITE:
    case FUSE_IOCTL:
    case FUSE_RELEASE:
    case FUSE_OPENDIR:
    case FUSE_RELEASEDIR:
      return true;
    default:
      return false;
  }
}

bool is_answered(uint32_t opcode) {
  return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

// Returns whether a file may answer the operation later. All else is answered at once, and needs no
// place among the waiting requests: what frees such places must never be refused.
bool may_wait(uint32_t opcode) {
  return opcode == FUSE_READ || opcode == FUSE_WRITE || opcode == FUSE_IOCTL;
}

// Atomic store, which another process sees whole.
void put(uint64_t& place, uint64_t value) {
  std::atomic_ref(place).store(value, std::memory_order_seq_cst);
}

size_t size_of(const iovec* parts, int count) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return size;
}

}  // namespace

Channel::Channel(Journal& journal, SavedChannel& saved, Faults* faults)
    : journal_(journal), saved_(saved), faults_(faults) {
  // Touch all pages: a missing page could make the kernel fail the request that it is copying while
  // this process is killed.
  for (size_t at = 0; at < sizeof saved_.buffer; at += 4096) {
    std::atomic_ref(saved_.buffer[at]).fetch_or(0);
  }
  if (!faults_) return;
  journal_.set_probe([this](Journal::Step step) {
    fault(committing_, step == Journal::Step::kStaged ? "staged" : "committing");
  });
}

Channel::~Channel() {
  journal_.set_probe(nullptr);
}

void Channel::fault(uint32_t opcode, std::string_view stage) {
  if (faults_) faults_->point(name_of(opcode), stage);
}

Result<void> Channel::attach(fuse_session* session, int descriptor, ChannelUser& user) {
  fuse_custom_io io{};
  io.read = [](int fd, void* into, size_t size, void*) { return read_request(fd, into, size); };
  io.writev = [](int fd, iovec* parts, int count, void* self) noexcept {
    return static_cast<ChannelUser*>(self)->channel().reply(fd, parts, count);
  };
  if (int code = fuse_session_custom_io(session, &io, descriptor); code != 0) {
    return errorf(-code, "FUSE: {}", std::strerror(-code));
  }
  session_ = session;
  user_ = &user;
  descriptor_ = descriptor;
  return {};
}

Channel::Received Channel::receive() {
  auto& header = reinterpret_cast<fuse_in_header&>(saved_.buffer);
  std::atomic_ref(header.len).store(0, std::memory_order_seq_cst);
  for (;;) {
    ssize_t got = read_request(descriptor_, saved_.buffer, sizeof saved_.buffer);
    if (got >= static_cast<ssize_t>(sizeof header)) {
      serve(static_cast<size_t>(got));
      return Received::kOne;
    }
    if (got < 0 && errno == EAGAIN) return Received::kNothing;
    if (got < 0 && (errno == EINTR || errno == ENOENT)) continue;  // a request was given up
    return Received::kGone;
  }
}

void Channel::serve(size_t size) {
  const fuse_in_header& header = request();
  current_ = {key_of(header.unique), header.unique, header.opcode, 0, nullptr};
  if (header.opcode == FUSE_INIT && size <= sizeof saved_.init) {
    journal_.stage(saved_.init, saved_.buffer, size);
    journal_.stage(saved_.init_size, static_cast<uint32_t>(size));
    committing_ = header.opcode;
    journal_.commit();
    committing_ = 0;
  }
  fault(header.opcode, "taken");
  if (resent() && answer_again(header.unique)) return;
  if (resent() && key() == saved_.deadly && saved_.deaths >= SavedChannel::kMaxDeaths) {
    return refuse(header.unique, EIO);
  }
  if (may_wait(header.opcode)) {
    // A resent request had its place before the takeover.
    current_.share = places_.take(header.uid, resent() || is_privileged(header.uid));
    if (!current_.share) return refuse(header.unique, ENOMEM);
  }
  // libfuse would search the list of all waiting requests, for each of a process that is killed.
  if (header.opcode == FUSE_INTERRUPT) return interrupt();
  bool owes_answer = is_answered(header.opcode);
  fuse_buf buffer{};
  buffer.mem = saved_.buffer;
  buffer.size = size;
  fuse_session_process_buf(session_, &buffer);
  if (current_.key != 0 && owes_answer) keep(std::move(current_));
  current_ = {};  // kept replies are found by their request
}

void Channel::interrupt() {
  current_ = {};
  uint64_t unique = reinterpret_cast<const fuse_interrupt_in*>(&request() + 1)->unique;
  try {
    user_->interrupt(key_of(unique));
  } catch (...) {  // out of memory: it waits until it is answered
  }
}

// Repeats the answer of the dead worker, which executed the request and died before the kernel had
// it.
bool Channel::answer_again(uint64_t unique) {
  SavedReply* saved = find_reply(key_of(unique));
  if (!saved) return false;
  auto* header = reinterpret_cast<fuse_out_header*>(saved->bytes);
  header->unique = unique;
  (void)!::write(descriptor_, saved->bytes, saved->size);
  put(saved->key, 0);
  return true;
}

void Channel::refuse(uint64_t unique, int code) {
  fuse_out_header header{sizeof header, -code, unique};
  (void)!::write(descriptor_, &header, sizeof header);
}

void Channel::keep(Request waiting) {
  if (free_slots_.empty()) {
    if (saved_.in_flight_limit == SavedChannel::kMaxInFlight) return;  // more than may_wait()
    waiting.slot = static_cast<uint32_t>(saved_.in_flight_limit);
    put(saved_.in_flight_limit, saved_.in_flight_limit + 1);
  } else {
    waiting.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  put(saved_.in_flight[waiting.slot], waiting.unique);
  waiting_[waiting.key] = std::move(waiting);
}

void Channel::forget(uint64_t key) {
  if (key == current_.key) {
    current_.key = 0;
    return;
  }
  auto it = waiting_.find(key);
  put(saved_.in_flight[it->second.slot], 0);
  free_slots_.push_back(it->second.slot);
  waiting_.erase(it);
}

// Sets FUSE_NO_EXPORT_SUPPORT, which libfuse does not know: name_to_handle_at(2) is EOPNOTSUPP, as
// in sysfs.
void Channel::refuse_handles(const iovec& part) {
  if (!offers(kNoExportSupport) || part.iov_len < offsetof(fuse_init_out, flags2) + 4) return;
  auto& agreed = *static_cast<fuse_init_out*>(part.iov_base);
  agreed.flags |= FUSE_INIT_EXT;
  agreed.flags2 |= kNoExportSupport;
}

// Writes an answer or notification of libfuse; commits the answers of journalled requests first.
// Answers come from the control thread alone, notifications from any.
ssize_t Channel::reply(int descriptor, iovec* parts, int count) {
  const auto& header = *static_cast<const fuse_out_header*>(parts[0].iov_base);
  if (header.unique == 0) return write_message(descriptor, parts, count);
  if (swallow_) return static_cast<ssize_t>(size_of(parts, count));
  uint64_t key = key_of(header.unique);
  auto it = waiting_.find(key);
  if (key != current_.key && it == waiting_.end()) return write_message(descriptor, parts, count);
  uint32_t opcode = key == current_.key ? current_.opcode : it->second.opcode;
  if (opcode == FUSE_INIT && header.error == 0 && count > 1) refuse_handles(parts[1]);
  fault(opcode, "applied");
  bool keeps = journalled(opcode) && size_of(parts, count) <= SavedReply::kMaxSize;
  if (keeps) {
    committing_ = opcode;
    stage_reply(key, parts, count);
    journal_.commit();
    committing_ = 0;
    fault(opcode, "committed");
  }
  ssize_t written = write_message(descriptor, parts, count);
  int code = errno;
  fault(opcode, "answered");
  if (keeps) put(reply_->key, 0);
  forget(key);
  errno = code;
  return written;
}

void Channel::stage_reply(uint64_t key, const iovec* parts, int count) {
  reply_ = find_reply(0);
  if (!reply_) reply_ = &saved_.replies[last_reply_++ % SavedChannel::kReplies];
  char* at = reply_->bytes;
  for (int i = 0; i < count; ++i) {
    journal_.stage(at, parts[i].iov_base, parts[i].iov_len);
    at += parts[i].iov_len;
  }
  journal_.stage(reply_->size, static_cast<uint32_t>(at - reply_->bytes));
  journal_.stage(reply_->key, key);
}

SavedReply* Channel::find_reply(uint64_t key) {
  auto* end = std::end(saved_.replies);
  auto* found = std::find_if(saved_.replies, end, [&](auto& reply) { return reply.key == key; });
  return found == end ? nullptr : found;
}

bool Channel::kernel_resends() const {
  return !(faults_ && faults_->no_resend()) && offers(kHasResend);
}

bool Channel::offers(uint32_t flag2) const {
  const auto& init = *reinterpret_cast<const fuse_init_in*>(saved_.init + sizeof(fuse_in_header));
  return saved_.init_size >= sizeof(fuse_in_header) + sizeof init &&
         (init.flags & FUSE_INIT_EXT) != 0 && (init.flags2 & flag2) != 0;
}

void Channel::replay_init() {
  swallow_ = true;
  fuse_buf buffer{};
  buffer.mem = saved_.init;
  buffer.size = saved_.init_size;
  fuse_session_process_buf(session_, &buffer);
  swallow_ = false;
}

std::set<uint64_t> Channel::left_in_flight() const {
  std::set<uint64_t> left(saved_.in_flight, saved_.in_flight + saved_.in_flight_limit);
  left.erase(0);
  if (request().len != 0 && is_answered(request().opcode)) left.insert(request().unique);
  return left;
}

// A request that kills its worker must not kill all workers to come.
void Channel::count_death() {
  const uint64_t served = request().len != 0 ? key() : 0;
  put(saved_.deaths, served == saved_.deadly ? saved_.deaths + 1 : 1);
  put(saved_.deadly, served);
}

// Answers one request too many rather than too few: the kernel ignores an answer that it does not
// wait for.
Channel::Outcome Channel::settle_in_flight() {
  count_death();
  std::set<uint64_t> left = left_in_flight();
  Outcome outcome{left.size(), false};
  if (kernel_resends()) {
    fuse_out_header header{sizeof header, kNotifyResend, 0};
    outcome.resent = ::write(descriptor_, &header, sizeof header) >= 0;
  }
  for (uint64_t unique : left) {
    if (!outcome.resent && !answer_again(unique)) refuse(unique, EIO);
  }
  for (uint64_t slot = 0; slot < saved_.in_flight_limit; ++slot) put(saved_.in_flight[slot], 0);
  put(saved_.in_flight_limit, 0);
  return outcome;
}

void Channel::wake_pollers(uint64_t kernel_handle) {
  struct {
    fuse_out_header header;
    fuse_notify_poll_wakeup_out body;
  } message{{sizeof message, FUSE_NOTIFY_POLL, 0}, {kernel_handle}};
  (void)!::write(descriptor_, &message, sizeof message);
}

}  // namespace rocefs
