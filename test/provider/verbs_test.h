/* Tests of the provider through the verbs API alone, on one device of a mount, inside `rocefs
 * enter` or an equal environment. Every queue pair is connected over the wire to another one of the
 * same device. No test waits for time to pass, but for something to happen. */
#ifndef ROCEFS_TEST_PROVIDER_VERBS_TEST_H
#define ROCEFS_TEST_PROVIDER_VERBS_TEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Counts a failed check and goes on; prints the first ones of a test. */
#define CHECK(condition) verbs_check((condition), __FILE__, __LINE__, #condition)
/* As CHECK, but ends the program. */
#define REQUIRE(condition) verbs_require((condition), __FILE__, __LINE__, #condition)
void verbs_check(bool holds, const char* file, int line, const char* condition);
void verbs_require(bool holds, const char* file, int line, const char* condition);

struct verbs_case {
  const char* name; /* a sentence */
  void (*run)(void);
};
/* Lists of cases; each ends with one without a name. */
extern const struct verbs_case kRequestCases[], kStateCases[], kServiceCases[], kChannelCases[],
    kSharedReceiveCases[], kProcessCases[], kWindowCases[], kEventCases[], kExtendedCases[],
    kAbsentCases[], kRuleCases[], kSharedPageCases[], kKeptPageCases[], kXrcCases[], kDomainCases[],
    kGidCases[], kCancelCases[];
/* Run by a script that removes the device, kills the engine, or takes the port down and up, when
 * the program has printed `ready`. */
extern const struct verbs_case kLeavingCases[], kDyingCases[], kPortCases[];

/* Device and objects that all tests share. */
extern struct ibv_context* context;
extern struct ibv_pd* pd;
extern struct ibv_mr* mr; /* all of `memory`, with every right */
extern char memory[1 << 20];

enum { kDepth = 8, kInline = 64, kMaxSge = 2, kReceiveAt = 4096, kReceiveSize = 4096 };

/* Inline data of the queue pairs: at least kInline bytes, which were requested. */
extern uint32_t inline_size;

struct ibv_context* open_device(void); /* mb_0 */
int open_descriptors(void);

/* Two queue pairs; their sends complete in one queue, with events, their receives in another. */
struct pair {
  struct ibv_comp_channel* channel;
  struct ibv_cq *sends, *receives;
  struct ibv_qp *a, *b;
};
struct pair make_pair(enum ibv_qp_type type);
void connect_pair(struct pair* pair);
/* Destroys all that still exists. */
void destroy_pair(struct pair* pair);

struct ibv_qp* make_qp(struct ibv_cq* sends, struct ibv_cq* receives, enum ibv_qp_type type,
                       struct ibv_srq* srq);
/* Moves to a state, with all attributes that the transition needs; returns an errno. */
int move_qp(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn);
/* As move(), with additional attributes, and without some. */
int move_qp_with(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn, int with,
                 int without);
void connect_qp(struct ibv_qp* qp, uint32_t remote_qpn);
/* Address of the device's own port. */
struct ibv_ah_attr own_address(void);

/* Posts `count` entries of `length` bytes at the start of `memory`; returns an errno. */
int post_send(struct ibv_qp* qp, uint64_t wr_id, int opcode, unsigned flags, int count,
              uint32_t length);
/* Posts a receive of kReceiveSize bytes at kReceiveAt, in `count` entries; returns an errno. */
int post_receive(struct ibv_qp* qp, uint64_t wr_id, int count);

/* Waits for the next completion, or ends the program. */
struct ibv_wc next_completion(struct ibv_cq* cq);
/* Waits for the next completion, which must be that of this request, and successful. */
void expect_completion(struct ibv_cq* cq, uint64_t wr_id);
bool is_shared(const void* address); /* in a page that the engine may write to */
/* Registers with another ROCEFS_SHARE_REGIONS in the environment; NULL: unset. */
struct ibv_mr* register_with(const char* wanted, void* address, size_t length, int rights);
/* Takes one event of the channel, which must be of that queue, and acknowledges it. */
void take_event(struct ibv_comp_channel* channel, struct ibv_cq* cq);
/* Waits until events of earlier completions can be read: the engine sends events and answers to
 * ibv_reg_mr() in order. */
void await_events_told(void);
/* True if a thread of this process waits in that system call. */
bool is_in_call(int thread, long call);
bool is_readable(int fd, int milliseconds);

#endif
