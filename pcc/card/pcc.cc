#include "pcc/card/pcc.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/nic/device.h"

namespace rocefs {

// Card: PCC of one device, bound or not.
struct Pcc::Card {
  Device& device;
  Mgmt mgmt;
  PluginDirectory plugins;
  std::shared_ptr<KnobSet> mode;
  PccMode active = PccMode::kSoc;  // mode at the last bind
  std::unique_ptr<PccDevice> pcc;
  std::unique_ptr<PccFiles> files;
  std::atomic<bool> qps_changed{false};  // since the control thread looked

  Card(const Parts& parts, Device& of, size_t index)
      : device(of),
        mgmt(parts.tree, index, parts.engine, parts.mgmt),
        plugins(parts.plugins, of.name(), parts.engine, parts.files),
        mode(std::make_shared<KnobSet>(kPccModeKnobs, parts.engine, nullptr)) {}

  PccMode mode_set() const { return static_cast<PccMode>(std::get<uint64_t>(mode->value(0))); }
  // Host mode needs no management link.
  Result<void> reachable() const {
    return active == PccMode::kHost ? Result<void>() : mgmt.reachable();
  }
  Result<void> may_send() const {
    if (active == PccMode::kHost) return Error{EOPNOTSUPP, "PCC mode is host"};
    return mgmt.reachable();
  }
};

Pcc::Pcc(Parts parts) : parts_(std::move(parts)) {
  for (const auto& device : parts_.fabric.devices()) {
    cards_.push_back(make_card(*device, cards_.size()));
  }
}

Pcc::~Pcc() = default;

std::unique_ptr<Pcc::Card> Pcc::make_card(Device& device, size_t index) {
  auto card = std::make_unique<Card>(parts_, device, index);
  Card* self = by_device_[&device] = card.get();
  PccDevice::Parts parts{device, parts_.engine, nullptr, nullptr, nullptr, parts_.log};
  parts.make_backend = [this, &device](PccBackend::Listener& listener) {
    return parts_.make_backend ? parts_.make_backend(device, listener) : nullptr;
  };
  parts.revoke = [this](uint64_t program) {
    if (parts_.revoke) parts_.revoke(program);
  };
  parts.reachable = [self] { return self->reachable(); };
  card->pcc = std::make_unique<PccDevice>(std::move(parts));
  card->files = std::make_unique<PccFiles>(
      PccFiles::Parts{parts_.tree, *card->pcc, parts_.engine, card->mode, card->plugins,
                      [self] { return self->active; }, [self] { return self->may_send(); },
                      [self] { return self->qps_changed.exchange(false); }});
  device.registers().on_change([self] { self->qps_changed.store(true); });
  return card;
}

Pcc::Card& Pcc::card_of(const Device& device) {
  return *by_device_.at(&device);
}

void Pcc::bound(Tree&, const std::string& directory, Device& device) {
  Card& card = card_of(device);
  card.pcc->begin();
  if (!card.pcc->works()) return;
  card.files->bind(directory + "/pcc");
  if (modes_begun_) begin_mode(card);
}

// The device has taken back its windows by now.
void Pcc::unbound(Device& device) {
  Card& card = card_of(device);
  card.files->unbind();
  card.pcc->end(errorf(ENODEV, "{} has left its driver", device.name()), [](Result<void>) {});
}

void Pcc::begin_mode(Card& card) {
  card.active = card.mode_set();
  parts_.driver_log(fmt::format("mango_core {}: PCC mode: ({})", card.device.spec().pci,
                                card.active == PccMode::kHost ? "host" : "soc"));
}

Pcc::HostModes Pcc::host_modes() const {
  HostModes modes;
  for (size_t i = 0; i < std::min(cards_.size(), kMaxDevices); ++i) {
    modes.set(i, cards_[i]->active == PccMode::kHost);
  }
  return modes;
}

void Pcc::begin_modes() {
  modes_begun_ = true;
  for (const auto& card : cards_) {
    if (card->files->bound()) begin_mode(*card);
  }
}

void Pcc::begin_modes(const HostModes& were) {
  modes_begun_ = true;
  for (size_t i = 0; i < std::min(cards_.size(), kMaxDevices); ++i) {
    cards_[i]->active = were.test(i) ? PccMode::kHost : PccMode::kSoc;
  }
}

void Pcc::reset(Answer<void> answer) {
  reset_from(0, std::move(answer));
}

void Pcc::reset_from(size_t index, Answer<void> answer) {
  if (index == cards_.size()) return answer({});
  PccDevice& pcc = *cards_[index]->pcc;
  if (!pcc.works()) return reset_from(index + 1, std::move(answer));
  pcc.end(Error{ECANCELED, "a reset came first"},
          [this, index, answer = std::move(answer)](Result<void> ended) mutable {
            Card& card = *cards_[index];
            if (card.files->bound()) card.pcc->begin();
            if (!ended) return answer(std::move(ended));
            reset_from(index + 1, std::move(answer));
          });
}

void Pcc::each_kept_knobs(const std::function<void(const std::shared_ptr<KnobSet>&)>& visit) const {
  for (const auto& card : cards_) {
    for (const auto& knobs : {card->mgmt.knobs(), card->plugins.knobs(), card->mode}) visit(knobs);
  }
}

void Pcc::finish_reset() {
  for (const auto& card : cards_) {
    if (card->files->bound() && card->active != card->mode_set()) begin_mode(*card);
  }
}

PccDevice* Pcc::claimed(const std::string& device, uint64_t program) {
  for (const auto& card : cards_) {
    const Program* holder = card->pcc->program();
    if (card->device.name() == device && holder && holder->id == program) return card->pcc.get();
  }
  return nullptr;
}

Result<void> Pcc::claim(const std::string& device, const Program& program) {
  if (parts_.engine.mode() == ClockMode::kVirtual) {
    return Error{EOPNOTSUPP, "programs run in real time, and the clock is virtual"};
  }
  for (const auto& card : cards_) {
    if (card->device.name() == device && card->pcc->works()) return card->pcc->claim(program);
  }
  return errorf(ENODEV, "there is no device {}", device);
}

void Pcc::run(const std::string& device, uint64_t program, unsigned pollers, Answer<Pages> answer) {
  PccDevice* pcc = claimed(device, program);
  if (!pcc) return answer(errorf(ENODEV, "{} is not claimed", device));
  pcc->run_program(pollers, std::move(answer));
}

void Pcc::stop(const std::string& device, uint64_t program, Answer<void> answer) {
  PccDevice* pcc = claimed(device, program);
  if (!pcc) return answer({});
  pcc->stop_program(std::move(answer));
}

void Pcc::release(const std::string& device, uint64_t program) {
  if (PccDevice* pcc = claimed(device, program)) pcc->release_program();
}

void Pcc::program_log(const std::string& device, LogLevel level, std::string_view text) {
  for (const auto& card : cards_) {
    if (card->device.name() == device) return card->pcc->pcc_log(level, text);
  }
  parts_.log(level, fmt::format("{}: PCC: {}", device, text));
}

}  // namespace rocefs
