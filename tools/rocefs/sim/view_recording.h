// ViewRecording: what `rocefs view` would show of a run, written while it runs
// (tools/picture/recording.h).
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/tree/tree.h"
#include "tools/picture/message.h"

namespace rocefs {

// Control thread, as the tree is.
class ViewRecording {
 public:
  // Begins something, and runs the loop until it is answered.
  using Wait = std::function<Result<void>(const std::function<void(Answer<void>)>& begin)>;

  // Creates the file, or empties it, and writes the shape of the network. `title` is shown as what
  // is seen. The tree outlives it.
  static Result<std::unique_ptr<ViewRecording>> begin(const std::string& file,
                                                      const std::string& title, Tree& tree,
                                                      Wait wait);
  // A line of dmesg, and a store as a line for clock/at: shown with the next look.
  void note_log(std::string_view line) { append_json(log_, json_string(line)); }
  void note_store(std::string_view line) { append_json(stores_, json_string(line)); }
  // Writes a message, if time has passed since the last one, or something is noted. After an error
  // looks do nothing, and the file is removed.
  void look(TimeNs now);
  // Whether all is in the file.
  Result<void> finish();

 private:
  // Files of one group, through an open file `get`.
  struct Group {
    std::unique_ptr<OpenFile> file;
    Looks looks;
  };

  ViewRecording(std::string name, Tree& tree, Wait wait);
  Result<void> start(const std::string& title);
  Result<std::unique_ptr<OpenFile>> query(const std::vector<std::string>& patterns);
  Result<void> look_at(Group& group);
  std::vector<std::string> names_in(const std::string& directory);
  Result<std::string> shape(const std::string& title);
  void give_up();
  Error file_error() const;
  Result<void> write_look();
  Result<void> write(const std::string& line);

  const std::string name_;
  Tree& tree_;
  const Wait wait_;
  std::ofstream file_;
  Group groups_[2];
  std::string log_, stores_;  // contents of JSON arrays
  TimeNs last_look_ = -1;
  Result<void> written_;  // the first error
};

}  // namespace rocefs
