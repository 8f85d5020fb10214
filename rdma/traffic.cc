#include "rdma/traffic.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/caller_file.h"
#include "core/trigger.h"

namespace rocefs {
namespace {

constexpr TriggerRow kStart{"start",
                            "NAME write|send|read|atomic|uc|ud FROM TO [qps= size= count= mtu= "
                            "window= timeout= retry= gid= verify=on|off] "
                            "[file=IN [out=OUT]]",
                            "starts a flow between two devices and adds a directory NAME for it"};
constexpr TriggerRow kStop{"stop", "1", "stops the flow, or removes one that has ended"};

}  // namespace

// One flow, from the store that asked for it to the removal of its directory.
struct Traffic::Entry {
  FlowSpec spec;
  Owner owner;
  Caller caller;
  std::string state = "running";  // or done, stopped, failed: REASON
  bool live = true;               // the core has a flow, or its output is being written
  bool writing = false;
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  Fd output;
  std::shared_ptr<Flow> flow;  // touched on the core's thread alone
};

// The directory's files.

class Traffic::StateFile final : public Attribute {
 public:
  explicit StateFile(EntryPtr entry) : entry_(std::move(entry)) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  FileDoc doc() const override {
    return {"value", {}, {}, "running, done, stopped, or failed: REASON"};
  }
  Result<std::string> show() override { return entry_->state + "\n"; }

