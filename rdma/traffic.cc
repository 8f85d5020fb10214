#include "rdma/traffic.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/caller_file.h"
#include "core/trigger.h"
#include "rdma/flow_files.h"

namespace rocefs {
namespace {

constexpr TriggerRow kStart{
    "start",
    "NAME write|send|read|atomic|uc|ud FROM TO [qps= size= count= mtu= window= timeout= retry= "
    "gid= verify=on|off] [file=IN [out=OUT]], or NAME accept PORT [file=IN|out=OUT] [from=ADDRESS]",
    "starts a flow between two devices and adds a directory NAME for it; TO may be the address of "
    "another mount's device, behind an uplink: a real file crosses when that mount waits for the "
    "flow by `NAME accept PORT`, with out= for what write and send bring, file= for what read "
    "takes; "
    "here read has out= alone, the others file="};
constexpr TriggerRow kStop{"stop", "1", "stops the flow, or removes one that has ended"};

}  // namespace

// The directory's files.

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
  Result<std::string> show() override { return entry_->state + "\n"; }

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

Traffic::Traffic(House house)
    : house_(std::move(house)),
      remote_({house_.engine, house_.fabric, house_.tree, house_.loop, *this, house_.directory,
               house_.warn}) {
  house_.tree.add_directory(house_.directory, true);
  add_trigger(house_.tree, house_.directory, kStart, house_.engine,
              [this](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                start(text, operation, std::move(answer));
              });
}

// The engine has stopped. Late commands may still refer to an entry, also to one that has been
// forgotten; its flow goes before the fabric.
Traffic::~Traffic() {
  for (const std::weak_ptr<FlowEntry>& weak : known_) {
    FlowEntryPtr entry = weak.lock();
    if (!entry) continue;
    entry->flow.reset();
    entry->line.reset();
    entry->settled = nullptr;
  }
}

FlowEntryPtr Traffic::find(std::string_view name) const {
  auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : it->second;
}

void Traffic::add(const FlowEntryPtr& entry) {
  std::erase_if(known_, [](const std::weak_ptr<FlowEntry>& weak) { return weak.expired(); });
  known_.push_back(entry);
  entries_[entry->spec.name] = entry;
}

void Traffic::start(std::string_view line, const OperationPtr& operation, Answer<void> answer) {
  Result<FlowSpec> spec = parse_flow(line);
  if (!spec) return answer(spec.error());
  bool remote = spec->remote || spec->accepts;
  for (const std::string* port : {&spec->from, &spec->to}) {
    if (remote && port == &spec->to) continue;
    if (!house_.fabric.port(*port)) return answer(errorf(EINVAL, "no device {}", *port));
  }
  if (remote) {
    if (Result<void> may = remote_.check(*spec); !may) return answer(may.error());
  }
  if (entries_.contains(spec->name)) {
    return answer(errorf(EEXIST, "there is a flow {} already", spec->name));
  }
  auto entry = std::make_shared<FlowEntry>();
  entry->spec = *spec;
  entry->caller = operation->caller();
  entry->owner = {operation->caller().pid, comm_of(operation->caller().pid)};
  add(entry);
  Answer<void> launched = [this, entry, answer = std::move(answer)](Result<void> result) mutable {
    if (!result) entries_.erase(entry->spec.name);
    answer(std::move(result));
  };
  bool files = !entry->spec.input.empty() || !entry->spec.output.empty();
  if (!files) return launch(entry, nullptr, std::move(launched));
  load_files(entry, operation, std::move(launched));
}

namespace {

struct Loaded {
  std::shared_ptr<LocalMemory> memory;
  Fd output;
};

}  // namespace

void Traffic::load_files(const FlowEntryPtr& entry, const OperationPtr& operation,
                         Answer<void> answer) {
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  operation->on_interrupt([cancelled] { cancelled->store(true); });
  auto load = [entry, cancelled, mount = own_mount_]() -> Result<std::shared_ptr<Loaded>> {
    const FlowSpec& spec = entry->spec;
    auto loaded = std::make_shared<Loaded>();
    if (!spec.input.empty()) {
      Result<Fd> input = open_as(entry->caller, spec.input, O_RDONLY, mount);
      if (!input) return input.error();
      auto memory = read_input(input->get(), spec.input, *cancelled);
      if (!memory) return memory.error();
      loaded->memory = *memory;
    }
    if (spec.output.empty()) return loaded;
    Result<Fd> output = open_as(entry->caller, spec.output, O_WRONLY | O_CREAT, mount);
    if (!output) return output.error();
    loaded->output = std::move(*output);
    return loaded;
  };
  auto kept = std::make_shared<Answer<void>>(std::move(answer));
  house_.worker.post([this, entry, cancelled, kept, load] {
    auto loaded = std::make_shared<Result<std::shared_ptr<Loaded>>>(load());
    house_.engine.tell_control([this, entry, cancelled, kept, loaded] {
      if (!*loaded) return (*kept)(loaded->error());
      if (cancelled->load()) return (*kept)(Error{EINTR, "interrupted"});
      entry->output = std::move((**loaded)->output);
      launch(entry, (**loaded)->memory, std::move(*kept));
    });
  });
}

void Traffic::launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                     Answer<void> answer) {
  if (entry->spec.accepts) {
    return remote_.wait(entry, std::move(input), std::move(answer));
  }
  if (entry->spec.remote) return remote_.launch(entry, std::move(input), std::move(answer));
  launch_here(entry, std::move(input), std::move(answer));
}

