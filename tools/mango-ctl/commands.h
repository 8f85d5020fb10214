// The nouns of the command line; each adds its words.
#pragma once

#include "tools/mango-ctl/command_line.h"

namespace rocefs {

void add_feature_commands(CommandLine& line, CLI::App& rdma);  // cfr, ops and sr
void add_pcc_commands(CommandLine& line, CLI::App& rdma);
void add_algo_commands(CommandLine& line, CLI::App& pcc);
void add_params_commands(CommandLine& line, CLI::App& pcc);
void add_top_command(CommandLine& line, CLI::App& pcc);
void add_trace_command(CommandLine& line, CLI::App& pcc);
void add_mgmt_commands(CommandLine& line);
void add_project_commands(CommandLine& line);
void add_device_commands(CommandLine& line);
void add_dmesg_command(CommandLine& line);

}  // namespace rocefs
