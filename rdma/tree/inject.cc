#include "rdma/tree/inject.h"

#include <cerrno>

#include "core/tree/function_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr TriggerRow kAdd{
    "add",
    "NAME drop|duplicate|reorder|corrupt|delay|mark-ce|down|up LINK [psn= qpn= opcode= dscp= prio= "
    "sport=] [skip= count= p=] [delay= by= what=payload|icrc|header|reserved]",
    "arms a fault on one direction of a cable, named as in links/, and adds a directory NAME. It "
    "fires on matching packets, after skip= of them, each with probability p=, count= times (1; "
    "with p= without limit, as with 0). opcode= is a name such as RC_WRITE_MIDDLE, or data, ack, "
    "nak, rnr; qpn= is the receiver's. duplicate, delay: by delay=. reorder: after by= packets for "
    "the same queue pair (1), at most delay= (100us). corrupt: one bit. mark-ce: ECN-capable "
    "packets. down: up again after delay=; down alone and up act at once. A reset or a takeover "
    "removes faults"};
constexpr TriggerRow kRemove{"remove", "1", "disarms the fault, and removes its directory"};

// Wakes its pollers once after each read, however often the fault fires.
class FiredFile final : public Attribute {
 public:
  explicit FiredFile(FaultPtr fault) : fault_(std::move(fault)) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  FileDoc doc() const override {
    return {"value", {}, {}, "number of times that the fault has fired"};
  }
  Result<std::string> show() override {
    fault_->watch();
    return fmt::format("{}\n", fault_->fired.get());
  }

 private:
  const FaultPtr fault_;
};

}  // namespace

Inject::Inject(Tree& tree, const std::string& directory, Engine& engine, Fabric& fabric,
               const LinkKnobs& knobs)
    : tree_(tree), directory_(directory), engine_(engine), fabric_(fabric), knobs_(knobs) {
  for (Link* link : fabric.links()) {
    injectors_[link] = std::make_unique<Injector>(*link);
  }
  tree_.add_directory(directory_, true);
  add_trigger(tree_, directory_, kAdd, engine_,
              [this](std::string_view text, const OperationPtr&, Answer<void> answer) {
                add(text, std::move(answer));
              });
  tree_.add_file(directory_ + "/list",
                 std::make_shared<FunctionStream>(
                     [this] { return list(); },
                     "armed faults: NAME, number of times fired, and the fault's text"));
}

Inject::~Inject() = default;

std::string Inject::list() const {
  std::string text;
  for (const auto& [name, entry] : entries_) {
    text += fmt::format("{} fired {}: {}\n", name, entry.fault->fired.get(), entry.text);
  }
  return text;
}

void Inject::add(std::string_view line, Answer<void> answer) {
  Result<InjectSpec> spec = parse_inject(line);
  if (!spec) return answer(spec.error());
  Link* link = fabric_.link(spec->link);
  if (!link) return answer(errorf(EINVAL, "no link {}", spec->link));
  if (entries_.contains(spec->name)) {
    return answer(errorf(EEXIST, "the fault {} exists already", spec->name));
  }
  std::string name = spec->name, text(without_newline(line));
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(0, name.size() + 1);
  // A link's state belongs to both ends: between two cores it changes alone.
  auto fault =
      std::make_shared<InjectedFault>(std::move(*spec), fabric_.seed(), [this, link](bool up) {
        Task change = [this, link, up] { store_link_state(engine_, knobs_, *link, up); };
        if (!link->crosses()) return change();
        engine_.alone(std::move(change));
      });
  auto fired = std::make_shared<FiredFile>(fault);
  fault->on_fired = [this, file = std::weak_ptr<Attribute>(fired)] {
    engine_.tell_control([file] {
      if (auto there = file.lock()) there->notify();
    });
  };
  Injector* injector = injectors_.at(link).get();
  entries_[name] = {text, fault, injector};
  engine_.call<void>(
      [injector, fault]() -> Result<void> {
        injector->arm(fault);
        return {};
      },
      [this, name, fired, answer = std::move(answer)](Result<void> result) mutable {
        if (result) {
          add_directory(name, fired);
        } else {
          entries_.erase(name);
        }
        answer(std::move(result));
      });
}

void Inject::add_directory(const std::string& name, const std::shared_ptr<Attribute>& fired) {
  std::string directory = directory_ + "/" + name;
  const Entry& entry = entries_.at(name);
  tree_.add_directory(directory, true);
  tree_.add_file(directory + "/fired", fired);
  tree_.add_file(directory + "/spec", constant(entry.text, "what the fault does, as it was added"));
  add_trigger(tree_, directory, kRemove, engine_,
              [this, name](std::string_view text, const OperationPtr&, Answer<void> answer) {
                if (without_newline(text) != "1") {
                  return answer(Error{EINVAL, "only 1 removes a fault"});
                }
                remove(name, std::move(answer));
              });
}

void Inject::remove(const std::string& name, Answer<void> answer) {
  auto it = entries_.find(name);
  if (it == entries_.end()) return answer({});  // removed by a reset meanwhile
  auto fault = it->second.fault;
  auto injector = it->second.injector;
  engine_.call<void>(
      [injector, fault]() -> Result<void> {
        injector->disarm(fault);
        return {};
      },
      [this, name, fault, answer = std::move(answer)](Result<void> result) mutable {
        auto entry = entries_.find(name);
        if (result && entry != entries_.end() && entry->second.fault == fault) {
          entries_.erase(entry);
          tree_.remove(directory_ + "/" + name);
        }
        answer(std::move(result));
      });
}

void Inject::clear_all() {
  for (auto& [link, injector] : injectors_) injector->clear();
}

// An entry without a directory is still being added: it comes after the reset, and is armed.
void Inject::finish_reset() {
  std::erase_if(entries_, [this](const auto& entry) {
    std::string directory = directory_ + "/" + entry.first;
    if (!tree_.resolve(directory)) return false;
    tree_.remove(directory);
    return true;
  });
}

}  // namespace rocefs
