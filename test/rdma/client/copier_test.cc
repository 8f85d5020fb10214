// The copier: a thread of the client's that moves its memory.
#include "rdma/client/copier.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "test/rdma/client/server_rig.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kSlot = ROCEFS_COPIER_SLOT;

// The engine orders the accesses of a client's threads to its memory: the one that posts comes
// before the copier, which comes before the one that sees the completion. ThreadSanitizer does not
// see it, because the engine maps their rings elsewhere. Each of them declares it here.
void tell_order() {
  static std::atomic<uint64_t> turns{0};
  turns.fetch_add(1);
}

// The client's side of the memory, honest or not.
class Theirs {
 public:
  explicit Theirs(uint8_t* memory) : memory_(memory) {}
  rocefs_copier_page* page() const { return reinterpret_cast<rocefs_copier_page*>(memory_); }
  std::atomic_ref<uint32_t> state(uint32_t slot) const {
    return std::atomic_ref(page()->copies[slot].state);
  }
  // Does the next copy, or frees it; false if there is none.
  bool serve() {
    rocefs_copy& copy = page()->copies[next_];
    uint32_t now = state(next_).load();
    if (now != ROCEFS_COPY_POSTED && now != ROCEFS_COPY_CANCELLED) return false;
    if (now == ROCEFS_COPY_POSTED) {
      if (!state(next_).compare_exchange_strong(now, ROCEFS_COPY_TAKEN)) return true;
      tell_order();
      auto* here = reinterpret_cast<uint8_t*>(copy.address);
      uint8_t* slot = memory_ + sizeof(rocefs_copier_page) + next_ * kSlot;
      std::memcpy(copy.writes ? here : slot, copy.writes ? slot : here, copy.length);
      bytes += copy.length;
      tell_order();
    }
    state(next_).store(now == ROCEFS_COPY_POSTED ? ROCEFS_COPY_DONE : ROCEFS_COPY_FREE);
    next_ = (next_ + 1) % ROCEFS_COPIER_SLOTS;
    return true;
  }
  std::atomic<uint64_t> bytes{0};  // moved

 private:
  uint8_t* const memory_;
  uint32_t next_ = 0;
};

std::shared_ptr<SharedMemory> shared() {
  auto memory = SharedMemory::create("copier", Copier::kBytes, SharedMemory::Others::kWrite);
  REQUIRE(memory);
  return std::make_shared<SharedMemory>(std::move(*memory));
}

// A copier, its client, and as much memory on both sides.
struct Desk {
  std::shared_ptr<SharedMemory> memory = shared();
  Copier copier{memory};
  Theirs theirs{memory->data()};
  std::vector<uint8_t> here = std::vector<uint8_t>(4 * kSlot), there = here;
  std::vector<iovec> parts;

  Desk() {
    std::iota(here.begin(), here.end(), uint8_t{1});
    // Different lengths, one of them 0.
    size_t at = 0;
    for (size_t length : {size_t{4096}, size_t{0}, size_t{kSlot + 100}}) {
      parts.push_back({here.data() + at, length});
      at += length;
    }
    parts.push_back({here.data() + at, here.size() - at});
  }
  Copier::Move move(bool out, uint64_t length) {
    return {out, reinterpret_cast<uint64_t>(there.data()), length, parts};
  }
  void serve_all() {
    while (theirs.serve()) {
    }
  }
};

}  // namespace

TEST_CASE("copier: moves longer than a slot arrive in both directions") {
  Desk desk;
  const uint64_t length = 2 * kSlot + 77;
  std::vector<uint8_t> sent = desk.here;
  REQUIRE(desk.copier.has_room(length));
  desk.copier.post(desk.move(true, length));
  CHECK(!desk.copier.take());
  desk.serve_all();
  CHECK(desk.copier.take() == std::optional(true));
  CHECK(std::equal(sent.begin(), sent.begin() + length, desk.there.begin()));
  CHECK(desk.there[length] == 0);
  std::fill(desk.there.begin(), desk.there.end(), 0x5a);
  desk.copier.post(desk.move(false, length));
  desk.serve_all();
  CHECK(desk.copier.take() == std::optional(true));
  CHECK(std::count(desk.here.begin(), desk.here.begin() + length, 0x5a) == length);
  CHECK(desk.here[length] == sent[length]);
  CHECK(!desk.copier.busy());
}

TEST_CASE("copier: an empty move ends in its turn") {
  Desk desk;
  desk.copier.post(desk.move(true, 0));
  desk.copier.post(desk.move(true, 100));
  desk.theirs.serve();
  CHECK(desk.copier.take() == std::optional(true));
  CHECK(!desk.copier.take());
  desk.serve_all();
  CHECK(desk.copier.take() == std::optional(true));
}

