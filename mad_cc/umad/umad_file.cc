#include "mad_cc/umad/umad_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "mad_cc/mad/mad.h"

namespace rocefs {
namespace {

class OpenUmad;

class UmadFile final : public File {
 public:
  UmadFile(Engine& engine, MadPort& port, std::shared_ptr<ReaderMemory> memory, UmadReads::Log log)
      : engine_(engine), port_(port), memory_(std::move(memory)), log_(std::move(log)) {}
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool device() const override { return true; }
  mode_t mode() const override { return 0666; }
  uint64_t size() const override { return 0; }
  FileDoc doc() const override {
    return {"device", {}, {}, "MADs of the port, as programs of libibumad send and receive them"};
  }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;
  void mark_removed() override;

 private:
  friend class OpenUmad;
  Engine& engine_;
  MadPort& port_;
  const std::shared_ptr<ReaderMemory> memory_;
  const UmadReads::Log log_;
  const std::shared_ptr<UmadShares> shares_ = std::make_shared<UmadShares>();
  std::vector<OpenUmad*> open_;
};

class OpenUmad final : public OpenFile {
 public:
  OpenUmad(std::shared_ptr<UmadFile> file, const UmadRoom::User& user, Shares::Share slot);
  ~OpenUmad() override;

  void read(uint64_t offset, size_t size, const OperationPtr& operation,
            Answer<std::string> answer) override {
    reads_->read(offset, size, operation, std::move(answer));
  }
  void write(std::string_view data, const OperationPtr& operation, Answer<size_t> answer) override;
  short poll(Task wake) override { return reads_->poll(std::move(wake)); }
  void ioctl(uint32_t command, std::string_view argument, size_t room,
             const OperationPtr& operation, Answer<IoctlReply> answer) override;
  // Ends this open file: the device has been removed.
  void end();

 private:
  template <class Argument>
  void add_agent(const Result<MadRegistration>& registration, std::string_view argument,
                 bool with_pkey, Answer<IoctlReply> answer);
  void remove_agent(std::string_view argument, Answer<IoctlReply> answer);
  void remove_agents();

