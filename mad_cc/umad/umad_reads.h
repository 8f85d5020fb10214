// UmadReads: unread messages and waiting readers of one open umad file.
//
// Control thread. Lives as long as it is owed an answer.
#pragma once

#include <errno.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/tree/file.h"
#include "mad_cc/umad/reader_memory.h"
#include "mad_cc/umad/umad_client.h"

namespace rocefs {

// Error of reads and writes once the device has been removed.
inline Error port_gone() {
  return Error{ENODEV, "the device was removed"};
}

class UmadReads : public std::enable_shared_from_this<UmadReads> {
 public:
  // Writes one line, without a newline, to dmesg.
  using Log = std::function<void(const std::string& line)>;
  UmadReads(std::shared_ptr<UmadRoom> room, std::shared_ptr<ReaderMemory> memory, Log log)
      : room_(std::move(room)), memory_(std::move(memory)), log_(std::move(log)) {}

  const std::shared_ptr<UmadRoom>& room() const { return room_; }
  void use_pkey_index() { header_size_ = umad::kHeaderSize; }
  size_t header_size() const { return header_size_; }
  // Allows reads to wait, once an agent has registered. Until then a read returns 0 at once, so
  // that a program that reads all files of the tree does not hang.
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }

  void arrived(UmadArrival arrival);
  // Logs that arrivals were dropped because they are not read.
  void dropped();
  // Reads one message, as ib_umad_read(): EINVAL if it does not fit, ENOSPC if it has several
  // segments; the message stays then. ENOMEM if kMaxReaders wait.
  void read(uint64_t offset, size_t size, const OperationPtr& operation,
            Answer<std::string> answer);
  short poll(Task wake);
  // Ends all waiting and later readers with ENODEV: the device has been removed.
  void end();

 private:
  struct Reader {
    size_t size;
    OperationPtr operation;
    Answer<std::string> answer;
  };
  // Message that its reader gets in parts.
  struct Rest {
    pid_t thread;
    uint64_t offset;  // so much it has
    std::string bytes;
    Shares::Share share;
  };
  static constexpr size_t kMaxRests = 16;
  static constexpr size_t kMaxReaders = 4096;

  bool answer_rest(uint64_t offset, size_t size, pid_t thread, Answer<std::string>& answer);
  void wait(Reader reader);
  void serve();
  void deliver(Reader reader, UmadArrival arrival);
  void show_first(Reader reader, UmadArrival arrival);
  void shown(Reader reader, UmadArrival arrival, ReaderMemory::Outcome outcome);
  void put_back(UmadArrival arrival);
  void log_unshown(const Caller& reader, size_t length, ReaderMemory::Outcome outcome);
  void wake();
  // Formats the header and at most `most` octets of the message.
  std::string format(UmadArrival& arrival, size_t most = SIZE_MAX) const;

  const std::shared_ptr<UmadRoom> room_;
  const std::shared_ptr<ReaderMemory> memory_;
  const Log log_;
  size_t header_size_ = umad::kOldHeaderSize;
  bool begun_ = false, ended_ = false, serving_ = false, logged_unshown_ = false;
  std::deque<UmadArrival> arrivals_;
  std::list<Reader> readers_;  // one of the two is empty; an interrupt removes from the middle
  std::vector<Rest> rests_;
  Task wake_;
};

}  // namespace rocefs