void Traffic::launch_here(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                          Answer<void> answer) {
  // The core tells when the flow has ended, also when that is before this store is answered.
  auto on_ended = [this, entry](Result<void> result) {
    if (!entry->spec.output.empty()) {
      entry->settling = true;
      ++house_.engine.outstanding().settling;
    }
    house_.engine.tell_control(
        [this, entry, received = entry->flow->received(), result = std::move(result)]() mutable {
          ended(entry, std::move(received), std::move(result));
        });
  };
  house_.engine.call<void>(
      [this, entry, input, on_ended]() -> Result<void> {
        auto flow = std::make_shared<Flow>(house_.fabric, entry->spec, entry->owner, entry->stats,
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
  std::string directory = house_.directory + "/" + entry->spec.name;
  entry->shown = true;
  house_.tree.add_directory(directory, true);
  auto state = std::make_shared<StateFile>(entry);
  entry->state_file = state;
  house_.tree.add_file(directory + "/state", state);
  house_.tree.add_file(directory + "/result", std::make_shared<ResultFile>(entry, house_.engine));
  auto reading = [&](const char* name, Counter& value, std::string_view doc) {
    house_.tree.add_file(directory + "/" + name, read_only(
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
    house_.tree.add_file(
        directory + "/peer",
        read_only([entry]() -> Result<std::string> { return entry->peer; },
                  "the address of the other mount's end; nothing while none has come"));
  }
  add_trigger(house_.tree, directory, kStop, house_.engine,
              [this, entry](std::string_view text, const OperationPtr&, Answer<void> answer) {
                if (without_newline(text) != "1") {
                  return answer(Error{EINVAL, "only 1 stops a flow"});
                }
                stop(entry, std::move(answer));
              });
}

void Traffic::ended(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received,
                    Result<void> result) {
  if (result && !entry->spec.output.empty()) return write_output(entry, std::move(received));
  settle(entry, std::move(result));
}

void Traffic::write_output(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received) {
  entry->writing = true;
  house_.worker.post([this, entry, received] {
    Result<void> result = write_all(entry->output.get(), received->bytes(), entry->spec.output);
    // close() tells of what write() could not know yet.
    if (::close(entry->output.release()) != 0 && result) {
      result = errorf(errno, "{}: {}", entry->spec.output, std::strerror(errno));
    }
    house_.engine.tell_control([this, entry, result = std::move(result)]() mutable {
      entry->writing = false;
      settle(entry, std::move(result));
    });
  });
}

// The flow has ended in the world too: its state says so, its memory goes.
void Traffic::settle(const FlowEntryPtr& entry, Result<void> result) {
  entry->live = false;
  entry->become(result ? "done" : "failed: " + result.error().reason);
  entry->output.reset();
  if (auto settled = std::exchange(entry->settled, nullptr)) settled(result);
  hang_up(*entry, result ? "" : result.error().reason);
  release(entry);
  // Nobody here has asked for it, and nobody sees it.
  if (entry->offered && !entry->shown) forget(entry);
}

void Traffic::release(const FlowEntryPtr& entry) {
  house_.engine.insist([this, entry] {
    if (std::exchange(entry->settling, false)) --house_.engine.outstanding().settling;
    end_on_core(*entry);
  });
}

// No command that was given before makes another flow of it.
void Traffic::end_on_core(FlowEntry& entry) {
  entry.over = true;
  if (entry.flow) entry.flow->stop();
  entry.flow.reset();
}

void Traffic::stop(const FlowEntryPtr& entry, Answer<void> answer) {
  if (!entry->live) {
    forget(entry);
    return answer({});
  }
  if (entry->writing) return answer(Error{EBUSY, "the flow's output is being written"});
  house_.engine.call<void>(
      [entry]() -> Result<void> {
        end_on_core(*entry);
        return {};
      },
      [entry, answer = std::move(answer)](Result<void> result) mutable {
        // It may have ended by itself meanwhile.
        if (result && entry->live && !entry->writing) {
          entry->become("stopped");
          entry->live = false;
          entry->output.reset();
          hang_up(*entry, "stopped");
        }
        answer(std::move(result));
      });
}

// The far end hears why, if it is there still.
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

// One of this mount's without a directory is still being started: it comes after the reset.
void Traffic::finish_reset() {
  for (const FlowEntryPtr& entry : std::exchange(leaving_, {})) {
    if (!entry->shown && !entry->offered) continue;
    entry->live = false;
    if (!entry->writing) entry->output.reset();
    hang_up(*entry, "reset");
    forget(entry);
  }
}

void Traffic::forget(const FlowEntryPtr& entry) {
  auto it = entries_.find(entry->spec.name);
  if (it == entries_.end() || it->second != entry) return;
  entries_.erase(it);
  house_.engine.insist([entry] { end_on_core(*entry); });
  if (entry->shown) house_.tree.remove(house_.directory + "/" + entry->spec.name);
}

}  // namespace rocefs
