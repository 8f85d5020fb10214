// Client: what one verbs client has of one device: its protection domains, regions, queues and
// queue pairs. Core thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/takeover/shared_memory.h"
#include "rdma/client/completion_moderation.h"
#include "rdma/client/convert.h"
#include "rdma/client/handles.h"
#include "rdma/client/memory.h"
#include "rdma/client/process.h"
#include "rdma/client/ring.h"
#include "rdma/nic/device.h"

namespace rocefs {

class Client;

// A completion queue in shared memory.
class ClientCq final : public CompletionSink {
 public:
  ClientCq(Client& client, std::shared_ptr<SharedMemory> memory, uint32_t entries, uint64_t cookie,
           uint32_t channel)
      : client_(client),
        memory_(std::move(memory)),
        page_(memory_->at<rocefs_cq_page>(0)),
        entries_(entries),
        cookie_(cookie),
        channel_(channel) {}

  [[nodiscard]] Completion* claim() override;
  void publish(bool solicited) override;

  uint64_t cookie() const { return cookie_; }
  // Goes on in other memory, with what the client has not consumed yet. EINVAL: that is more than
  // it holds, or the client lies.
  Result<void> resize(std::shared_ptr<SharedMemory> memory, uint32_t entries);
  // Events of it that the client was sent, or will be.
  uint32_t completion_events() const { return completion_events_; }
  uint32_t async_events() const { return async_events_; }
  uint32_t users = 0;  // halves of queue pairs

 private:
  void raise(bool solicited);

  Client& client_;
  std::shared_ptr<SharedMemory> memory_;
  rocefs_cq_page* page_;
  uint32_t entries_;
  const uint64_t cookie_;
  const uint32_t channel_;  // a socket of the process's; 0 for none
  Completion claimed_;
  uint32_t produced_ = 0;
  uint32_t completion_events_ = 0;
  bool overrun_ = false;  // since it has this memory
  uint32_t async_events_ = 0;
};

// What a doorbell stands for.
class ClientQueue {
 public:
  virtual ~ClientQueue() = default;
  // Takes what the client has posted. Whether there may be more.
  virtual bool serve() = 0;
};

class ClientSrq final : public ClientQueue {
 public:
  ClientSrq(Client& client, std::shared_ptr<SharedMemory> memory, const rocefs_created& layout,
            const rocefs_create_srq& wanted, uint32_t pd);

  bool serve() override;
  void release() { ring_.release_all_but(receives_.size()); }
  ReceiveQueue& receives() { return receives_; }
  void set_limit(uint32_t limit);
  const rocefs_create_srq& created() const { return wanted_; }
  uint32_t limit() const { return limit_; }
  uint32_t async_events() const { return async_events_; }
  uint32_t pd() const { return pd_; }
  uint32_t users = 0;

 private:
  Client& client_;
  const std::shared_ptr<SharedMemory> memory_;
  const rocefs_create_srq wanted_;
  const uint32_t pd_;
  WqeRing<rocefs_receive_wqe> ring_;
  ReceiveQueue receives_;
  uint32_t limit_ = 0;
  uint32_t async_events_ = 0;
};

class ClientQp final : public ClientQueue, public QpObserver {
 public:
  ClientQp(Client& client, std::shared_ptr<SharedMemory> memory, const rocefs_created& layout,
           const rocefs_create_qp& wanted);
  ~ClientQp() override;

  // Takes over a queue pair that was made for it. ENOMEM: no region is free.
  Result<void> attach(Qp& qp, ClientSrq* srq, const rocefs_created& layout);
  Qp& qp() { return *qp_; }
  ClientSrq* srq() { return srq_; }
  const rocefs_create_qp& created() const { return wanted_; }

  bool serve() override;
  // Tells the client which of its slots are free again.
  void release();
  // How many slots of its send queue have been released.
  uint32_t sends_released() const { return sends_.released(); }
  // One of its send requests has completed: whether its owner must hear of it at once.
  bool hurries();
  // The queue pair has been reset: what is posted is forgotten.
  void drop();
  // The queue pair fails: what is posted is flushed, what stands in the rings until now as well.
  void flush();
  // It goes; afterwards nothing of its memory is used any more.
  void destroy();
  void qp_event(QpEvent event) override;
  // Events of it that the client was sent, or will be.
  uint32_t async_events() const { return async_events_; }
  // Groups that it is attached to.
  uint32_t groups = 0;

 private:
  bool serve_sends();
  bool serve_receives();
  void use_copied(SendRequest& request);

  Client& client_;
  const std::shared_ptr<SharedMemory> memory_;
  const rocefs_create_qp wanted_;
  SendLimits limits_;
  uint64_t asked_ = 0;              // bytes, of all its send requests so far
  std::vector<uint64_t> asked_by_;  // the same, up to the one in each slot
  CompletionModeration moderation_;
  WqeRing<rocefs_send_wqe> sends_;
  WqeRing<rocefs_receive_wqe> receives_;
  Qp* qp_ = nullptr;
  ClientSrq* srq_ = nullptr;
  uint32_t async_events_ = 0;
};

class Client final : public DeviceClient {
 public:
  // Numbers that clients of one device share.
  struct Numbers {
    uint32_t pd = 1u << 16;  // below are those of built-in traffic
  };
  // `events`: the socket for asynchronous events.
  Client(Device& device, Numbers& numbers, std::shared_ptr<Process> process,
         std::shared_ptr<SharedMemory> page, std::string comm, uint32_t events);
  ~Client() override;

