#include "rdma/tree/pci_driver.h"

#include <algorithm>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

constexpr TriggerRow kBind{
    "bind", "PCI ADDRESS",
    "binds the driver: the device appears, with the defaults of its own knobs; where the unbind "
    "ended PCC, cfr/enable is what it was before PCC"};
constexpr TriggerRow kUnbind{
    "unbind", "PCI ADDRESS",
    "unbinds the driver: the device's flows end, and its open files answer ENODEV"};

}  // namespace

PciDriver::PciDriver(Tree& tree, Fabric& fabric, Engine& engine, const LinkKnobs& knobs,
                     std::vector<DeviceExtension*> extensions)
    : tree_(tree), engine_(engine), extensions_(std::move(extensions)) {
  tree.add_directory("class/infiniband");
  tree.add_directory("class/net");
  tree.add_file(
      "class/infiniband_verbs/abi_version",
      constant("6", "version of the kernel's interface for verbs (IB_USER_VERBS_ABI_VERSION)"));
  tree.add_directory("dev/infiniband");
  const std::string directory(kDriverDirectory);
  for (bool bind : {true, false}) {
    add_trigger(tree, directory, bind ? kBind : kUnbind, engine,
                [this, bind](std::string_view text, const OperationPtr&, Answer<void> answer) {
                  store(text, bind, std::move(answer));
                });
  }
  for (size_t index = 0; index < fabric.devices().size(); ++index) {
    Device& device = *fabric.devices()[index];
    auto files = std::make_unique<DeviceFiles>(tree, device, index, engine, knobs);
    bind(*files);
    functions_.emplace(device.spec().pci, std::move(files));
  }
}

PciDriver::~PciDriver() = default;

void PciDriver::bind(DeviceFiles& files) {
  files.bind();
  for (DeviceExtension* one : extensions_) one->bound(tree_, files.directory(), files.device());
}

void PciDriver::unbind(DeviceFiles& files) {
  std::for_each(extensions_.rbegin(), extensions_.rend(),
                [&files](DeviceExtension* one) { one->unbound(files.device()); });
  files.unbind();
}

void PciDriver::store(std::string_view text, bool bind, Answer<void> answer) {
  std::string_view address = without_newline(text);
  if (!functions_.contains(address)) {
    return answer(errorf(ENODEV, "{}: not a function of this driver", quoted(address)));
  }
  waiting_.push_back(
      [this, bind, address = std::string(address), answer = std::move(answer)]() mutable {
        change(address, bind, std::move(answer));
      });
  if (!changing_) next();
}

void PciDriver::bind_all(Answer<void> answer) {
  for (const auto& [address, files] : functions_) {
    if (files->bound()) continue;
    return store(address, true, [this, answer = std::move(answer)](Result<void> result) mutable {
      // EBUSY: the device was bound by another store meanwhile.
      if (!result && result.error().code != EBUSY) return answer(std::move(result));
      bind_all(std::move(answer));
    });
  }
  answer({});
}

void PciDriver::next() {
  changing_ = !waiting_.empty();
  if (!changing_) return;
  Task change = std::move(waiting_.front());
  waiting_.pop_front();
  change();
}

void PciDriver::note(const DeviceFiles& files, bool bound) {
  size_t index = 0;
  for (const auto& [address, one] : functions_) {
    if (one.get() == &files && index < kMaxDevices) unbound_.set(index, !bound);
    ++index;
  }
}

void PciDriver::restore(const Unbound& unbound) {
  size_t index = 0;
  for (const auto& [address, files] : functions_) {
    if (index < kMaxDevices && unbound.test(index)) {
      files->device().leave();
      unbind(*files);
    }
    ++index;
  }
  unbound_ = unbound;
}

// Waits for the extensions from `first` on, one after the other, then until the kernel knows the
// changed names.
void PciDriver::when_settled(size_t first, Task done) {
  if (first == extensions_.size()) return tree_.when_known(std::move(done));
  extensions_[first]->when_settled([this, first, done = std::move(done)]() mutable {
    when_settled(first + 1, std::move(done));
  });
}

void PciDriver::keep_cfr(DeviceFiles& files) {
  cfr_.erase(&files);
  if (!files.device().cfr().shown_as_controlled()) return;
  auto enable = find_knob(tree_, files.directory() + "/cfr/enable");
  if (enable) cfr_.emplace(&files, enable->set()->value(enable->index()));
}

void PciDriver::return_cfr(DeviceFiles& files, Task done) {
  auto kept = cfr_.extract(&files);
  auto enable = kept ? find_knob(tree_, files.directory() + "/cfr/enable") : nullptr;
  if (!enable) return done();
  // A refusal: a program has taken the windows already, and CFR has its default.
  store_knobs(engine_, {{enable->set(), enable->index(), std::move(kept.mapped()), ""}},
              [done = std::move(done)](Result<Moment>) mutable { done(); });
}

// The core acts first: if it refuses, nothing has changed. The store is answered when all has
// settled.
void PciDriver::change(const std::string& address, bool bind, Answer<void> answer) {
  DeviceFiles& files = *functions_.find(address)->second;
  auto finish = [this, answer = std::move(answer)](Result<void> result) mutable {
    answer(std::move(result));
    next();
  };
  if (files.bound() == bind) {
    return finish(bind ? errorf(EBUSY, "{} is bound already", address)
                       : errorf(ENODEV, "{} is not bound", address));
  }
  Device& device = files.device();
  if (!bind) keep_cfr(files);
  engine_.call<void>(
      [&device, bind]() -> Result<void> {
        bind ? device.arrive() : device.leave();
        return {};
      },
      [this, &files, bind, finish = std::move(finish)](Result<void> result) mutable {
        if (!result) return finish(std::move(result));
        bind ? this->bind(files) : unbind(files);
        auto settle = [this, &files, bind, finish = std::move(finish)]() mutable {
          when_settled(0, [this, &files, bind, finish = std::move(finish)]() mutable {
            note(files, bind);
            finish({});
          });
        };
        bind ? return_cfr(files, std::move(settle)) : settle();
      });
}

}  // namespace rocefs