TEST_CASE("copier: posted moves are limited by the slots, and end in order") {
  Desk desk;
  CHECK(!desk.copier.has_room(Copier::kMaxBytes + 1));
  uint32_t posted = 0;
  for (; desk.copier.has_room(4096); ++posted) desk.copier.post(desk.move(true, 4096));
  CHECK(posted == ROCEFS_COPIER_SLOTS);
  desk.theirs.serve();
  desk.theirs.state(1).store(ROCEFS_COPY_FAILED);
  CHECK(desk.copier.take() == std::optional(true));
  CHECK(desk.copier.take() == std::optional(false));
  CHECK(!desk.copier.take());
  CHECK(desk.copier.has_room(4096));
}

TEST_CASE("copier: a move that the client delays fails, and is not carried out later") {
  Desk desk;
  desk.copier.post(desk.move(true, 3 * kSlot));
  desk.copier.cancel_late();
  CHECK(!desk.copier.take());  // before it has run
  SECTION("no slot is taken") {
    desk.copier.cancel_late();
    CHECK(desk.copier.take() == std::optional(false));
  }
  SECTION("a taken slot is waited for, those behind it are not") {
    desk.theirs.state(0).store(ROCEFS_COPY_TAKEN);
    desk.copier.cancel_late();
    CHECK(!desk.copier.take());
    CHECK(desk.theirs.state(1).load() == ROCEFS_COPY_CANCELLED);
    desk.theirs.state(0).store(ROCEFS_COPY_POSTED);
    desk.theirs.serve();
    CHECK(desk.copier.take() == std::optional(false));
  }
  SECTION("the client has gone on meanwhile") {
    desk.theirs.serve();
    CHECK(!desk.copier.take());
    desk.copier.cancel_late();
    CHECK(desk.theirs.state(1).load() == ROCEFS_COPY_POSTED);
    return;
  }
  REQUIRE(!desk.copier.busy());
  CHECK(!desk.copier.suits(kSlot * 8));  // before the client has cleared up
  uint64_t before = desk.theirs.bytes;
  desk.serve_all();
  CHECK(desk.theirs.bytes == before);
  CHECK(desk.copier.suits(kSlot * 8));
  CHECK(desk.copier.has_room(3 * kSlot));
}

TEST_CASE("copier: end() waits for nothing and takes no data of the client's") {
  Desk desk;
  std::fill(desk.there.begin(), desk.there.end(), 0x5a);
  desk.copier.post(desk.move(false, kSlot));
  desk.copier.post(desk.move(false, kSlot));
  desk.theirs.serve();
  desk.theirs.state(1).store(ROCEFS_COPY_TAKEN);
  desk.copier.end();
  CHECK(desk.copier.has_ended());
  CHECK(desk.copier.take() == std::optional(false));
  CHECK(desk.copier.take() == std::optional(false));
  CHECK(desk.here[0] == 1);
  CHECK(!desk.copier.suits(kSlot * 8));
}

TEST_CASE("copier: an invalid slot state is a failed copy") {
  for (uint32_t lie : {uint32_t{ROCEFS_COPY_FREE}, uint32_t{ROCEFS_COPY_CANCELLED}, 6u, ~0u}) {
    Desk desk;
    desk.copier.post(desk.move(true, kSlot));
    desk.theirs.state(0).store(lie);
    CHECK(desk.copier.take() == std::optional(false));
    CHECK(!desk.copier.busy());
  }
}

