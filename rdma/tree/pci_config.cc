#include "rdma/tree/pci_config.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/shares.h"

namespace rocefs {
namespace {

constexpr size_t kPublicOctets = 64;  // the header

// Places in configuration space (PCI Local Bus 3.0, 6.1; PCI Express 5.0, 7.5).
constexpr size_t kPowerManagement = 0x40, kExpress = 0x60, kExtended = 0x100;

// PCI is little-endian.
void put16(PciConfig& config, size_t at, uint16_t value) {
  config[at] = static_cast<uint8_t>(value);
  config[at + 1] = static_cast<uint8_t>(value >> 8);
}
void put32(PciConfig& config, size_t at, uint32_t value) {
  put16(config, at, static_cast<uint16_t>(value));
  put16(config, at + 2, static_cast<uint16_t>(value >> 16));
}

void put_header(PciConfig& config) {
  constexpr uint16_t kBusMaster = 1 << 2, kNoIntx = 1 << 10, kHasCapabilities = 1 << 4;
  put16(config, 0x00, kPciVendor);
  put16(config, 0x02, kPciDevice);
  put16(config, 0x04, kBusMaster | kNoIntx);
  put16(config, 0x06, kHasCapabilities);
  put32(config, 0x08, kPciClass << 8 | kPciRevision);
  put16(config, 0x2c, kPciVendor);
  put16(config, 0x2e, kPciSubsystem);
  config[0x34] = kPowerManagement;
}

void put_power_management(PciConfig& config) {
  constexpr uint8_t kId = 1, kVersion = 3, kNoSoftReset = 1 << 3;
  put16(config, kPowerManagement, static_cast<uint16_t>(kExpress << 8 | kId));
  put16(config, kPowerManagement + 2, kVersion);
  put16(config, kPowerManagement + 4, kNoSoftReset);  // in D0
}

void put_express(PciConfig& config) {
  constexpr uint8_t kId = 0x10;
  constexpr uint16_t kVersion = 2, kMaxPayload512 = 2, kMaxRead512 = 2 << 12;
  constexpr uint32_t kExtendedTags = 1 << 5, kRoleBasedErrors = 1 << 15, kFunctionReset = 1 << 28;
  constexpr uint32_t kSpeeds = (1u << kPciSpeed) - 1;  // this one and all slower ones
  uint16_t link = kPciSpeed | kPciWidth << 4;
  put16(config, kExpress, kId);
  put16(config, kExpress + 0x02, kVersion);  // an endpoint
  put32(config, kExpress + 0x04,
        kMaxPayload512 | kExtendedTags | kRoleBasedErrors | kFunctionReset);
  put16(config, kExpress + 0x08, kMaxPayload512 << 5 | kMaxRead512);
  put32(config, kExpress + 0x0c, link);          // LnkCap
  put16(config, kExpress + 0x12, link);          // LnkSta
  put32(config, kExpress + 0x2c, kSpeeds << 1);  // LnkCap2
  put16(config, kExpress + 0x30, kPciSpeed);     // LnkCtl2: target speed
}

void put_serial_number(PciConfig& config, uint64_t number) {
  constexpr uint32_t kId = 3, kVersion = 1 << 16;
  put32(config, kExtended, kId | kVersion);
  put32(config, kExtended + 4, static_cast<uint32_t>(number));
  put32(config, kExtended + 8, static_cast<uint32_t>(number >> 32));
}

class OpenConfig final : public OpenFile {
 public:
  OpenConfig(const PciConfig& config, size_t shown) : config_(config), shown_(shown) {}
  void read(uint64_t offset, size_t size, const OperationPtr&,
            Answer<std::string> answer) override {
    uint64_t begin = std::min<uint64_t>(offset, shown_);
    size_t count = std::min<size_t>(size, shown_ - begin);
    answer(std::string(reinterpret_cast<const char*>(config_.data()) + begin, count));
  }
  void write(std::string_view, const OperationPtr&, Answer<size_t> answer) override {
    answer(Error{EPERM, "the configuration space of an emulated function is read-only"});
  }
  short poll(Task) override { return POLLIN | POLLRDNORM; }

 private:
  const PciConfig config_;
  const size_t shown_;
};

class ConfigFile final : public File {
 public:
  explicit ConfigFile(const PciConfig& config) : config_(config) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  uint64_t size() const override { return config_.size(); }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>&,
                                         const Caller& caller) override {
    size_t shown = is_privileged(caller.uid) ? config_.size() : kPublicOctets;
    return {std::make_unique<OpenConfig>(config_, shown)};
  }
  FileDoc doc() const override {
    return {"value",
            {},
            {},
            "PCI configuration space, 4096 octets, as lspci reads it; 64 for ordinary users"};
  }

 private:
  const PciConfig config_;
};

}  // namespace

PciConfig pci_config(const DeviceSpec& spec) {
  PciConfig config{};
  put_header(config);
  put_power_management(config);
  put_express(config);
  put_serial_number(config, guid_of(spec.ports[0]));
  return config;
}

std::shared_ptr<File> make_pci_config_file(const DeviceSpec& spec) {
  return std::make_shared<ConfigFile>(pci_config(spec));
}

}  // namespace rocefs