 private:
  EntryPtr entry_;
};

class Traffic::ResultFile final : public Attribute {
 public:
  ResultFile(EntryPtr entry, Engine& engine) : entry_(std::move(entry)), engine_(engine) {}
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
  EntryPtr entry_;
  Engine& engine_;
};

Traffic::Traffic(House house) : house_(std::move(house)) {
  house_.tree.add_directory(house_.directory, true);
  add_trigger(house_.tree, house_.directory, kStart, house_.engine,
              [this](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                start(text, operation, std::move(answer));
              });
}

// The engine has stopped. Late commands may still refer to an entry; its flow goes with the fabric.
Traffic::~Traffic() {
  for (auto& [name, entry] : entries_) entry->flow.reset();
}

void Traffic::start(std::string_view line, const OperationPtr& operation, Answer<void> answer) {
  Result<FlowSpec> spec = parse_flow(line);
  if (!spec) return answer(spec.error());
  for (const std::string& port : {spec->from, spec->to}) {
    if (!house_.fabric.port(port)) return answer(errorf(EINVAL, "no device {}", port));
  }
  if (entries_.contains(spec->name)) {
    return answer(errorf(EEXIST, "there is a flow {} already", spec->name));
  }
  auto entry = std::make_shared<Entry>();
  entry->spec = *spec;
  entry->caller = operation->caller();
  entry->owner = {operation->caller().pid, comm_of(operation->caller().pid)};
  entries_[spec->name] = entry;
  Answer<void> launched = [this, entry, answer = std::move(answer)](Result<void> result) mutable {
    if (!result) entries_.erase(entry->spec.name);
    answer(std::move(result));
  };
  if (entry->spec.input.empty()) return launch(entry, nullptr, std::move(launched));
  load_files(entry, operation, std::move(launched));
}

namespace {

struct Loaded {
  std::shared_ptr<LocalMemory> memory;
  Fd output;
};

// On the helper thread.
Result<std::shared_ptr<LocalMemory>> read_input(int fd, const std::string& path,
                                                const std::atomic<bool>& cancelled) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
  auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxFlowMemory) {
    return errorf(EFBIG, "{}: {} bytes, more than {}", path, size, kMaxFlowMemory);
  }
  std::shared_ptr<LocalMemory> memory = LocalMemory::create(size);
  if (!memory) return errorf(ENOMEM, "{}: no memory for {} bytes", path, size);
  constexpr size_t kChunk = 1 << 20;
  for (uint64_t at = 0; at < size;) {
    if (cancelled.load()) return Error{EINTR, "interrupted"};
    std::span<uint8_t> rest = memory->bytes().subspan(at);
    ssize_t got = ::pread(fd, rest.data(), std::min(rest.size(), kChunk), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
    if (got == 0) return errorf(EIO, "{}: became shorter while it was read", path);
    at += static_cast<uint64_t>(got);
  }
  return memory;
}

// What the file held before goes only now that there is something to take its place.
Result<void> write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  if (::ftruncate(fd, 0) != 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
  for (size_t at = 0; at < bytes.size();) {
    ssize_t put = ::pwrite(fd, bytes.data() + at, std::min<size_t>(bytes.size() - at, 1 << 20),
                           static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
    at += static_cast<size_t>(put);
  }
  return {};
}

}  // namespace

void Traffic::load_files(const EntryPtr& entry, const OperationPtr& operation,
                         Answer<void> answer) {
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  operation->on_interrupt([cancelled] { cancelled->store(true); });
  auto load = [entry, cancelled, mount = own_mount_]() -> Result<std::shared_ptr<Loaded>> {
    const FlowSpec& spec = entry->spec;
    Result<Fd> input = open_as(entry->caller, spec.input, O_RDONLY, mount);
    if (!input) return input.error();
    auto memory = read_input(input->get(), spec.input, *cancelled);
    if (!memory) return memory.error();
    auto loaded = std::make_shared<Loaded>();
    loaded->memory = *memory;
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

void Traffic::launch(const EntryPtr& entry, std::shared_ptr<LocalMemory> input,
                     Answer<void> answer) {
  // The core tells when the flow has ended, also when that is before this store is answered.
  auto on_ended = [this, entry](Result<void> result) {
    if (!entry->spec.output.empty()) ++house_.engine.outstanding().settling;
    house_.engine.tell_control(
        [this, entry, received = entry->flow->received(), result = std::move(result)]() mutable {
          ended(entry, std::move(received), std::move(result));
        });
  };
  house_.engine.call<void>(
      [this, entry, input, on_ended]() -> Result<void> {
        entry->flow = std::make_shared<Flow>(house_.fabric, entry->spec, entry->owner, entry->stats,
                                             input, on_ended);
        Result<void> started = entry->flow->start();
        if (!started) entry->flow.reset();
        return started;
      },
      [this, entry, answer = std::move(answer)](Result<void> result) mutable {
        if (result) add_directory(entry);
        answer(std::move(result));
      });
}

void Traffic::add_directory(const EntryPtr& entry) {
  std::string directory = house_.directory + "/" + entry->spec.name;
  house_.tree.add_directory(directory, true);
  house_.tree.add_file(directory + "/state", std::make_shared<StateFile>(entry));
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
  add_trigger(house_.tree, directory, kStop, house_.engine,
              [this, entry](std::string_view text, const OperationPtr&, Answer<void> answer) {
                if (without_newline(text) != "1") {
                  return answer(Error{EINVAL, "only 1 stops a flow"});
                }
                stop(entry, std::move(answer));
              });
}

void Traffic::ended(const EntryPtr& entry, std::shared_ptr<LocalMemory> received,
                    Result<void> result) {
  if (result && !entry->spec.output.empty()) return write_output(entry, std::move(received));
  settle(entry, std::move(result));
}

void Traffic::write_output(const EntryPtr& entry, std::shared_ptr<LocalMemory> received) {
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
void Traffic::settle(const EntryPtr& entry, Result<void> result) {
  entry->live = false;
  entry->state = result ? "done" : "failed: " + result.error().reason;
  entry->output.reset();
  release(entry);
}

void Traffic::release(const EntryPtr& entry) {
  Task settled = [this, entry] {
    if (!entry->spec.output.empty()) --house_.engine.outstanding().settling;
    entry->flow.reset();
  };
  if (house_.engine.post(settled)) return;
  // Too many commands wait for the engine; they will not for ever.
  house_.engine.tell_control([this, entry] { release(entry); });
}

void Traffic::stop(const EntryPtr& entry, Answer<void> answer) {
  if (!entry->live) {
    forget(entry);
    return answer({});
  }
  if (entry->writing) return answer(Error{EBUSY, "the flow's output is being written"});
  house_.engine.call<void>(
      [entry]() -> Result<void> {
        if (entry->flow) entry->flow->stop();
        entry->flow.reset();
        return {};
      },
      [entry, answer = std::move(answer)](Result<void> result) mutable {
        // It may have ended by itself meanwhile.
        if (result && entry->live && !entry->writing && entry->state == "running") {
          entry->state = "stopped";
          entry->live = false;
          entry->output.reset();
        }
        answer(std::move(result));
      });
}

void Traffic::begin_reset() {
  leaving_.clear();
  for (const auto& [name, entry] : entries_) leaving_.push_back(entry);
}

void Traffic::stop_all() {
  for (const EntryPtr& entry : leaving_) {
    if (entry->flow) entry->flow->stop();
    entry->flow.reset();
  }
}

// One without a directory is still being started: it comes after the reset.
void Traffic::finish_reset() {
  for (const EntryPtr& entry : std::exchange(leaving_, {})) {
    if (!house_.tree.resolve(house_.directory + "/" + entry->spec.name)) continue;
    entry->live = false;
    if (!entry->writing) entry->output.reset();
    forget(entry);
  }
}

void Traffic::forget(const EntryPtr& entry) {
  auto it = entries_.find(entry->spec.name);
  if (it == entries_.end() || it->second != entry) return;
  entries_.erase(it);
  house_.tree.remove(house_.directory + "/" + entry->spec.name);
}

}  // namespace rocefs