namespace {

// A client whose copier is a thread of this test.
class WithCopier {
 public:
  // `serve`: whether it does what is posted.
  WithCopier(TestClient& client, bool serve) : client_(client) {
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_COPIER;
    TestClient::Answer answer = client.ask(request);
    REQUIRE(answer.said.error == 0);
    memory_ = Mapping(std::move(answer.fds.at(0)), Copier::kBytes, PROT_READ | PROT_WRITE);
    theirs_ = std::make_unique<Theirs>(memory_.at<uint8_t>());
    CHECK(client.ask(request).said.error == EEXIST);
    if (serve) thread_ = std::thread([this] { run(); });
  }
  ~WithCopier() {
    ends_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  Theirs& theirs() { return *theirs_; }

 private:
  void run() {
    while (!ends_.load()) {
      if (!theirs_->serve()) {
        std::this_thread::yield();
        continue;
      }
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (client_.engine_page().at<rocefs_engine_page>()->asleep) client_.knock();
    }
  }

  TestClient& client_;
  Mapping memory_;
  std::unique_ptr<Theirs> theirs_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

void fill(std::vector<uint8_t>& memory, size_t seed) {
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<uint8_t>(i * 7 + i / 4096 + seed);
  }
}

}  // namespace

TEST_CASE("copier: no move overtakes a store or an atomic that the copy thread has") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  struct Ends final : MemoryListener {
    std::vector<uint64_t> tickets;
    void memory_done(uint64_t ticket, bool) override { tickets.push_back(ticket); }
  } ends;
  std::shared_ptr<SharedMemory> memory = shared();
  Theirs theirs(memory->data());
  auto process =
      Process::create({::getpid(), ::getuid(), ::getgid()},
                      Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), **engine);
  REQUIRE((process && process->take_copier(memory)));
  std::vector<uint8_t> from(2 * kSlot, 1), to(2 * kSlot), page(8);
  const auto there = reinterpret_cast<uint64_t>(to.data());
  uint64_t original = 0;
  process->write(there, from, ends, 0);
  process->flush();
  REQUIRE(theirs.state(0).load() == ROCEFS_COPY_POSTED);
  SECTION("a store") {
    process->store(memory, page.data(), {from.data(), 8}, ends, 1);
  }
  SECTION("an atomic") {
    process->atomic(there, {}, original, ends, 1);
  }
  process->write(there, from, ends, 2);
  process->flush();
  while (theirs.serve()) {
  }
  REQUIRE(await([&] {
    process->take_done();
    process->flush();
    CHECK_FALSE(theirs.serve());  // the thread has the last move, too
    return ends.tickets.size() == 3;
  }));
  CHECK(ends.tickets == std::vector<uint64_t>{0, 1, 2});
  process->end();
}

TEST_CASE("copier: WRITEs, READs and atomics through copiers complete, whole and in order") {
  ServerRig rig;
  Pair pair(rig);
  WithCopier near(pair.near, true), far(pair.far, true);
  constexpr uint32_t kAll = 1 << 20;
  auto* numbers = reinterpret_cast<uint64_t*>(pair.far_memory.data());
  for (size_t round = 0; round < 20; ++round) {
    fill(pair.near_memory, round);
    uint64_t first;
    std::memcpy(&first, pair.near_memory.data(), sizeof first);
    // The atomic changes what the WRITE before it wrote, and the READ sees that.
    rocefs_send_wqe add = rdma_request(ROCEFS_WR_ATOMIC_FETCH_AND_ADD, pair.near_memory.data(), 8,
                                       pair.near_region.key, numbers, pair.far_region.key);
    add.compare_add = 5;
    rocefs_send_wqe read = pair.write(kAll);
    read.opcode = ROCEFS_WR_RDMA_READ;
    tell_order();
    for (const rocefs_send_wqe& wqe : {pair.write(kAll), add, read}) {
      pair.near.post(pair.near_qp, wqe);
    }
    for (int i = 0; i < 3; ++i) {
      rocefs_cqe cqe{};
      REQUIRE(pair.near_cq.wait(cqe));
      CHECK(cqe.status == 0);
    }
    tell_order();
    CHECK(*numbers == first + 5);
    CHECK(pair.near_memory == pair.far_memory);
  }
  CHECK(near.theirs().bytes >= 20 * uint64_t{kAll});
  CHECK(far.theirs().bytes >= 20 * uint64_t{kAll});
}

TEST_CASE("copier: memory is moved even if the client's copier does nothing") {
  ServerRig rig;
  Pair pair(rig);
  WithCopier near(pair.near, false), far(pair.far, false);
  for (size_t round = 0; round < 3; ++round) {
    fill(pair.near_memory, round);
    pair.near.post(pair.near_qp, pair.write(1 << 20));
    rocefs_cqe cqe{};
    REQUIRE(pair.near_cq.wait(cqe));
    CHECK(cqe.status == 0);
    CHECK(pair.near_memory == pair.far_memory);
  }
  CHECK(near.theirs().state(0).load() == ROCEFS_COPY_CANCELLED);
}

TEST_CASE("copier: a client that ends with a slot taken leaves nothing behind") {
  ServerRig rig;
  Pair bystander(rig);
  {
    Pair pair(rig);
    WithCopier near(pair.near, false);
    pair.near.post(pair.near_qp, pair.write(1 << 20));
    auto posted = [&] { return near.theirs().state(0).load() == ROCEFS_COPY_POSTED; };
    REQUIRE(rig.wait_on_core(posted));
    near.theirs().state(0).store(ROCEFS_COPY_TAKEN);
    rocefs_cqe cqe{};
    CHECK(!pair.near_cq.wait(cqe, 50));
  }
  bystander.near.post(bystander.near_qp, bystander.write(1 << 20));
  rocefs_cqe cqe{};
  REQUIRE(bystander.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
}
