// Port by itself: keeps what it transmits and logs what its users hear.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mad_cc/port/mad_port.h"

namespace rocefs {

inline mad::Mad a_mad(uint8_t mgmt_class, uint8_t method, uint64_t tid = 0) {
  mad::Mad mad;
  mad.bytes[0] = 1;
  mad.bytes[1] = mgmt_class;
  mad.bytes[2] = mgmt_class == mad::kSubnAdm ? 2 : 1;
  mad.bytes[3] = method;
  mad.set_tid(tid);
  return mad;
}
inline mad::Mad answer_to(const mad::Mad& request) {
  mad::Mad answer = request;
  answer.set_method(request.method() ^ mad::kResponseBit);
  return answer;
}

class MadRig : public MadCarrier, public MadUser {
 public:
  struct Transmitted {
    TimeNs at;
    mad::Address to;
    mad::Mad mad;
  };
  Scheduler scheduler;
  std::vector<Transmitted> transmitted;
  std::vector<std::string> heard;  // `ms: agent request what`
  std::vector<mad::Message> messages;
  std::function<void(uint32_t agent)> then;  // from within what the user hears
  MadPort port{*this, scheduler};

  uint32_t agent(uint8_t mgmt_class = mad::kSubnAdm, uint8_t rmpp = 0,
                 std::initializer_list<uint8_t> methods = {}) {
    return *port.add_agent(registration(mgmt_class, rmpp, methods), *this);
  }
  static MadRegistration registration(uint8_t mgmt_class, uint8_t rmpp = 0,
                                      std::initializer_list<uint8_t> methods = {}) {
    MadRegistration registration;
    registration.mgmt_class = mgmt_class;
    registration.qpn = mad::is_smp(mgmt_class) ? 0 : 1;
    registration.class_version = mgmt_class == mad::kSubnAdm ? 2 : 1;
    registration.rmpp_version = rmpp;
    for (uint8_t method : methods) registration.methods.set(method);
    return registration;
  }
  // Returns an errno, or 0.
  int send(uint32_t agent, uint64_t request, const mad::Mad& mad, uint32_t timeout_ms = 100,
           uint32_t retries = 0) {
    return send(agent, request, mad::message_of(mad), timeout_ms, retries);
  }
  int send(uint32_t agent, uint64_t request, mad::Message message, uint32_t timeout_ms = 100,
           uint32_t retries = 0) {
    mad::Address to = peer;
    to.qpn = mad::is_smp(message[1]) ? 0 : 1;
    Result<void> sent =
        port.send(agent, MadSend{request, to, timeout_ms, retries, std::move(message)});
    return sent ? 0 : sent.error().code;
  }
  void receive(const mad::Mad& mad) { port.receive(peer, mad); }
  void pass(TimeNs ns) { scheduler.run_until(scheduler.now() + ns); }
  // Returns what was heard since the last call, in one line.
  std::string news() {
    std::string all;
    for (const std::string& line : std::exchange(heard, {})) all += line + "; ";
    return all;
  }
  const mad::Mad& last() const { return transmitted.back().mad; }
  mad::Address peer{.lid = 7, .qpn = 1, .qkey = mad::kQkey};

  void transmit(MadReceiver&, const mad::Address& to, const mad::Mad& mad) override {
    transmitted.push_back({scheduler.now(), to, mad});
  }
  void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override {
    say(agent, request ? fmt::format("{}", *request) : "-",
        fmt::format("{} octets from {}", message.size(), from.lid));
    messages.push_back(std::move(message));
    if (then) then(agent);
  }
  void ended(uint32_t agent, uint64_t request, End end) override {
    constexpr const char* kNames[] = {"sent", "timed out", "expired", "flushed", "failed"};
    say(agent, fmt::format("{}", request), kNames[static_cast<size_t>(end)]);
    if (then) then(agent);
  }

 private:
  void say(uint32_t agent, const std::string& request, const std::string& what) {
    heard.push_back(
        fmt::format("{}: {} {} {}", scheduler.now() / kMillisecond, agent, request, what));
  }
};

}  // namespace rocefs
