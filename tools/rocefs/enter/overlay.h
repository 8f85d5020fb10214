// Overlay: the tree laid over /sys and /dev.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/rocefs/enter/device_view.h"

namespace rocefs {

// Source of the file systems that hold entries of both, in the mount table.
constexpr char kOverlaySource[] = "rocefs-enter";

class Overlay {
 public:
  // `tree`: path of a mounted rocefs. `view`: what of it is seen; directories of which a part is
  // seen are not live. EACCES if the caller may not read it, ENOTCONN if it is dead.
  static Result<Overlay> of(const std::string& tree, DeviceView view = {});

  // Directories that lay() mounts over: /sys, and /dev if the tree has a dev/.
  const std::vector<std::string>& places() const { return places_; }

  // Mounts in the caller's mount namespace, so that /sys (and /dev) show the tree's entries beside
  // the machine's; the machine's class/infiniband* are hidden. Directories of the tree alone are
  // live: devices come and go in them. A shared one, such as class/net, gets the entries that both
  // have now. Open files and mounts in /sys stay as they are. Call once, in a namespace where
  // places() are private.
  Result<void> lay() const;

 private:
  std::string tree_;
  DeviceView view_;
  std::vector<std::string> places_;
};

}  // namespace rocefs
