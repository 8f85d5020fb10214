// Clauses: PCI Local Bus 3.0 and PCI Express 5.0.
#include "rdma/tree/pci_config.h"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace rocefs;

namespace {

DeviceSpec function() {
  DeviceSpec spec;
  spec.ports.emplace_back();
  spec.ports[0].mac = {0x02, 0x00, 0x4c, 0x6d, 0x62, 0x01};
  return spec;
}
uint32_t load(const PciConfig& config, size_t at, size_t octets) {
  uint32_t value = 0;
  for (size_t i = octets; i-- > 0;) value = value << 8 | config[at + i];
  return value;
}
// Place of a capability; 0: it is not in the list.
size_t find(const PciConfig& config, uint8_t id) {
  size_t at = config[0x34];
  while (at != 0 && config[at] != id) at = config[at + 1];
  return at;
}
std::string read(File& file, const std::shared_ptr<File>& self, uid_t uid, uint64_t offset,
                 size_t size) {
  auto open = file.open(self, Caller{uid, 0, 0});
  std::string text;
  (*open)->read(offset, size, std::make_shared<Operation>(Caller{uid, 0, 0}),
                [&](Result<std::string> got) { text = *got; });
  return text;
}

}  // namespace

TEST_CASE("pci config: the header has the identity, and neither BARs nor an interrupt (6.1)") {
  PciConfig config = pci_config(function());
  CHECK(load(config, 0x00, 2) == kPciVendor);
  CHECK(load(config, 0x02, 2) == kPciDevice);
  CHECK(load(config, 0x08, 4) == 0x02000001);
  CHECK(config[0x0e] == 0);
  for (size_t at = 0x10; at < 0x28; ++at) CHECK(config[at] == 0);
  CHECK(load(config, 0x2c, 4) == (uint32_t{kPciSubsystem} << 16 | kPciVendor));
  CHECK(load(config, 0x3c, 2) == 0);
}

TEST_CASE("pci config: the capabilities are listed, and the link is that of the files (7.5.3)") {
  PciConfig config = pci_config(function());
  CHECK((load(config, 0x06, 2) & 1 << 4) != 0);
  CHECK(find(config, 1) != 0);
  size_t express = find(config, 0x10);
  REQUIRE(express != 0);
  CHECK((load(config, express + 2, 2) & 0xff) == 2);  // version 2, an endpoint
  for (size_t at : {0x0c, 0x12}) {                    // LnkCap, LnkSta
    CHECK((load(config, express + at, 2) & 15) == kPciSpeed);
    CHECK((load(config, express + at, 2) >> 4 & 0x3f) == kPciWidth);
  }
  CHECK(load(config, express + 0x2c, 4) == 0x3e);
}

TEST_CASE("pci config: the serial number is the node GUID (7.9.3)") {
  PciConfig config = pci_config(function());
  CHECK(load(config, 0x100, 4) == 0x00010003);
  CHECK(load(config, 0x108, 4) == 0x02004cff);
  CHECK(load(config, 0x104, 4) == 0xfe6d6201);
}

TEST_CASE("pci config: ordinary users read the header alone") {
  auto file = make_pci_config_file(function());
  CHECK(file->size() == 4096);
  CHECK(file->mode() == 0444);
  CHECK(read(*file, file, 0, 0, 8192).size() == 4096);
  CHECK(read(*file, file, 0, 0x40, 4) == std::string("\x01\x60\x03\x00", 4));
  CHECK(read(*file, file, 0, 4096, 4).empty());
  CHECK(read(*file, file, 0, UINT64_MAX, 4).empty());
  uid_t other = ::geteuid() + 4711;
  CHECK(read(*file, file, other, 0, 8192).size() == 64);
  CHECK(read(*file, file, other, 60, 8).size() == 4);
  CHECK(read(*file, file, other, 64, 4).empty());
}
