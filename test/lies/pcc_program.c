/* A program that sets windows for some of its calls, and reports the outcome. */
#include <libmango.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_uint calls;
static void algo(void* unused) {
  (void)unused;
  mango_pcc_window_update(9000 + ++calls % 2);
}

int main(void) {
  mango_pcc_h pcc;
  const struct timespec moment = {.tv_nsec = 1000000};
  mango_status_e status = MANGO_STATUS_BUSY; /* as long as another has the windows */
  for (int i = 0; status == MANGO_STATUS_BUSY && i < 30000; ++i) {
    if (i > 0) nanosleep(&moment, NULL);
    status = mango_pcc_create("mb_0", &pcc);
  }
  if (!status) status = mango_pcc_ctrl_reg_algo(pcc, 0, algo, NULL, 0);
  if (!status) status = mango_pcc_ctrl_run(pcc, 1);
  for (int i = 0; !status && i < 100 && calls < 10; ++i) nanosleep(&moment, NULL);
  if (!status) status = mango_pcc_ctrl_stop(pcc);
  puts(mango_status_str(status));
  return status != MANGO_STATUS_OK;
}
