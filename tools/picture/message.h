// Message: what the page is told of one look at a network, as JSON. A line of it is
//   wall     time of the look, Unix time in ms; none in a simulation's recording
//   groups   of files, each {"g": number of the group, and either
//              "paths": [...], "values": [...]   all files of the group and their texts, or
//              "c": [index, text, ...]}          the texts that have changed}
//   dmesg, stores   [...] new lines of dmesg and of clock/log
//   gone     why the mount could not be looked at
// Group 0 is the fabric, group 1 flows and loads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/picture/looks.h"

namespace rocefs {

// Patterns of the files of groups 0 and 1. The first group changes only with devices and switches;
// flows come and go.
extern const std::vector<std::string> kFabricFiles, kFlowFiles;

// `text` as a JSON string with its quotes; octets that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
// The last `most` lines of a text, as JSON strings with commas between.
std::string json_lines(std::string_view text, size_t most = SIZE_MAX);
// Adds a part to the contents of a JSON array.
void append_json(std::string& contents, std::string_view part);

// Lines that a log has more `now` than `before`; all, if none of before is left.
std::string_view new_lines(std::string_view before, std::string_view now);

// A group of the last look: all files, or what has changed.
std::string whole_group(size_t number, const Looks& looks);
std::string changes_of_group(size_t number, const Looks& looks);

// Contents of a message's arrays.
struct MessageContent {
  std::string groups, dmesg, stores;

  // The message without newline. `wall`, `gone`: empty, or a number and a text.
  std::string message(std::string_view wall, std::string_view gone) const;
};

}  // namespace rocefs
