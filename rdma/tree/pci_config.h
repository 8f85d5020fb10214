// The PCI Express function of a device: its configuration space, and what other files say of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/tree/file.h"
#include "rdma/nic/device.h"

namespace rocefs {

inline constexpr uint16_t kPciSubsystem = 0x0100;
inline constexpr uint32_t kPciClass = 0x020000;  // an Ethernet controller
inline constexpr uint8_t kPciRevision = 1;
// Link: PCI Express 5.0.
inline constexpr uint8_t kPciSpeed = 5, kPciWidth = 16;
inline constexpr std::string_view kPciSpeedText = "32.0 GT/s PCIe";

// Header of type 0 without BARs and interrupts, as `resource` and `irq` say, with the capabilities
// power management and PCI Express, and the device serial number, which is the node GUID.
using PciConfig = std::array<uint8_t, 4096>;
PciConfig pci_config(const DeviceSpec& spec);

// The file `config` of a function. As with the kernel (pci_read_config()), whoever has no privilege
// for it reads the first 64 octets alone: not the capabilities.
std::shared_ptr<File> make_pci_config_file(const DeviceSpec& spec);

}  // namespace rocefs
