/* rocefs_pcc_test.h from C: an algorithm of each kind under its functions. */
#include <rocefs_pcc_test.h>
#include <string.h>

struct state {
  uint32_t step;
  uint32_t taken; /* octets of events */
};

static const mango_pcc_param_t params[] = {REGISTER_UINT32_PARAM(struct state, step),
                                           REGISTER_UINT32_PARAM(struct state, taken)};

static void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  static struct state initial = {100, 0};
  *size = sizeof initial;
  mango_pcc_params_register(pcc, slot, params, 2);
  rocefs_pcc_param_range(pcc, slot, "step", 1, 1000);
  return &initial;
}

static void legacy(void* block) {
  struct state* state = block;
  mango_pcc_event_request(MANGO_PCC_EVENT_RTT);
  mango_pcc_window_update(mango_pcc_window_current() + state->step -
                          mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP) +
                          mango_pcc_event_get_val(MANGO_PCC_EVENT_RTT));
}

/* The latest event and context, for the test to look at. */
static rocefs_pcc_event_t last_event;
static mango_pcc_context_t last_context;

static mango_pcc_result_t by_events(void* block, const mango_pcc_context_t* context) {
  struct state* state = block;
  mango_pcc_result_t result = {0};
  while (rocefs_pcc_event_next(&last_event)) state->taken += last_event.bytes;
  last_context = *context;
  result.new_window = 1024 + state->taken;
  result.request_rtt_probe = context->cnp_delta > 0;
  rocefs_pcc_rate_update(rocefs_pcc_line_rate() / 2 + rocefs_pcc_now());
  return result;
}

static void wild(void* block) {
  memset(block, 0, sizeof(struct state) + 1);
}

static mango_pcc_algo_plugin_t plugin_of(const char* name) {
  mango_pcc_algo_plugin_t plugin;
  memset(&plugin, 0, sizeof plugin);
  plugin.name = name;
  plugin.init_params = init;
  return plugin;
}

/* Returns the line that failed, or 0. */
#define EXPECT(what)              \
  do {                            \
    if (!(what)) return __LINE__; \
  } while (0)

static int legacy_algorithm(void) {
  mango_pcc_algo_plugin_t plugin = plugin_of("legacy");
  rocefs_pcc_decision_t now;
  char text[8];
  rocefs_pcc_test_t* test;
  plugin.algo_fn = legacy;
  test = rocefs_pcc_test_open(&plugin);
  EXPECT(test);
  EXPECT(rocefs_pcc_test_rtt(test, 5) == MANGO_STATUS_BAD_STATE);
  EXPECT(rocefs_pcc_test_call(test, 60000, &now) == MANGO_STATUS_OK);
  EXPECT(now.window == 524388 && now.rate_bps == 0 && now.probe == 1);
  EXPECT(rocefs_pcc_test_window(test, 5000) == MANGO_STATUS_BAD_STATE);
  EXPECT(rocefs_pcc_test_param_set(test, "step", "7") == MANGO_STATUS_OK);
  EXPECT(rocefs_pcc_test_param_set(test, "step", "1001") == MANGO_STATUS_INVALID_PARAM);
  EXPECT(rocefs_pcc_test_param_set(test, "leap", "7") == MANGO_STATUS_NOT_FOUND);
  EXPECT(rocefs_pcc_test_param_get(test, "step", text, 2) == MANGO_STATUS_OK);
  EXPECT(strcmp(text, "7") == 0);
  EXPECT(rocefs_pcc_test_param_get(test, "step", text, 1) == MANGO_STATUS_LIMIT);
  EXPECT(rocefs_pcc_test_param_get(test, "leap", text, 8) == MANGO_STATUS_NOT_FOUND);
  EXPECT(rocefs_pcc_test_rtt(test, 1000) == MANGO_STATUS_OK);
  rocefs_pcc_test_cnps(test, 2);
  rocefs_pcc_test_cnps(test, 3);
  EXPECT(rocefs_pcc_test_call(test, 120000, &now) == MANGO_STATUS_OK);
  EXPECT(now.window == 524388 + 7 - 5 + 1000 && now.probe == 1);
  EXPECT(rocefs_pcc_test_call(test, 180000, &now) == MANGO_STATUS_OK);
  EXPECT(now.window == 524388 + 14 - 5 + 1000 && now.probe == 0);
  rocefs_pcc_test_close(test);
  return 0;
}

