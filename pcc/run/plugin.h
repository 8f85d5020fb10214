// PccPlugin: an algorithm from a shared library, in a slot of a handle's controller.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "pcc/api/algorithm.h"
#include "pcc/api/libmango.h"
#include "pcc/run/handle.h"
#include "pcc/run/library_copy.h"

namespace rocefs {

class PccPlugin {
 public:
  // Asked before an algorithm is put into the slot; its error is that of the load.
  using Accept = std::function<Result<void>(unsigned slot, const PccAlgorithm& algorithm)>;
  // Loads into the lowest free slot. Runs code of the library: constructors and init_params.
  // ENOEXEC: not a plugin. EEXIST: name in use. ENOSPC: no free slot. ENOMEM. A failed load leaves
  // nothing behind. One thread at a time for a handle, which outlives the plugin.
  static Result<std::unique_ptr<PccPlugin>> load(PccHandle& handle, const LibraryCopy& library,
                                                 const Accept& accept = nullptr);
  // The same for a plugin of the program itself, which outlives the object.
  static Result<std::unique_ptr<PccPlugin>> adopt(PccHandle& handle,
                                                  const mango_pcc_algo_plugin_t& plugin);
  // load() in place of `old`, which was loaded from the same file: it takes the slot, and queue
  // pairs that run it go on, see PccController::replace(). EBUSY if the algorithm has another name
  // now and `old` runs. `old` is out of its slot then, and does not run.
  static Result<std::unique_ptr<PccPlugin>> load_again(PccPlugin& old, const LibraryCopy& library,
                                                       const Accept& accept = nullptr);
  // Calls mango_pcc_algo_keep, if there is one, for a queue pair that has changed nothing: what the
  // function does wrong shows before it is called for others.
  void try_keep() const;
  // Returns the block to the library and closes it. A plugin still in its slot must not run.
  ~PccPlugin();
  PccPlugin(const PccPlugin&) = delete;
  PccPlugin& operator=(const PccPlugin&) = delete;

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  unsigned slot() const { return slot_; }
  // Empties the slot; BUSY while it runs. Destroy the plugin after that.
  mango_status_e remove();

 private:
  PccPlugin(PccHandle& handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  // The algorithm, for a slot that is free or that of `old`, whose place it is to take; null: none.
  Result<PccAlgorithm> read(const LibraryCopy& library, const PccPlugin* old, const Accept& accept);
  static Result<std::unique_ptr<PccPlugin>> added(std::unique_ptr<PccPlugin> plugin,
                                                  Result<PccAlgorithm> algorithm);
  Result<void> open(const LibraryCopy& library);
  Result<void> check(const PccPlugin* old) const;
  Result<PccAlgorithm> prepare(const PccPlugin* old);
  Result<void> take_place_of(PccPlugin& old, PccAlgorithm algorithm);

  PccHandle& handle_;
  const std::string file_;
  void* library_ = nullptr;
  const mango_pcc_algo_plugin_t* plugin_ = nullptr;
  mango_pcc_algo_keep_fn* keep_ = nullptr;
  void* block_ = nullptr;  // what init_params made
  std::string name_;
  unsigned slot_ = 0;
  bool added_ = false;
};

}  // namespace rocefs