  const std::shared_ptr<UmadFile> file_;
  // Root or the mount's owner opened it. The file is for everybody; the fabric is administered by
  // them alone.
  const bool administers_;
  const Shares::Share slot_;
  const std::shared_ptr<UmadReads> reads_;
  std::shared_ptr<UmadClient> client_;  // the core's; null when the device has gone
};

Result<std::unique_ptr<OpenFile>> UmadFile::open(const std::shared_ptr<File>& self,
                                                 const Caller& caller) {
  UmadRoom::User user{caller.uid, is_privileged(caller.uid)};
  Shares::Share slot = shares_->files.take(user.uid, user.privileged);
  if (!slot) {
    return errorf(EMFILE, "user {} has used up its share of {} open files", user.uid,
                  +UmadShares::kFiles);
  }
  return {
      std::make_unique<OpenUmad>(std::static_pointer_cast<UmadFile>(self), user, std::move(slot))};
}

void UmadFile::mark_removed() {
  File::mark_removed();
  for (OpenUmad* open : std::vector(open_)) open->end();
}

// Makes the core's side. Its calls reach the open file or nothing; UmadRoom bounds the messages in
// flight.
std::shared_ptr<UmadClient> make_client(Engine& engine, MadPort& port,
                                        std::shared_ptr<UmadRoom> room,
                                        std::weak_ptr<UmadReads> reads) {
  auto arrived = [&engine, reads](UmadArrival arrival) {
    engine.tell_control([reads, arrival = std::move(arrival)]() mutable {
      if (auto here = reads.lock()) here->arrived(std::move(arrival));
    });
  };
  auto dropped = [&engine, reads, told = false]() mutable {
    if (std::exchange(told, true)) return;
    engine.tell_control([reads] {
      if (auto here = reads.lock()) here->dropped();
    });
  };
  return std::make_shared<UmadClient>(port, std::move(room), arrived, dropped);
}

OpenUmad::OpenUmad(std::shared_ptr<UmadFile> file, const UmadRoom::User& user, Shares::Share slot)
    : file_(std::move(file)),
      administers_(user.privileged),
      slot_(std::move(slot)),
      reads_(std::make_shared<UmadReads>(std::make_shared<UmadRoom>(file_->shares_, user),
                                         file_->memory_, file_->log_)) {
  client_ = make_client(file_->engine_, file_->port_, reads_->room(), reads_);
  file_->open_.push_back(this);
}

OpenUmad::~OpenUmad() {
  std::erase(file_->open_, this);
  remove_agents();
}

void OpenUmad::end() {
  remove_agents();
  reads_->end();
}

// Passes the last reference to the core, because the port may call the client until then.
void OpenUmad::remove_agents() {
  if (!client_) return;
  file_->engine_.post_retrying(
      [client = std::exchange(client_, nullptr)] { client->remove_agents(); });
}

void OpenUmad::write(std::string_view data, const OperationPtr&, Answer<size_t> answer) {
  if (!client_) return answer(port_gone());
  Result<umad::Request> request = umad::parse_request(data, reads_->header_size());
  if (!request) return answer(request.error());
  mad::Mad mad = mad::first_mad(request->message);
  if (!administers_ && mad::is_smp(mad.mgmt_class()) && mad.method() == mad::kSet) {
    return answer(Error{EPERM, "root and the mount's owner alone may send SubnSet"});
  }
  file_->engine_.call<void>(
      [client = client_, request = std::move(*request)]() mutable {
        return client->send(std::move(request));
      },
      [size = data.size(), answer = std::move(answer)](Result<void> sent) mutable {
        if (!sent) return answer(sent.error());
        answer(size);
      });
}

void OpenUmad::ioctl(uint32_t command, std::string_view argument, size_t room,
                     const OperationPtr& operation, Answer<IoctlReply> answer) {
  if (!client_) return answer(port_gone());
  switch (command) {
    case umad::kRegisterAgent:
      return add_agent<umad::Registration>(umad::parse_registration(argument), argument, false,
                                           std::move(answer));
    case umad::kRegisterAgent2: {
      umad::Registration2 asked{};
      std::memcpy(&asked, argument.data(), std::min(argument.size(), sizeof asked));
      if (asked.qpn <= 1 && (asked.flags & ~umad::kUserRmpp)) {
        asked.flags = umad::kUserRmpp;
        return answer(
            IoctlReply{-EINVAL, std::string(reinterpret_cast<const char*>(&asked), sizeof asked)});
      }
      return add_agent<umad::Registration2>(umad::parse_registration2(argument), argument, true,
                                            std::move(answer));
    }
    case umad::kUnregisterAgent:
      return remove_agent(argument, std::move(answer));
    case umad::kEnablePkey:
      if (reads_->begun()) return answer(Error{EINVAL, "an agent has already registered"});
      reads_->use_pkey_index();
      return answer(IoctlReply{});
    default:
      return OpenFile::ioctl(command, argument, room, operation, std::move(answer));
  }
}

template <class Argument>
void OpenUmad::add_agent(const Result<MadRegistration>& registration, std::string_view argument,
                         bool with_pkey, Answer<IoctlReply> answer) {
  if (!registration) return answer(registration.error());
  if (!administers_ && mad::is_smp(registration->mgmt_class) && registration->methods.any()) {
    return answer(Error{EPERM, "root and the mount's owner alone may serve a class of SMPs"});
  }
  file_->engine_.call<uint32_t>(
      [client = client_, registration = *registration] { return client->add_agent(registration); },
      [reads = reads_, with_pkey, bytes = std::string(argument),
       answer = std::move(answer)](Result<uint32_t> number) mutable {
        if (!number) return answer(number.error());
        if (with_pkey && !reads->begun()) reads->use_pkey_index();
        reads->begin();
        std::memcpy(bytes.data() + offsetof(Argument, agent), &*number, sizeof *number);
        answer(IoctlReply{0, std::move(bytes)});
      });
}

void OpenUmad::remove_agent(std::string_view argument, Answer<IoctlReply> answer) {
  uint32_t number = umad::kMaxAgents;
  if (argument.size() == sizeof number) std::memcpy(&number, argument.data(), sizeof number);
  file_->engine_.call<void>([client = client_, number] { return client->remove_agent(number); },
                            [answer = std::move(answer)](Result<void> removed) mutable {
                              if (!removed) return answer(removed.error());
                              answer(IoctlReply{});
                            });
}

}  // namespace

std::shared_ptr<File> make_umad_file(Engine& engine, MadPort& port,
                                     std::shared_ptr<ReaderMemory> memory, UmadReads::Log log) {
  return std::make_shared<UmadFile>(engine, port, std::move(memory), std::move(log));
}

}  // namespace rocefs
