#include "rdma/traffic/traffic.h"

#include <algorithm>
#include <cerrno>

#include "core/tree/caller_file.h"
#include "core/tree/trigger.h"
#include "rdma/nic/device.h"
#include "rdma/traffic/flow_files.h"

namespace rocefs {
namespace {

bool start_names_files(std::string_view line) {
  return line.find("file=") != line.npos || line.find("out=") != line.npos;
}

// The caller and its name: with files as it was when the identity was taken.
QpOwner owner_of(Operation& operation, bool files) {
  const pid_t pid = operation.caller().pid;
  if (files && operation.identity()) return {pid, (*operation.identity())->comm};
  return {pid, comm_of(pid)};
}

constexpr TriggerRow kStart{
    "start",
    "NAME " ROCEFS_FLOW_WORDS
    " FROM TO [qps= size= count= mtu= window= timeout= retry= "
    "gid= verify=on|off] [file=IN [out=OUT]], or NAME accept PORT [file=IN|out=OUT] [from=ADDRESS]",
    "starts a flow between two devices and adds a directory NAME for it; TO may be the address of "
    "another mount's device, behind an uplink: a real file crosses when that mount waits for the "
    "flow by `NAME accept PORT`, with out= for what write and send bring, file= for what read "
    "takes; "
    "here read has out= alone, the others file=",
    true, start_names_files};
constexpr TriggerRow kStop{"stop", "1", "stops the flow, or removes one that has ended"};

}  // namespace

namespace {

class StateFile final : public Attribute {
 public:
  explicit StateFile(FlowEntryPtr entry) : entry_(std::move(entry)) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  FileDoc doc() const override {
    return {"value",
            {},
            {},
            "running, done, stopped, or failed: REASON; with another mount waiting or connecting "
            "at first"};
  }
  Result<std::string> show() override { return entry_->state_text() + "\n"; }

 private:
  FlowEntryPtr entry_;
};

class ResultFile final : public Attribute {
 public:
  ResultFile(FlowEntryPtr entry, Engine& engine) : entry_(std::move(entry)), engine_(engine) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  FileDoc doc() const override {
    return {"value", {}, {}, "what the flow has moved: `key value` lines"};
  }
  Result<std::string> show() override {
    const FlowStats& stats = *entry_->stats;
    uint64_t end = stats.ended_ns.get();
    if (end == 0) end = static_cast<uint64_t>(engine_.now());
    uint64_t elapsed = end - std::min(end, stats.started_ns.get());
    double seconds = static_cast<double>(elapsed) / 1e9;
    double goodput = elapsed ? static_cast<double>(stats.bytes.get()) * 8 / seconds : 0;
    return fmt::format(
        "bytes {}\nmessages {}\nreceived {}\nelapsed_ns {}\ngoodput_bps {:.0f}\npackets "
        "{}\nretransmitted {}\ncnps {}\n"
        "timeouts {}\nmismatched {}\nqps {}\npid {}\ncomm {}\n",
        stats.bytes.get(), stats.messages.get(), stats.received.get(), elapsed, goodput,
        stats.packets.get(), stats.retransmitted.get(), stats.cnps.get(), stats.timeouts.get(),
        stats.mismatched.get(), entry_->spec.qps, entry_->owner.pid, entry_->owner.comm);
  }

 private:
  FlowEntryPtr entry_;
  Engine& engine_;
};

}  // namespace

Traffic::Traffic(Parts parts)
    : parts_(std::move(parts)),
      remote_({parts_.engine, parts_.fabric, parts_.tree, parts_.loop, *this, parts_.directory,
               parts_.warn}) {
  parts_.tree.add_directory(parts_.directory, true);
  add_trigger(parts_.tree, parts_.directory, kStart, parts_.engine,
              [this](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                start(text, operation, std::move(answer));
              });
}

// The engine has stopped. Late commands may still hold an entry, also a forgotten one; its flow
// must go before the fabric.
Traffic::~Traffic() {
  for (const std::weak_ptr<FlowEntry>& weak : known_) {
    FlowEntryPtr entry = weak.lock();
    if (!entry) continue;
    entry->flow.reset();
    entry->line.reset();
    entry->output.reset();
    entry->settled = nullptr;
  }
}

FlowEntryPtr Traffic::find(std::string_view name) const {
  auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : it->second;
}

void Traffic::add(const FlowEntryPtr& entry) {
  // At most as often as the list doubles: a start costs the same with many flows as with few.
  if (known_.size() >= prune_known_at_) {
    std::erase_if(known_, [](const std::weak_ptr<FlowEntry>& weak) { return weak.expired(); });
    prune_known_at_ = 2 * known_.size() + 16;
  }
  known_.push_back(entry);
  entries_[entry->spec.name] = entry;
}

void Traffic::start(std::string_view line, const OperationPtr& operation, Answer<void> answer) {
  Result<FlowSpec> spec = parse_flow(line);
  if (!spec) return answer(spec.error());
  bool remote = spec->remote || spec->accepts;
  for (const std::string* port : {&spec->from, &spec->to}) {
    if (remote && port == &spec->to) continue;
    if (!parts_.fabric.port(*port)) return answer(errorf(EINVAL, "no device {}", *port));
  }
  if (remote) {
    if (Result<void> may = remote_.check(*spec); !may) return answer(may.error());
  }
  if (entries_.contains(spec->name)) {
    return answer(errorf(EEXIST, "there is a flow {} already", spec->name));
  }
  auto entry = std::make_shared<FlowEntry>();
  entry->spec = *spec;
  bool files = !entry->spec.input.empty() || !entry->spec.output.empty();
  entry->owner = owner_of(*operation, files);
  add(entry);
  Answer<void> launched = [this, entry, answer = std::move(answer)](Result<void> result) mutable {
    if (!result) {
      entry->output.reset();
      entries_.erase(entry->spec.name);
    }
    answer(std::move(result));
  };
  if (!files) return launch(entry, nullptr, std::move(launched));
  load_files(entry, operation, std::move(launched));
}

struct Traffic::Loading {
  FlowEntryPtr entry;
  IdentityPtr who;
  Answer<void> answer;
  bool interrupted = false;
  CallerFilePtr file = nullptr;  // with an order under way
  std::shared_ptr<LocalMemory> input = nullptr;

