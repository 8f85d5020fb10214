#include <errno.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

void rocefs_init_queue(struct rocefs_work_queue* queue, struct rocefs_queue* counters, void* slots,
                       uint32_t entries, uint32_t max_sge, uint32_t doorbell) {
  pthread_mutex_init(&queue->lock, NULL);
  queue->counters = counters;
  queue->slots = slots;
  queue->released = &counters->released;
  queue->entries = entries;
  queue->max_sge = max_sge;
  queue->doorbell = doorbell;
}

uint32_t rocefs_free_slots(const struct rocefs_work_queue* queue) {
  uint32_t released = __atomic_load_n(queue->released, __ATOMIC_ACQUIRE);
  uint32_t used = queue->counters->posted - released;
  return used < queue->entries ? queue->entries - used : 0; /* for any count of the engine */
}

void rocefs_wake_engine(const struct rocefs_context* context) {
  static const uint64_t one = 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&context->engine->asleep, __ATOMIC_RELAXED)) return;
  ROCEFS_UNCANCELLED; /* the lock of the queue is held */
  /* Ignores the result: write() fails only when the counter is full, and then the engine wakes
   * anyway. */
  ssize_t ignored = write(context->doorbell, &one, sizeof one);
  (void)ignored;
}

static void ring(struct rocefs_context* context, uint32_t doorbell) {
  struct rocefs_context_page* page = context->page;
  __atomic_fetch_or(&page->doorbells[doorbell / 64], UINT64_C(1) << doorbell % 64,
                    __ATOMIC_RELEASE);
  __atomic_fetch_or(&page->rung, UINT64_C(1) << doorbell / 64, __ATOMIC_RELEASE);
  rocefs_wake_engine(context);
}

void rocefs_publish(struct rocefs_context* context, struct rocefs_work_queue* queue,
                    uint32_t count) {
  if (count == 0) return;
  __atomic_store_n(&queue->counters->posted, queue->counters->posted + count, __ATOMIC_RELEASE);
  ring(context, queue->doorbell);
  rocefs_thread_is_busy();
}

static void write_receive(struct rocefs_receive_wqe* wqe, const struct ibv_recv_wr* wr) {
  wqe->wr_id = wr->wr_id;
  wqe->num_sge = (uint32_t)wr->num_sge;
  wqe->reserved = 0;
  for (int i = 0; i < wr->num_sge; ++i) {
    const struct ibv_sge* sge = &wr->sg_list[i];
    wqe->sges[i] = (struct rocefs_sge){sge->addr, sge->length, sge->lkey};
  }
}

int rocefs_post_receives(struct rocefs_context* context, struct rocefs_work_queue* queue,
                         struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  struct rocefs_receive_wqe* slots = queue->slots;
  uint32_t count = 0;
  int error = 0;
  pthread_mutex_lock(&queue->lock);
  uint32_t next = queue->counters->posted, room = rocefs_free_slots(queue);
  for (; wr; wr = wr->next, ++count) {
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->max_sge) error = EINVAL;
    if (!error && count == room) error = ENOMEM;
    if (error) break;
    write_receive(&slots[(next + count) & (queue->entries - 1)], wr);
  }
  rocefs_publish(context, queue, count);
  pthread_mutex_unlock(&queue->lock);
  if (error) *bad = wr;
  return error;
}