static int event_algorithm(void) {
  mango_pcc_algo_plugin_t plugin = plugin_of("by_events");
  rocefs_pcc_decision_t now;
  rocefs_pcc_event_t event;
  rocefs_pcc_test_t* test;
  plugin.algo_event_fn = by_events;
  plugin.required_metrics = MANGO_PCC_METRIC_CNP | MANGO_PCC_METRIC_RTT | ROCEFS_PCC_METRIC_EVENTS;
  test = rocefs_pcc_test_open(&plugin);
  EXPECT(test);
  EXPECT(rocefs_pcc_test_window(test, 5000) == MANGO_STATUS_OK);
  memset(&event, 0, sizeof event);
  EXPECT(rocefs_pcc_test_event(test, &event) == MANGO_STATUS_INVALID_PARAM);
  event.type = ROCEFS_PCC_EVENT_ACK;
  event.at_ns = 100000000;
  event.acked_bytes = 1u << 20;
  event.sent_bytes = 1u << 21;
  event.bytes = 4096;
  event.rtt_ns = 9000;
  event.marked = 3;
  event.hops = 2;
  event.hop[1].at_ns = 99990000;
  event.hop[1].rate_bps = 25000000000u;
  event.hop[1].queue_bytes = 1600;
  event.hop[1].sent_bytes = ROCEFS_PCC_SENT_MODULUS - 64;
  EXPECT(rocefs_pcc_test_event(test, &event) ==
         MANGO_STATUS_INVALID_PARAM); /* hop[0]: too long ago */
  event.hop[0].at_ns = 99980000;
  EXPECT(rocefs_pcc_test_event(test, &event) == MANGO_STATUS_OK);
  EXPECT(rocefs_pcc_test_event(test, &event) == MANGO_STATUS_OK);
  rocefs_pcc_test_link(test, 40000000000u);
  rocefs_pcc_test_active(test, 12);
  rocefs_pcc_test_cnps(test, 1);
  EXPECT(rocefs_pcc_test_call(test, 200000000, &now) == MANGO_STATUS_OK);
  EXPECT(memcmp(&event, &last_event, sizeof event) == 0);
  EXPECT(last_context.current_window == 5000 && last_context.active_qp_count == 12);
  EXPECT(last_context.cnp_delta == 1 && !last_context.rtt_updated);
  EXPECT(now.window == 1024 + 8192 && now.rate_bps == 20200000000u && now.probe == 1);
  EXPECT(rocefs_pcc_test_rtt(test, 12345) == MANGO_STATUS_OK);
  EXPECT(rocefs_pcc_test_call(test, 300000000, &now) == MANGO_STATUS_OK);
  EXPECT(last_context.rtt_updated && last_context.latest_rtt_ns == 12345);
  EXPECT(now.window == 1024 + 8192 && now.probe == 0);
  rocefs_pcc_test_close(test);
  return 0;
}

static int refusals(void) {
  mango_pcc_algo_plugin_t plugin = plugin_of("wild");
  rocefs_pcc_test_t* test;
  EXPECT(!rocefs_pcc_test_open(NULL));
  EXPECT(!rocefs_pcc_test_open(&plugin)); /* no function */
  plugin.algo_fn = wild;
  plugin.name = "wild one";
  EXPECT(!rocefs_pcc_test_open(&plugin));
  plugin.name = "wild";
  test = rocefs_pcc_test_open(&plugin);
  EXPECT(test);
  EXPECT(rocefs_pcc_test_call(test, 1, NULL) == MANGO_STATUS_PLUGIN);
  EXPECT(rocefs_pcc_test_call(test, 2, NULL) == MANGO_STATUS_PLUGIN);
  rocefs_pcc_test_close(test);
  rocefs_pcc_test_close(NULL);
  return 0;
}

int harness_program(void);
int harness_program(void) {
  int line = legacy_algorithm();
  if (line == 0) line = event_algorithm();
  return line ? line : refusals();
}
