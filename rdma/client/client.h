// Client: a verbs client's objects of one device: protection domains, regions, queues and queue
// pairs. Core thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/takeover/shared_memory.h"
#include "rdma/client/completion_moderation.h"
#include "rdma/client/convert.h"
#include "rdma/client/handles.h"
#include "rdma/client/memory.h"
#include "rdma/client/process.h"
#include "rdma/client/ring.h"
#include "rdma/client/xrc.h"
#include "rdma/nic/device.h"

namespace rocefs {

class Client;

// A completion queue in shared memory.
class ClientCq final : public CompletionSink {
 public:
  ClientCq(Client& client, uint32_t number, std::shared_ptr<SharedMemory> memory, uint32_t entries,
           const rocefs_create_cq& wanted, uint32_t channel)
      : client_(client),
        number_(number),
        memory_(std::move(memory)),
        page_(memory_->at<rocefs_cq_page>(0)),
        entries_(entries),
        cookie_(wanted.cookie),
        stamped_(wanted.stamped != 0),
        channel_(channel) {}

  [[nodiscard]] Completion* claim() override;
  void publish(bool solicited) override;

  // Unique on its device.
  uint32_t number() const { return number_; }
  uint32_t entries() const { return entries_; }
  uint64_t cookie() const { return cookie_; }
  // Continues in other memory, with the entries that the client has not consumed. EINVAL if they do
  // not fit, or the client's counters are invalid.
  Result<void> resize(std::shared_ptr<SharedMemory> memory, uint32_t entries);
  // Number of events sent to the client, or queued.
  uint32_t completion_events() const { return completion_events_; }
  uint32_t async_events() const { return async_events_; }
  uint32_t users = 0;  // send and receive queues of queue pairs

 private:
  void raise(bool solicited);

  Client& client_;
  const uint32_t number_;
  std::shared_ptr<SharedMemory> memory_;
  rocefs_cq_page* page_;
  uint32_t entries_;
  const uint64_t cookie_;
  const bool stamped_;
  const uint32_t channel_;  // socket of the process; 0: none
  Completion claimed_;
  uint32_t produced_ = 0;
  uint32_t completion_events_ = 0;
  bool overrun_ = false;  // in this memory
  uint32_t async_events_ = 0;
};

// A queue with a doorbell.
class ClientQueue {
 public:
  virtual ~ClientQueue() = default;
  // Takes posted requests. Returns whether there may be more.
  virtual bool serve() = 0;
};

class ClientSrq final : public ClientQueue {
 public:
  ClientSrq(Client& client, std::shared_ptr<SharedMemory> memory, const rocefs_created& layout,
            const rocefs_create_srq& wanted, uint32_t number, uint32_t pd);

  // Makes it one of XRC, whose packets name it.
  void list(XrcQueues& queues, CompletionSink& cq, uint32_t domain) {
    listing_.emplace(queues, XrcQueues::Entry{&receives_, &cq, domain});
  }
  bool is_xrc() const { return listing_.has_value(); }

  bool serve() override;
  void release() { ring_.release_all_but(receives_.size()); }
  ReceiveQueue& receives() { return receives_; }
  void set_limit(uint32_t limit);
  const rocefs_create_srq& created() const { return wanted_; }
  uint32_t limit() const { return limit_; }
  uint32_t async_events() const { return async_events_; }
  uint32_t pd() const { return pd_; }
  // Unique on its device among those of XRC, and among the others.
  uint32_t number() const { return listing_ ? listing_->number() : number_; }
  uint32_t users = 0;

 private:
  Client& client_;
  const std::shared_ptr<SharedMemory> memory_;
  const rocefs_create_srq wanted_;
  const uint32_t number_;
  const uint32_t pd_;
  WqeRing<rocefs_receive_wqe> ring_;
  ReceiveQueue receives_;
  std::optional<XrcListing> listing_;
  uint32_t limit_ = 0;
  uint32_t async_events_ = 0;
};

class ClientQp final : public ClientQueue, public QpObserver {
 public:
  ClientQp(Client& client, std::shared_ptr<SharedMemory> memory, const rocefs_created& layout,
           const rocefs_create_qp& wanted);
  ~ClientQp() override;

  // Takes over a queue pair that was made for it. ENOMEM: no free region.
  Result<void> attach(Qp& qp, ClientSrq* srq, const rocefs_created& layout);
  // Shares a receiving queue pair of XRC.
  void attach(std::shared_ptr<XrcTarget> target);
  Qp& qp() { return *qp_; }
  ClientSrq* srq() { return srq_; }
  const rocefs_create_qp& created() const { return wanted_; }