  void interrupt() {
    interrupted = true;
    if (CallerFilePtr asked = file) asked->give_up(Error{EINTR, "interrupted"});
  }
};

void Traffic::load_files(const FlowEntryPtr& entry, const OperationPtr& operation,
                         Answer<void> answer) {
  const Result<IdentityPtr>& who = operation->identity();
  if (!who) return answer(who.error());
  auto loading = std::make_shared<Loading>(Loading{entry, *who, std::move(answer)});
  operation->on_interrupt([weak = std::weak_ptr<Loading>(loading)] {
    if (auto kept = weak.lock()) kept->interrupt();
  });
  if (entry->spec.input.empty()) return open_output(loading);
  loading->file = parts_.files.open(*who, entry->spec.input, FileUse::kRead,
                                    [this, loading](Result<void> opened) {
                                      if (!opened) return loading->answer(opened.error());
                                      load_input(loading);
                                    });
}

void Traffic::load_input(const std::shared_ptr<Loading>& loading) {
  read_input(loading->file, [this, loading](Result<std::shared_ptr<LocalMemory>> read) {
    loading->file.reset();
    if (!read) return loading->answer(read.error());
    loading->input = std::move(*read);
    open_output(loading);
  });
}

void Traffic::open_output(const std::shared_ptr<Loading>& loading) {
  auto go_on = [this, loading](Result<void> opened) {
    if (!opened) return loading->answer(opened.error());
    if (loading->interrupted) return loading->answer(Error{EINTR, "interrupted"});
    loading->entry->output = std::move(loading->file);
    launch(loading->entry, std::move(loading->input), std::move(loading->answer));
  };
  if (loading->entry->spec.output.empty()) return go_on({});
  loading->file = parts_.files.open(loading->who, loading->entry->spec.output, FileUse::kWrite,
                                    std::move(go_on));
}

void Traffic::launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                     Answer<void> answer) {
  if (entry->spec.accepts) {
    return remote_.wait(entry, std::move(input), std::move(answer));
  }
  if (entry->spec.remote) return remote_.launch(entry, std::move(input), std::move(answer));
  launch_here(entry, std::move(input), std::move(answer));
}

Outstanding& Traffic::outstanding(const FlowEntry& entry) {
  return parts_.fabric.port(entry.spec.from)->host().fabric().outstanding();
}

void Traffic::launch_here(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                          Answer<void> answer) {
  // Runs on the core thread when the flow has ended, which may be before this store is answered.
  auto on_ended = [this, entry](Result<void> result) {
    if (!entry->spec.output.empty()) {
      entry->settling = true;
      ++outstanding(*entry).settling;
    }
    parts_.engine.tell_control(
        [this, entry, received = entry->flow->received(), result = std::move(result)]() mutable {
          ended(entry, std::move(received), std::move(result));
        });
  };
  entry->become(FlowState::kRunning);
  parts_.engine.call<void>(
      [this, entry, input, on_ended]() -> Result<void> {
        auto flow = std::make_shared<Flow>(parts_.fabric, entry->spec, entry->owner, entry->stats,
                                           input, on_ended);
        entry->flow = flow;
        Result<void> started = flow->start();
        if (!started) entry->flow.reset();
        return started;
      },
      [this, entry, answer = std::move(answer)](Result<void> result) mutable {
        if (result) add_directory(entry);
        answer(std::move(result));
      });
}

