// The tree laid over /sys and /dev.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

class Overlay {
 public:
  // `tree` is the path of a mounted rocefs. EACCES, ENOTCONN.
  static Result<Overlay> of(const std::string& tree);

  // Where lay() will mount: /sys, and /dev if the tree has a dev/.
  const std::vector<std::string>& places() const { return places_; }

  // Mounts, in the caller's mount namespace, so that /sys (and /dev) show what the tree has and,
  // beside it, what the machine has; of the machine's class/infiniband* nothing is left.
  // Directories that belong to the tree alone are shown live: devices come and go in them. One that
  // both share, such as class/net, gets the entries that both have now. What is opened or mounted
  // on in /sys already stays as it is. May be called once, after moving to a namespace where
  // places() are private.
  Result<void> lay() const;

 private:
  std::string tree_;
  std::vector<std::string> places_;
};

}  // namespace rocefs
