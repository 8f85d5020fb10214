// mango-ctl: the vendor's command line, as a client of the files of a mounted rocefs.
#include "tools/mango-ctl/commands.h"

int main(int argc, char** argv) {
  using namespace rocefs;
  CommandLine line;
  CLI::App& rdma = line.group(line.root(), "rdma", "features of RDMA devices",
                              "rdma cfr enable mb_0\nrdma ops status mb_0\nrdma pcc status");
  add_feature_commands(line, rdma);
  add_pcc_commands(line, rdma);
  add_mgmt_commands(line);
  add_project_commands(line);
  add_device_commands(line);
  add_dmesg_command(line);
  return line.run(argc, argv);
}
