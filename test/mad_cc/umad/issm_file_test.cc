#include "mad_cc/umad/issm_file.h"

#include <cerrno>
#include <vector>

#include "test/mad_cc/umad/umad_rig.h"

using namespace rocefs;

namespace {

struct Issm : UmadRig {
  std::vector<bool> told;
  std::shared_ptr<File> issm = make_issm_file(*engine, [this](bool open) { told.push_back(open); });
  Result<std::unique_ptr<OpenFile>> open_issm() { return issm->open(issm, Caller{}); }
};

}  // namespace

TEST_CASE("issm: a program manages the subnet while it has the file open, alone") {
  Issm rig;
  auto open = rig.open_issm();
  REQUIRE(open);
  CHECK(rig.told == std::vector{true});
  CHECK(rig.open_issm().error().code == EAGAIN);
  open->reset();
  CHECK(rig.told == std::vector{true, false});
  CHECK(bool(rig.open_issm()));
}

TEST_CASE("issm: a device that leaves ends the management once, and the close changes nothing") {
  Issm rig;
  auto open = rig.open_issm();
  rig.issm->mark_removed();
  CHECK((*open)->poll({}) == (POLLERR | POLLHUP));
  open->reset();
  CHECK(rig.told == std::vector{true, false});
}

TEST_CASE("issm: there is nothing to read or to write") {
  Issm rig;
  auto open = rig.open_issm();
  auto operation = std::make_shared<Operation>(Caller{});
  int read = 0, write = 0;
  (*open)->read(0, 10, operation, [&](Result<std::string> got) { read = got.error().code; });
  (*open)->write("x", operation, [&](Result<size_t> got) { write = got.error().code; });
  CHECK(read == EINVAL);
  CHECK(write == EINVAL);
}