void Traffic::add_directory(const FlowEntryPtr& entry) {
  std::string directory = parts_.directory + "/" + entry->spec.name;
  entry->shown = true;
  parts_.tree.add_directory(directory, true);
  auto state = std::make_shared<StateFile>(entry);
  entry->state_file = state;
  parts_.tree.add_file(directory + "/state", state);
  parts_.tree.add_file(directory + "/result", std::make_shared<ResultFile>(entry, parts_.engine));
  auto reading = [&](const char* name, Counter& value, std::string_view doc) {
    parts_.tree.add_file(directory + "/" + name, read_only(
                                                     [entry, &value]() -> Result<std::string> {
                                                       return fmt::format("{}", value.get());
                                                     },
                                                     doc));
  };
  CongestionReading& sender = entry->stats->sender;
  reading("rate", sender.rate_bps,
          "bit/s, Ethernet framing included: at which the first queue pair may send its data");
  reading("window", sender.window,
          "octets of requests that it may have in flight; 4294967295 without a limit, 524288 while "
          "CFR limits nothing");
  if (!entry->peer.empty() || entry->spec.accepts) {
    parts_.tree.add_file(
        directory + "/peer",
        read_only([entry]() -> Result<std::string> { return entry->peer; },
                  "the address of the other mount's end; nothing while none has come"));
  }
  add_trigger(parts_.tree, directory, kStop, parts_.engine,
              [this, entry](std::string_view text, const OperationPtr&, Answer<void> answer) {
                if (without_newline(text) != "1") {
                  return answer(Error{EINVAL, "only 1 stops a flow"});
                }
                stop(entry, std::move(answer));
              });
}

void Traffic::account() {
  for (const auto& [name, entry] : entries_) {
    if (entry->flow) entry->flow->account();
  }
}

void Traffic::ended(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received,
                    Result<void> result) {
  if (result && entry->output) return save(entry, std::move(received));
  settle(entry, std::move(result));
}

void Traffic::save(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received) {
  entry->become(FlowState::kWriting);
  write_output(entry->output, std::move(received),
               [this, entry](Result<void> result) { settle(entry, std::move(result)); });
}

// The flow is over and its output written: the state shows it, the memory goes.
void Traffic::settle(const FlowEntryPtr& entry, Result<void> result) {
  if (result) {
    entry->become(FlowState::kDone);
  } else {
    entry->become(FlowState::kFailed, result.error().reason);
  }
  entry->output.reset();
  if (auto settled = std::exchange(entry->settled, nullptr)) settled(result);
  hang_up(*entry, result ? "" : result.error().reason);
  release(entry);
  // An offer that never became ready has no directory.
  if (entry->offered && !entry->shown) forget(entry);
}

void Traffic::release(const FlowEntryPtr& entry) {
  parts_.engine.post_retrying([this, entry] {
    if (std::exchange(entry->settling, false)) --outstanding(*entry).settling;
    end_on_core(*entry);
  });
}

// `over`: commands that are still queued begin no other flow for the entry.
void Traffic::end_on_core(FlowEntry& entry) {
  entry.over = true;
  if (entry.flow) entry.flow->stop();
  entry.flow.reset();
}

void Traffic::stop(const FlowEntryPtr& entry, Answer<void> answer) {
  if (!entry->live()) {
    forget(entry);
    return answer({});
  }
  if (entry->writing()) return answer(Error{EBUSY, "the flow's output is being written"});
  parts_.engine.call<void>(
      [entry]() -> Result<void> {
        end_on_core(*entry);
        return {};
      },
      [entry, answer = std::move(answer)](Result<void> result) mutable {
        // The flow may have ended by itself meanwhile.
        if (result && entry->live() && !entry->writing()) {
          entry->become(FlowState::kStopped);
          entry->output.reset();
          hang_up(*entry, "stopped");
        }
        answer(std::move(result));
      });
}

// Tells the far end why, if it is still there.
void Traffic::hang_up(FlowEntry& entry, const std::string& why) {
  if (entry.line) entry.line->hang_up(text_of(FlowFailure{why}));
  entry.line.reset();
  entry.input.reset();
}

void Traffic::begin_reset() {
  leaving_.clear();
  for (const auto& [name, entry] : entries_) leaving_.push_back(entry);
}

void Traffic::stop_all() {
  for (const FlowEntryPtr& entry : leaving_) {
    if (entry->flow) end_on_core(*entry);
  }
}

// A flow of this mount without a directory is still being started: it begins after the reset.
void Traffic::finish_reset() {
  for (const FlowEntryPtr& entry : std::exchange(leaving_, {})) {
    if (!entry->shown && !entry->offered) continue;
    entry->state_file.reset();  // the file goes with its directory
    if (entry->live() && !entry->writing()) entry->become(FlowState::kStopped);
    if (!entry->writing()) entry->output.reset();
    hang_up(*entry, "reset");
    forget(entry);
  }
}

void Traffic::forget(const FlowEntryPtr& entry) {
  auto it = entries_.find(entry->spec.name);
  if (it == entries_.end() || it->second != entry) return;
  entries_.erase(it);
  if (!entry->writing()) entry->output.reset();
  parts_.engine.post_retrying([entry] { end_on_core(*entry); });
  if (entry->shown) parts_.tree.remove(parts_.directory + "/" + entry->spec.name);
}

}  // namespace rocefs
