// CmHost: what a connection or a SIDR question needs of its communication manager.
#pragma once

#include <cstdint>

#include "core/base/rng.h"
#include "core/loop/scheduler.h"
#include "rdma/cm/message.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

class CmConnection;
class Port;
class Sidr;

// Core thread. Outlives its connections and questions.
class CmHost {
 public:
  Scheduler& scheduler() { return scheduler_; }
  // GUID of the node.
  uint64_t guid() const { return guid_; }
  uint64_t next_tid() { return ++tid_; }
  uint32_t random_psn() { return static_cast<uint32_t>(rng_.next()) & 0xffffff; }

  // Sends a message from queue pair 1 of `port`; `again` counts it as a retry.
  virtual void transmit(Port& port, const AddressVector& path, uint64_t tid,
                        const cm::Message& message, bool again) = 0;
  // Begins and ends the look-up of the connection by the far end's id and queue pair.
  virtual void note_far_end(CmConnection& connection) = 0;
  virtual void forget_far_end(CmConnection& connection) = 0;
  // The connection has entered timewait.
  virtual void note_timewait(const CmConnection& connection) = 0;
  // Frees it, later: the call may come from within it.
  virtual void release(CmConnection& connection) = 0;
  virtual void release(Sidr& question) = 0;

 protected:
  CmHost(Scheduler& scheduler, uint64_t guid, const Rng& rng)
      : scheduler_(scheduler), guid_(guid), rng_(rng), tid_(rng_.next() >> 32 << 32) {}
  CmHost(const CmHost&) = delete;
  CmHost& operator=(const CmHost&) = delete;
  ~CmHost() = default;

  uint32_t random_id() { return static_cast<uint32_t>(rng_.next()); }

 private:
  Scheduler& scheduler_;
  const uint64_t guid_;
  Rng rng_;
  uint64_t tid_;
};

}  // namespace rocefs