  bool serve() override;
  // Publishes which slots are free.
  void release();
  // Number of released slots of the send queue.
  uint32_t sends_released() const { return sends_.released(); }
  // A send request has completed: whether its owner must be woken at once.
  bool must_wake();
  // The queue pair was reset: posted requests are forgotten.
  void drop();
  // The queue pair fails: flushes posted requests, including those in the rings until now.
  void flush();
  // Destroys the queue pair; afterwards its memory is not used any more.
  void destroy();
  void qp_event(QpEvent event) override;
  // Number of events sent to the client, or queued.
  uint32_t async_events() const { return async_events_; }
  // Number of groups that it is attached to.
  uint32_t groups = 0;

 private:
  bool serve_sends();
  bool serve_receives();
  void use_copied(SendRequest& request);

  Client& client_;
  const std::shared_ptr<SharedMemory> memory_;
  const rocefs_create_qp wanted_;
  SendLimits limits_;
  uint64_t asked_ = 0;              // bytes of all send requests so far
  std::vector<uint64_t> asked_by_;  // the same, up to the request in each slot
  CompletionModeration moderation_;
  WqeRing<rocefs_send_wqe> sends_;
  WqeRing<rocefs_receive_wqe> receives_;
  Qp* qp_ = nullptr;
  std::shared_ptr<XrcTarget> target_;  // XRC_RECV
  ClientSrq* srq_ = nullptr;
  uint32_t async_events_ = 0;
};

class Client final : public DeviceClient {
 public:
  // Shared by the clients of a device: last numbers in use, and XRC domains.
  struct Shared {
    uint32_t pd = 1u << 16;  // smaller ones are those of built-in traffic
    uint32_t context = 0, cq = 0, srq = 0;
    XrcDomains domains;
  };
  // `events`: the socket for asynchronous events.
  Client(Device& device, Shared& shared, std::shared_ptr<Process> process,
         std::shared_ptr<SharedMemory> page, std::string comm, uint32_t events);
  ~Client() override;

  // Resources that belong to a request.
  struct Attachment {
    std::shared_ptr<SharedMemory> memory;  // for the object to create
    rocefs_created layout{};
    uint32_t socket = 0;
    uint64_t cookie = 0;  // cookie of the destroyed object, if it has events
    int file = -1;        // memfd of which `memory` is a part; the connection's
    uint64_t offset = 0;  // of `memory` in it
  };
  using Reply = UniqueFunction<void(const rocefs_answer&)>;
  // Answers when the request is done.
  void request(const rocefs_request& request, Attachment attachment, Reply reply);

  // Polls the doorbells and delivers completions; returns whether there was work.
  bool poll();
  // Hands over the moves for the process, and wakes threads that wait for completions. `more`: both
  // may wait a little for further ones. Returns the number of bytes to move.
  uint64_t flush(bool more);
  // Whether poll() has work.
  bool wanted() const;

  // Adds a line for each object to the text, and its queue pairs to the list.
  void add_resources(std::string& text, std::unordered_set<const Qp*>& listed);

  // The device is being removed.
  void device_removed(Device& device) override;
  void port_changed(const Port& port) override;
  void gids_changed(const Port& port) override;

  Device& device() { return *device_; }
  Process& process() { return *process_; }
  const std::shared_ptr<Process>& shared_process() { return process_; }
  // A completion was added; returns the queue pair that it belongs to, if that still exists.
  ClientQp* completed(const Completion& completion);
  // Sends an event. False if it is lost: too many are queued.
  bool raise(uint32_t channel, uint64_t cookie);
  bool tell(uint32_t type, uint64_t element);

