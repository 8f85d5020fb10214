// UmadReads: what waits to be read from one open umad file, and who waits to read it.
//
// Control thread. It lives as long as anybody still owes it an answer.
#pragma once

#include <errno.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tree/file.h"
#include "mad_cc/umad/reader_memory.h"
#include "mad_cc/umad/umad_client.h"

namespace rocefs {

// What reads and writes answer once the device has been removed.
inline Error port_gone() {
  return Error{ENODEV, "the device was removed"};
}

class UmadReads : public std::enable_shared_from_this<UmadReads> {
 public:
  // For dmesg, one line without a newline.
  using Log = std::function<void(const std::string& line)>;
  UmadReads(std::shared_ptr<UmadRoom> room, std::shared_ptr<ReaderMemory> memory, Log log)
      : room_(std::move(room)), memory_(std::move(memory)), log_(std::move(log)) {}

  const std::shared_ptr<UmadRoom>& room() const { return room_; }
  void use_pkey_index() { header_size_ = umad::kHeaderSize; }
  size_t header_size() const { return header_size_; }
  // An agent has registered: until then a read has nothing to wait for and ends at once with
  // nothing, or who reads all files of a tree would never come back.
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }

  void arrived(UmadArrival arrival);
  // Some that came were dropped: nobody reads.
  void dropped();
  // One message, as ib_umad_read(): EINVAL where it does not fit, ENOSPC where it is of several
  // segments; it stays then.
  void read(uint64_t offset, size_t size, const OperationPtr& operation,
            Answer<std::string> answer);
  short poll(Task wake);
  // The device has gone: whoever waits, and who comes, gets ENODEV.
  void end();

 private:
  struct Reader {
    size_t size;
    OperationPtr operation;
    Answer<std::string> answer;
  };
  // A message that its reader gets in parts.
  struct Rest {
    pid_t thread;
    uint64_t offset;  // so much it has
    std::string bytes;
    Shares::Share share;
  };
  static constexpr size_t kMaxRests = 16;

  bool answer_rest(uint64_t offset, size_t size, pid_t thread, Answer<std::string>& answer);
  void wait(Reader reader);
  void serve();
  void deliver(Reader reader, UmadArrival arrival);
  void show_first(Reader reader, UmadArrival arrival);
  void shown(Reader reader, UmadArrival arrival, ReaderMemory::Outcome outcome);
  void put_back(UmadArrival arrival);
  void say_untold(const Caller& reader, size_t length, ReaderMemory::Outcome outcome);
  void wake();
  // Its header and so much of the message.
  std::string format(UmadArrival& arrival, size_t most = SIZE_MAX) const;

  const std::shared_ptr<UmadRoom> room_;
  const std::shared_ptr<ReaderMemory> memory_;
  const Log log_;
  size_t header_size_ = umad::kOldHeaderSize;
  bool begun_ = false, ended_ = false, serving_ = false, said_untold_ = false;
  std::deque<UmadArrival> arrivals_;
  std::deque<Reader> readers_;  // one of the two is empty
  std::vector<Rest> rests_;
  Task wake_;
};

}  // namespace rocefs