  // What goes with a request.
  struct Attachment {
    std::shared_ptr<SharedMemory> memory;  // for what is created
    rocefs_created layout{};
    uint32_t socket = 0;
    uint64_t cookie = 0;  // of what is destroyed, if it has events
  };
  using Reply = UniqueFunction<void(const rocefs_answer&)>;
  // Answers when it is done.
  void request(const rocefs_request& request, Attachment attachment, Reply reply);

  // Looks at the doorbells and tells what has ended; whether there was anything.
  bool poll();
  // Hands over what was asked of the process, and wakes who waits for completions. `more`: both may
  // wait a little for more of it. How many bytes the
  // process will move.
  uint64_t flush(bool more);
  // Whether poll() would find something.
  bool wanted() const;

  // The device is going.
  void device_removed(Device& device) override;
  void port_changed(const Port& port) override;

  Device& device() { return *device_; }
  Process& process() { return *process_; }
  const std::shared_ptr<Process>& shared_process() { return process_; }
  // A completion has come for it; whose it is, if that is known still.
  ClientQp* completed(const Completion& completion);
  // Events. False if it will never come: too many wait.
  bool raise(uint32_t channel, uint64_t cookie);
  bool tell(uint32_t type, uint64_t element);

 private:
  struct Pd {
    uint32_t number = 0;
    uint32_t users = 0;
  };
  struct Mr {
    uint32_t key = 0;
    Pd* pd = nullptr;
  };
  struct Mw {
    uint32_t key = 0;
    Pd* pd = nullptr;
  };

  Result<void> execute(const rocefs_request& request, Attachment& attachment,
                       rocefs_answer& answer);
  Result<void> query_port(uint32_t port, rocefs_answer& answer);
  Result<void> dealloc_pd(uint32_t handle);
  Result<void> create_cq(const rocefs_create_cq& wanted, Attachment& attachment,
                         rocefs_answer& answer);
  Result<void> resize_cq(const rocefs_resize_cq& wanted, Attachment& attachment,
                         rocefs_answer& answer);
  Result<void> destroy_cq(uint32_t handle, Attachment& attachment, rocefs_answer& answer);
  Result<void> create_srq(const rocefs_create_srq& wanted, Attachment& attachment,
                          rocefs_answer& answer);
  Result<void> modify_srq(const rocefs_srq_attr& wanted);
  Result<void> query_srq(uint32_t handle, rocefs_answer& answer);
  Result<void> destroy_srq(uint32_t handle, Attachment& attachment, rocefs_answer& answer);
  Result<void> create_channel(uint64_t name, uint32_t socket);
  Result<void> put_back(const rocefs_put_back& event);
  Result<void> create_qp(const rocefs_create_qp& wanted, Attachment& attachment,
                         rocefs_answer& answer);
  Result<void> modify_qp(const rocefs_qp_attr& wanted);
  Result<void> query_qp(uint32_t handle, rocefs_answer& answer);
  Result<void> destroy_qp(uint32_t handle, Attachment& attachment, rocefs_answer& answer);
  Result<void> attach_multicast(const rocefs_multicast& wanted);
  Result<void> detach_multicast(const rocefs_multicast& wanted);
  void reg_mr(const rocefs_reg_mr& wanted, Reply reply);
  Result<void> share_mr(const rocefs_reg_mr& wanted, Attachment& attachment, rocefs_answer& answer);
  Result<void> add_region(const rocefs_reg_mr& wanted, std::shared_ptr<Memory> memory,
                          rocefs_answer& answer);
  // What is under way in the client's memory has ended when `reply` is called.
  void rereg_mr(const rocefs_rereg_mr& wanted, Reply reply);
  Result<void> change_region(const rocefs_rereg_mr& wanted, rocefs_answer& answer);
  Result<void> dereg_mr(uint32_t handle);
  Result<void> alloc_mw(const rocefs_alloc_mw& wanted, rocefs_answer& answer);
  Result<void> dealloc_mw(uint32_t handle);
  // Calls `then` on the core when the copy thread has found whether the bytes are there.
  using Populated = UniqueFunction<void(bool populated)>;
  void populate(uint64_t address, uint64_t length, uint32_t access, Populated then);
  void give_back();
  Result<uint32_t> take_doorbell(ClientQueue& queue);
  void give_doorbell(ClientQueue& queue);

  Device* device_;
  Numbers& numbers_;
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<SharedMemory> memory_;
  rocefs_context_page* const page_;
  const std::string comm_;
  const uint32_t events_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool completed_ = false;  // since the last flush()
  bool hurried_ = false;    // one of these is wanted at once
  int held_back_ = 0;       // flushes in a row
  uint32_t completions_ = 0;

  Handles<Pd> pds_{ROCEFS_MAX_PD};
  Handles<Mr> mrs_{ROCEFS_MAX_MR};
  Handles<Mw> mws_{ROCEFS_MAX_MW};
  Handles<ClientCq> cqs_{ROCEFS_MAX_CQ};
  Handles<ClientSrq> srqs_{ROCEFS_MAX_QUEUES};
  Handles<ClientQp> qps_{ROCEFS_MAX_QUEUES};
  uint32_t groups_ = 0;  // attachments of all
  std::vector<ClientQueue*> doorbells_;
  std::vector<uint32_t> served_again_;  // doorbells of queues that may have more
  std::unordered_map<uint32_t, ClientQp*> by_number_;
  std::unordered_map<uint64_t, uint32_t> channels_;  // their sockets, by name
};

// Of a handle that is nobody's.
Error no_such(std::string_view what, uint32_t handle);
// What is answered instead.
rocefs_answer refusal(const Error& why);

}  // namespace rocefs