 private:
  struct Pd {
    uint32_t number = 0;
    uint32_t users = 0;
  };
  struct Dm {
    std::shared_ptr<Memory> memory;
    uint64_t length = 0;  // bytes that the program has asked for
    uint64_t size = 0;    // bytes that they take
    uint32_t users = 0;
  };
  struct Mr {
    uint32_t key = 0;
    Pd* pd = nullptr;
    Dm* dm = nullptr;  // region of device memory
    Process::Pages pages = Process::Pages::kPopulated;
  };
  struct Xrcd {
    std::shared_ptr<XrcDomain> domain;
    uint32_t users = 0;
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
  Result<void> open_xrcd(const rocefs_open_xrcd& wanted, rocefs_answer& answer);
  Result<void> close_xrcd(uint32_t handle);
  Result<void> create_xrc_target(const rocefs_create_qp& wanted, Attachment& attachment,
                                 rocefs_answer& answer);
  Result<void> open_xrc_target(const rocefs_create_qp& wanted, Attachment& attachment,
                               rocefs_answer& answer);
  Result<void> add_xrc_target(Xrcd& xrcd, const rocefs_create_qp& wanted,
                              std::shared_ptr<XrcTarget> target, Attachment& attachment,
                              rocefs_answer& answer);
  Result<void> make_xrc(ClientSrq& srq);
  Result<void> modify_srq(const rocefs_srq_attr& wanted);
  Result<void> query_srq(uint32_t handle, rocefs_answer& answer);
  Result<void> destroy_srq(uint32_t handle, Attachment& attachment, rocefs_answer& answer);
  void create_channel(uint64_t name, uint32_t socket, Reply reply);
  void add_channel(uint64_t name, uint32_t socket, Reply& reply);
  Result<void> put_back(const rocefs_put_back& event);
  Result<void> create_qp(const rocefs_create_qp& wanted, Attachment& attachment,
                         rocefs_answer& answer);
  Result<void> modify_qp(const rocefs_qp_attr& wanted);
  Result<void> query_qp(uint32_t handle, rocefs_answer& answer);
  Result<void> destroy_qp(uint32_t handle, Attachment& attachment, rocefs_answer& answer);
  Scheduler* draining(uint32_t handle);
  bool drains_first(const rocefs_request& request, Attachment& attachment, Reply& reply);
  void retry_destroy(TimeNs now);
  Result<void> attach_multicast(const rocefs_multicast& wanted);
  Result<void> detach_multicast(const rocefs_multicast& wanted);
  void reg_mr(const rocefs_reg_mr& wanted, Reply reply);
  Result<void> share_mr(const rocefs_reg_mr& wanted, Attachment& attachment, rocefs_answer& answer);
  Result<void> add_region(const rocefs_reg_mr& wanted, std::shared_ptr<Memory> memory,
                          rocefs_answer& answer);
  Result<void> alloc_dm(const rocefs_alloc_dm& wanted, Attachment& attachment,
                        rocefs_answer& answer);
  Result<void> free_dm(uint32_t handle);
  Result<void> reg_dm_mr(const rocefs_reg_dm_mr& wanted, rocefs_answer& answer);
  // When `reply` is called, all moves of the client's memory have ended.
  void rereg_mr(const rocefs_rereg_mr& wanted, Reply reply);
  Result<void> change_region(const rocefs_rereg_mr& wanted, rocefs_answer& answer);
  Result<void> dereg_mr(uint32_t handle);
  Result<void> alloc_mw(const rocefs_alloc_mw& wanted, rocefs_answer& answer);
  Result<void> dealloc_mw(uint32_t handle);
  // Calls `then` on the core when the copy thread has checked whether the bytes are accessible.
  using Populated = UniqueFunction<void(bool populated)>;
  void populate(uint64_t address, uint64_t length, uint32_t access, Populated then);
  void give_back();
  QpOwner owner() const;
  Result<uint32_t> take_doorbell(ClientQueue& queue);
  void give_doorbell(ClientQueue& queue);

  Device* device_;
  Shared& shared_;
  const uint32_t number_;  // of this context; unique on its device
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<SharedMemory> memory_;
  rocefs_context_page* const page_;
  const std::string comm_;
  const uint32_t events_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool completed_ = false;  // since the last flush()
  bool wake_ = false;       // one of them needs a wake-up at once
  int held_back_ = 0;       // consecutive flushes
  uint32_t completions_ = 0;

  Handles<Pd> pds_{ROCEFS_MAX_PD};
  Handles<Xrcd> xrcds_{ROCEFS_MAX_XRCD};
  Handles<Dm> dms_{ROCEFS_MAX_DM / 4096};
  uint64_t dm_bytes_ = 0;
  Handles<Mr> mrs_{ROCEFS_MAX_MR};
  Handles<Mw> mws_{ROCEFS_MAX_MW};
  Handles<ClientCq> cqs_{ROCEFS_MAX_CQ};
  Handles<ClientSrq> srqs_{ROCEFS_MAX_QUEUES};
  Handles<ClientQp> qps_{ROCEFS_MAX_QUEUES};
  // A DESTROY_QP that waits until the queue pair's datagrams are sent; a client has one request at
  // a time.
  struct Leaving {
    rocefs_request request;
    Attachment attachment;
    Reply reply;
    TimeNs deadline;  // of the wall's clock
    TimeNs delay;     // until it looks again
  };
  std::optional<Leaving> leaving_;
  Event retry_ = event_of<&Client::retry_destroy>(this);
  uint32_t groups_ = 0;  // attachments of all queue pairs
  std::vector<ClientQueue*> doorbells_;
  std::vector<uint32_t> served_again_;  // doorbells of queues that may have more requests
  std::unordered_map<uint32_t, ClientQp*> by_number_;
  std::unordered_map<uint32_t, ClientSrq*> xrc_srqs_;  // by number
  std::unordered_map<uint64_t, uint32_t> channels_;    // sockets of channels, by name
};

// Error for an invalid handle.
Error no_such(std::string_view what, uint32_t handle);
// ENOENT, as the kernel answers a request to destroy what is not there.
Error nothing_to_destroy(std::string_view what, uint32_t handle);
// Answer for an error.
rocefs_answer refusal(const Error& why);

}  // namespace rocefs
