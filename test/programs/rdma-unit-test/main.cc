// main() of rdma-unit-test with one NIC more: rocefs, whose devices are called mb_0 and so on.
#include "absl/debugging/failure_signal_handler.h"
#include "absl/flags/parse.h"
#include "gtest/gtest.h"
#include "internal/introspection_registrar.h"
#include "public/introspection.h"

namespace {

// RocefsIntrospection: the suite's defaults, which are those of the specification, but for two.
class RocefsIntrospection final : public rdma_unit_test::NicIntrospection {
 public:
  using NicIntrospection::NicIntrospection;
  bool SupportsReRegMr() const override { return true; }
  bool IsSlowNic() const override { return true; }  // it is emulated
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::InstallFailureSignalHandler({});
  absl::ParseCommandLine(argc, argv);
  rdma_unit_test::IntrospectionRegistrar::GetInstance().Register(
      "mb_",
      [](const std::string& name, const ibv_device_attr& attr)
          -> rdma_unit_test::NicIntrospection* { return new RocefsIntrospection(name, attr); });
  return RUN_ALL_TESTS();
}
