// Recording of an algorithm's calls.
#pragma once

#include <string>

#include "tools/mango-ctl/session.h"

namespace rocefs {

// Copies pcc/calls of the device to a file, `-` for stdout. With `follow` the copy goes on until
// the program ends, and the file always holds whole lines.
Result<void> record_calls(Session& session, const std::string& device, const std::string& file,
                          bool follow);

}  // namespace rocefs
