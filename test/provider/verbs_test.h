/* Tests of the provider through the verbs API alone, on one device of a mount: `rocefs enter`, or
 * what does the same, is around them. Every queue pair is connected over the wire to one of the
 * same device. Nothing here waits for time to pass: what is waited for is seen to happen.
 */
#ifndef ROCEFS_TEST_PROVIDER_VERBS_TEST_H
#define ROCEFS_TEST_PROVIDER_VERBS_TEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* A test ends with its failed checks counted; the first of each is told. */
#define CHECK(condition) verbs_check((condition), __FILE__, __LINE__, #condition)
/* The same where going on makes no sense: the program ends. */
#define REQUIRE(condition) verbs_require((condition), __FILE__, __LINE__, #condition)
void verbs_check(bool holds, const char* file, int line, const char* condition);
void verbs_require(bool holds, const char* file, int line, const char* condition);

struct verbs_case {
  const char* name; /* a sentence */
  void (*run)(void);
};
/* Each ends with a case without a name. */
extern const struct verbs_case kRequestCases[], kStateCases[], kServiceCases[], kChannelCases[],
    kSharedReceiveCases[], kProcessCases[], kWindowCases[], kEventCases[], kExtendedCases[],
    kAbsentCases[], kRuleCases[], kSharedPageCases[];
/* The device leaves, the engine dies, or the port goes down and up again, when the program has said
 * `ready`. */
extern const struct verbs_case kLeavingCases[], kDyingCases[], kPortCases[];

/* The device and what all tests share of it. */
extern struct ibv_context* context;
extern struct ibv_pd* pd;
extern struct ibv_mr* mr; /* of all of `memory`, with every right */
extern char memory[1 << 20];

enum { kDepth = 8, kInline = 64, kMaxSge = 2, kReceiveAt = 4096, kReceiveSize = 4096 };

/* The inline data that queue pairs take: kInline bytes were asked for. */
extern uint32_t inline_size;

struct ibv_context* open_device(void); /* mb_0 */
int open_descriptors(void);

/* Two queue pairs; the sends of both complete in one queue, with events, the receives in another.
 */
struct pair {
  struct ibv_comp_channel* channel;
  struct ibv_cq *sends, *receives;
  struct ibv_qp *a, *b;
};
struct pair make_pair(enum ibv_qp_type type);
void connect_pair(struct pair* pair);
/* Those of a and b that are there still, and the rest. */
void destroy_pair(struct pair* pair);

struct ibv_qp* make_qp(struct ibv_cq* sends, struct ibv_cq* receives, enum ibv_qp_type type,
                       struct ibv_srq* srq);
/* To a state, with all that the change needs; an errno. */
int move_qp(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn);
/* The same with more attributes, and without some. */
int move_qp_with(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn, int with,
                 int without);
void connect_qp(struct ibv_qp* qp, uint32_t remote_qpn);
/* The address of the device's own port. */
struct ibv_ah_attr own_address(void);

/* Posts `count` entries of `length` bytes at the start of `memory`; an errno. */
int post_send(struct ibv_qp* qp, uint64_t wr_id, int opcode, unsigned flags, int count,
              uint32_t length);
/* Posts a receive of kReceiveSize bytes at kReceiveAt, given `count` times; an errno. */
int post_receive(struct ibv_qp* qp, uint64_t wr_id, int count);

/* The next completion; it comes, or the program ends. */
struct ibv_wc next_completion(struct ibv_cq* cq);
/* The next one, which is of this request and went well. */
void expect_completion(struct ibv_cq* cq, uint64_t wr_id);
/* One event of the channel, which is of that queue; acknowledged. */
void take_event(struct ibv_comp_channel* channel, struct ibv_cq* cq);
/* When it returns, the events of what was polled before can be read: the engine tells events and
 * answers to ibv_reg_mr() in their order. */
void await_events_told(void);
bool is_readable(int fd, int milliseconds);

#endif
