// The functions of rocefs_pcc_test.h.
#include "pcc/api/rocefs_pcc_test.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "pcc/run/handle.h"
#include "pcc/run/hop_units.h"
#include "pcc/run/offline.h"
#include "pcc/run/plugin.h"

using namespace rocefs;

// Opaque in the header.
struct _rocefs_pcc_test {
  PccHandle handle{nullptr, 1};
  std::unique_ptr<PccPlugin> plugin;
  std::unique_ptr<PccOffline> offline;
  PccOffline::Input next;  // what has happened since the latest call
  std::vector<rocefs_qp_event> events;
};

namespace {

constexpr uint64_t kTestSeed = 1;
constexpr uint64_t kLink = 100'000'000'000;  // bit/s
constexpr uint32_t kHopTime = 1u << 24;      // a switch's time is modulo this

void say(std::string_view text) {
  std::fprintf(stderr, "rocefs_pcc_test: %.*s\n", static_cast<int>(text.size()), text.data());
}

mango_status_e said(const Error& error) {
  say(error.reason);
  switch (error.code) {
    case ENOENT:
      return MANGO_STATUS_NOT_FOUND;
    case EFAULT:
      return MANGO_STATUS_PLUGIN;
    case ENOMEM:
      return MANGO_STATUS_NO_MEMORY;
    default:
      return MANGO_STATUS_INVALID_PARAM;
  }
}

Result<std::unique_ptr<_rocefs_pcc_test>> open_test(const mango_pcc_algo_plugin_t& plugin) {
  auto test = std::make_unique<_rocefs_pcc_test>();
  auto adopted = PccPlugin::adopt(test->handle, plugin);
  if (!adopted) return adopted.error();
  test->plugin = std::move(*adopted);
  const PccAlgorithm* algorithm = test->handle.controller().algorithm(test->plugin->slot());
  auto log = [](mango_log_level_e level, std::string_view text) {
    if (level != MANGO_LOG_LEVEL_DEBUG) say(text);
  };
  auto offline = PccOffline::of(*algorithm, kTestSeed, log);
  if (!offline) return offline.error();
  test->offline = std::move(*offline);
  test->next.first = true;
  test->next.line_bps = kLink;
  return test;
}

// False if it is none that an engine tells.
bool to_engine(const rocefs_pcc_event_t& event, rocefs_qp_event& out) {
  if (event.type < ROCEFS_PCC_EVENT_ACK || event.type > ROCEFS_PCC_EVENT_TIMEOUT) return false;
  if (event.hops > ROCEFS_PCC_MAX_HOPS) return false;
  if (event.missed_hops > 0 && event.hops < ROCEFS_PCC_MAX_HOPS) return false;
  out = {};
  out.at_ns = event.at_ns;
  out.acked = event.acked_bytes;
  out.sent = event.sent_bytes;
  out.bytes = event.bytes;
  out.rtt_ns = event.rtt_ns;
  out.kind = static_cast<uint16_t>(event.type);
  out.marked = static_cast<uint8_t>(std::min<uint32_t>(event.marked, 255));
  out.way = event.way;
  out.hops = static_cast<uint8_t>(event.hops + std::min(event.missed_hops, 255 - event.hops));
  for (uint32_t i = 0; i < event.hops; ++i) {
    const rocefs_pcc_hop_t& hop = event.hop[i];
    if (hop.at_ns > event.at_ns || event.at_ns - hop.at_ns >= kHopTime) return false;
    out.hop[i] = {.queue = hop.queue_bytes / kHopQueueUnit,
                  .sent = hop.sent_bytes % ROCEFS_PCC_SENT_MODULUS / kHopSentUnit,
                  .time_ns = static_cast<uint32_t>(hop.at_ns % kHopTime),
                  .rate_mbps = static_cast<uint32_t>(hop.rate_bps / kHopRateUnit)};
  }
  return true;
}

}  // namespace

