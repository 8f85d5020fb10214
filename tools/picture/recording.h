// Recording: a network and its messages over time, as text: a line {"shape": …} (shape.h), then a
// message (message.h) a line. `rocefs view` plays it, and a report has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

// The first line, without its newline.
std::string recording_head(std::string_view shape);
// The shape in a first line; nullopt if it is none of a recording.
std::optional<std::string> shape_in(std::string_view head);

struct Recording {
  std::string shape;                  // JSON
  std::vector<std::string> messages;  // JSON, without newlines

  // nullopt if the text is no recording, or a message no JSON. A last line that is not whole is
  // left out.
  static std::optional<Recording> parse(std::string_view text);
  size_t size() const;
  // Leaves out flows, loads and the lines of dmesg. False if a message is malformed.
  bool drop_flows();
  // Leaves out the files of queues and PFC that are 0 all the time, all but one for each port, then
  // joins neighbours, the first message and the last one excepted, until size() is `most` or less.
  // False if it cannot be so short, or a message is malformed.
  bool shorten(size_t most);

 private:
  void drop_idle_queues();
  void join_neighbours();
};

}  // namespace rocefs
