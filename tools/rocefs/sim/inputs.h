// Inputs: the files that a scenario names by file= and cdf=. Their content is part of the
// configuration: runs with other content are other runs.
#pragma once

#include "core/config/config.h"

namespace rocefs {

// Takes the content of the regular files into `config.inputs` and `config.hash`; files that cannot
// be read are left to who uses them.
void add_inputs(Config& config);

// Sets `inputs` of a configuration that has none, and its hash. Zero changes nothing.
void set_inputs(Config& config, uint64_t inputs);

}  // namespace rocefs