extern "C" {

rocefs_pcc_test_t* rocefs_pcc_test_open(const mango_pcc_algo_plugin_t* plugin) {
  if (!plugin) return nullptr;
  try {
    auto test = open_test(*plugin);
    if (test) return test->release();
    say(test.error().reason);
  } catch (...) {
    say("it cannot be opened: there is no memory");
  }
  return nullptr;
}

void rocefs_pcc_test_close(rocefs_pcc_test_t* test) {
  delete test;
}

mango_status_e rocefs_pcc_test_param_set(rocefs_pcc_test_t* test, const char* name,
                                         const char* value) {
  if (!test || !name || !value) return MANGO_STATUS_INVALID_PARAM;
  try {
    Result<void> set = test->offline->set({name, value});
    return set ? MANGO_STATUS_OK : said(set.error());
  } catch (...) {
    return MANGO_STATUS_NO_MEMORY;
  }
}

mango_status_e rocefs_pcc_test_param_get(rocefs_pcc_test_t* test, const char* name, char* value,
                                         size_t size) {
  if (!test || !name || !value) return MANGO_STATUS_INVALID_PARAM;
  try {
    Result<std::string> text = test->offline->value(name, test->next.qpn);
    if (!text) return said(text.error());
    if (text->size() >= size) return MANGO_STATUS_LIMIT;
    std::memcpy(value, text->c_str(), text->size() + 1);
    return MANGO_STATUS_OK;
  } catch (...) {
    return MANGO_STATUS_NO_MEMORY;
  }
}

mango_status_e rocefs_pcc_test_window(rocefs_pcc_test_t* test, uint32_t octets) {
  if (!test) return MANGO_STATUS_INVALID_PARAM;
  if (!test->next.first) return MANGO_STATUS_BAD_STATE;
  test->next.window = octets;
  return MANGO_STATUS_OK;
}

void rocefs_pcc_test_link(rocefs_pcc_test_t* test, uint64_t bits_per_second) {
  if (test) test->next.line_bps = bits_per_second;
}

void rocefs_pcc_test_active(rocefs_pcc_test_t* test, uint32_t queue_pairs) {
  if (test) test->next.active = queue_pairs;
}

void rocefs_pcc_test_cnps(rocefs_pcc_test_t* test, uint32_t more) {
  if (test) test->next.cnps += more;
}

mango_status_e rocefs_pcc_test_rtt(rocefs_pcc_test_t* test, uint64_t rtt_ns) {
  if (!test) return MANGO_STATUS_INVALID_PARAM;
  if (!test->offline->probing(test->next.qpn)) return MANGO_STATUS_BAD_STATE;
  test->next.rtt_ns = rtt_ns;
  test->next.rtt_new = true;
  return MANGO_STATUS_OK;
}

mango_status_e rocefs_pcc_test_event(rocefs_pcc_test_t* test, const rocefs_pcc_event_t* event) {
  rocefs_qp_event out;
  if (!test || !event || !to_engine(*event, out)) return MANGO_STATUS_INVALID_PARAM;
  try {
    test->events.push_back(out);
    return MANGO_STATUS_OK;
  } catch (...) {
    return MANGO_STATUS_NO_MEMORY;
  }
}

mango_status_e rocefs_pcc_test_call(rocefs_pcc_test_t* test, uint64_t at_ns,
                                    rocefs_pcc_decision_t* decision) {
  if (!test) return MANGO_STATUS_INVALID_PARAM;
  try {
    PccOffline::Input& next = test->next;
    next.at = static_cast<TimeNs>(at_ns);
    next.events = test->events;
    Result<PccOffline::Decision> decided = test->offline->call(next);
    next.first = next.rtt_new = false;
    next.cnps = 0;
    test->events.clear();
    if (!decided) return said(decided.error());
    if (decision) *decision = {decided->rate_bps, decided->window, decided->probe ? 1u : 0u};
    return MANGO_STATUS_OK;
  } catch (...) {
    say("the algorithm threw an exception");
    return MANGO_STATUS_PLUGIN;
  }
}

}  // extern "C"
