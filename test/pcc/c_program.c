/* libmango.h from C: every function, every parameter type, a plugin. The test
 * calls it with a handle. */
#include <libmango.h>
#include <stdbool.h>
#include <string.h>

struct c_params {
  unsigned int u32;
  double f64;
  int i32;
  uint64_t u64;
  int64_t i64;
  float f32;
  bool flag;
};

static const mango_pcc_param_t params[] = {
    REGISTER_UINT32_PARAM(struct c_params, u32), REGISTER_DOUBLE_PARAM(struct c_params, f64),
    REGISTER_INT32_PARAM(struct c_params, i32),  REGISTER_UINT64_PARAM(struct c_params, u64),
    REGISTER_INT64_PARAM(struct c_params, i64),  REGISTER_FLOAT_PARAM(struct c_params, f32),
    REGISTER_BOOL_PARAM(struct c_params, flag),
};

static void legacy(void* block) {
  struct c_params* p = block;
  unsigned int window = mango_pcc_window_current();
  mango_pcc_event_request(MANGO_PCC_EVENT_RTT);
  if (mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP) > 0) {
    mango_pcc_window_update(window / 2);
  } else {
    mango_pcc_window_update(window + p->u32);
  }
  mango_pcc_log(MANGO_LOG_LEVEL_DEBUG, "window %u", mango_pcc_window_current());
}

static mango_pcc_result_t event(void* block, const mango_pcc_context_t* ctx) {
  mango_pcc_result_t result = {0};
  (void)block;
  result.new_window = ctx->current_window;
  return result;
}

static void* init_params(mango_pcc_h pcc, unsigned int slot, size_t* param_size) {
  static struct c_params initial = {100, 0.5, -1, 1, -1, 0.5f, true};
  *param_size = sizeof initial;
  mango_pcc_params_register(pcc, slot, params, sizeof params / sizeof params[0]);
  return &initial;
}

const mango_pcc_algo_plugin_t c_plugin = {
    .name = "c_plugin", .desc = "from C", .init_params = init_params, .algo_fn = legacy};

static void count(const char* name, mango_pcc_param_type_e type, void* value, void* user_data) {
  (void)value;
  if (strcmp(name, params[type].name) == 0) ++*(unsigned int*)user_data;
}

/* Returns the line that failed, or 0. */
#define EXPECT(what, status)                 \
  do {                                       \
    if ((what) != (status)) return __LINE__; \
  } while (0)

int c_program(mango_pcc_h pcc) {
  static uint32_t qps[MAX_QPS];
  struct c_params initial = {100, 0.5, -1, 1, -1, 0.5f, true};
  mango_pcc_config_t config = {.option = MANGO_PCC_CONFIG_INTERVAL};
  uint32_t n = 0, window = 0;
  uint64_t cnps = 0;
  unsigned int walked = 0;
  config.value.interval_us = 1000;
  EXPECT(mango_pcc_ctrl_config(pcc, &config), MANGO_STATUS_OK);
  EXPECT(mango_pcc_ctrl_reg_algo(pcc, 1, legacy, &initial, sizeof initial), MANGO_STATUS_OK);
  EXPECT(mango_pcc_ctrl_reg_algo_event(pcc, 2, event, MANGO_PCC_METRIC_CNP, NULL, 0),
         MANGO_STATUS_OK);
  EXPECT(mango_pcc_params_register(pcc, 1, params, 6), MANGO_STATUS_OK);
  EXPECT(mango_pcc_param_register(pcc, 1, params[6].name, params[6].type, params[6].offset),
         MANGO_STATUS_OK);
  EXPECT(mango_pcc_walk_params(pcc, 1, count, &walked, 0), MANGO_STATUS_OK);
  EXPECT(walked, 7);
  EXPECT(mango_pcc_ctrl_apply_algo(pcc, 1, NULL, 0), MANGO_STATUS_OK);
  EXPECT(mango_pcc_ctrl_run(pcc, 2), MANGO_STATUS_OK);
  EXPECT(mango_pcc_active_qp_list(pcc, qps, &n), MANGO_STATUS_OK);
  EXPECT(n, 1);
  EXPECT(mango_pcc_cnp_count_by_qp(pcc, qps[0], &cnps), MANGO_STATUS_OK);
  do {
    EXPECT(mango_pcc_window_count_by_qp(pcc, qps[0], &n), MANGO_STATUS_OK);
  } while (n < 3);
  EXPECT(mango_pcc_window_current_by_qp(pcc, qps[0], &window), MANGO_STATUS_OK);
  EXPECT(window >= 0x80000 + 300, 1);
  EXPECT(mango_pcc_ctrl_unreg_algo(pcc, 1), MANGO_STATUS_BUSY);
  EXPECT(mango_pcc_ctrl_stop(pcc), MANGO_STATUS_OK);
  EXPECT(mango_pcc_ctrl_unreg_algo(pcc, 1), MANGO_STATUS_OK);
  EXPECT(strcmp(mango_status_str(MANGO_STATUS_OK), "success"), 0);
  return mango_pcc_get_context(pcc) ? 0 : __LINE__;
}
