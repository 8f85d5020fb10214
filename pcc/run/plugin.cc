#include "pcc/run/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/kstrto.h"
#include "pcc/run/library_copy.h"
#include "pcc/run/parameter_block.h"
#include "pcc/run/slots.h"

namespace rocefs {
namespace {

constexpr const char* kSymbol = "mango_pcc_algo_plugin";
constexpr const char* kKeepSymbol = "mango_pcc_algo_keep";
constexpr const char* kAbiSymbol = "mango_plugin_abi";
constexpr size_t kMaxName = 31;

// Size of a symbol, as its object file says.
size_t size_of(const void* address) {
  Dl_info where;
  void* entry = nullptr;
  if (!::dladdr1(address, &where, &entry, RTLD_DL_SYMENT) || !entry) return 0;
  return static_cast<const ElfW(Sym)*>(entry)->st_size;
}

// Error for a registered parameter that is invalid.
Error bad_parameter(const PccAlgorithm::Parameter& parameter, size_t size) {
  size_t own = parameter_size(parameter.type);
  if (own > 0 && own <= size && parameter.offset <= size - own) {
    return errorf(ENOEXEC, "parameter {} is not within its range of {} to {}", parameter.name,
                  parameter.min, parameter.max);
  }
  return errorf(ENOEXEC, "parameter {} is not inside the {} octets of init_params", parameter.name,
                size);
}

}  // namespace

Result<std::unique_ptr<PccPlugin>> PccPlugin::load(PccHandle& handle, const LibraryCopy& library,
                                                   const Accept& accept) {
  std::unique_ptr<PccPlugin> plugin(new PccPlugin(handle, library.file));
  Result<PccAlgorithm> algorithm = plugin->read(library, nullptr, accept);
  return added(std::move(plugin), std::move(algorithm));
}

Result<std::unique_ptr<PccPlugin>> PccPlugin::adopt(PccHandle& handle,
                                                    const mango_pcc_algo_plugin_t& plugin) {
  std::unique_ptr<PccPlugin> adopted(new PccPlugin(handle, ""));
  adopted->plugin_ = &plugin;
  if (Result<void> good = adopted->check(nullptr); !good) return good.error();
  Result<PccAlgorithm> algorithm = adopted->prepare(nullptr);
  return added(std::move(adopted), std::move(algorithm));
}

Result<std::unique_ptr<PccPlugin>> PccPlugin::added(std::unique_ptr<PccPlugin> plugin,
                                                    Result<PccAlgorithm> algorithm) {
  if (!algorithm) return algorithm.error();
  mango_status_e status = plugin->handle_.controller().add(plugin->slot_, std::move(*algorithm));
  if (status != MANGO_STATUS_OK) return errorf(ENOEXEC, "{}", mango_status_str(status));
  plugin->added_ = true;
  return plugin;
}

Result<std::unique_ptr<PccPlugin>> PccPlugin::load_again(PccPlugin& old, const LibraryCopy& library,
                                                         const Accept& accept) {
  std::unique_ptr<PccPlugin> plugin(new PccPlugin(old.handle_, library.file));
  Result<PccAlgorithm> algorithm = plugin->read(library, &old, accept);
  if (!algorithm) return algorithm.error();
  Result<void> placed = plugin->take_place_of(old, std::move(*algorithm));
  if (!placed) return placed.error();
  return plugin;
}

Result<PccAlgorithm> PccPlugin::read(const LibraryCopy& library, const PccPlugin* old,
                                     const Accept& accept) {
  Result<void> done = open(library);
  if (done) done = check(old);
  if (!done) return done.error();
  Result<PccAlgorithm> algorithm = prepare(old);
  if (algorithm && accept) done = accept(slot_, *algorithm);
  if (!done) return done.error();
  return algorithm;
}

Result<void> PccPlugin::take_place_of(PccPlugin& old, PccAlgorithm algorithm) {
  PccController& controller = handle_.controller();
  mango_status_e status = MANGO_STATUS_OK;
  if (name_ == old.name_) {
    status = controller.replace(slot_, std::move(algorithm));
  } else {
    status = controller.remove(old.slot_);
    if (status == MANGO_STATUS_BUSY) {
      return errorf(EBUSY, "its algorithm is {} now, and {}, which was loaded from it, runs", name_,
                    old.name_);
    }
    if (status == MANGO_STATUS_OK) status = controller.add(slot_, std::move(algorithm));
  }
  if (status != MANGO_STATUS_OK) return errorf(ENOEXEC, "{}", mango_status_str(status));
  old.added_ = false;
  added_ = true;
  return {};
}

PccPlugin::~PccPlugin() {
  if (added_) handle_.controller().remove(slot_);
  if (block_ && plugin_->destroy_params) plugin_->destroy_params(block_);
  if (library_) ::dlclose(library_);
}

void PccPlugin::try_keep() const {
  const PccAlgorithm* algorithm = added_ ? handle_.controller().algorithm(slot_) : nullptr;
  if (!algorithm || !algorithm->keep) return;
  ParameterBlock before(algorithm->initial), after(algorithm->initial);
  const size_t size = algorithm->initial.size();
  algorithm->keep(before.data(), size, after.data(), size);
}

mango_status_e PccPlugin::remove() {
  if (!added_) return MANGO_STATUS_NOT_FOUND;
  mango_status_e status = handle_.controller().remove(slot_);
  added_ = status != MANGO_STATUS_OK;
  return status;
}

Result<void> PccPlugin::open(const LibraryCopy& copy) {
  Result<void*> library = open_library(copy);
  if (!library) return library.error();
  library_ = *library;
  plugin_ = static_cast<const mango_pcc_algo_plugin_t*>(::dlsym(library_, kSymbol));
  if (!plugin_) return errorf(ENOEXEC, "it has no symbol {}", kSymbol);
  if (size_t size = size_of(plugin_); size != sizeof *plugin_) {
    return errorf(ENOEXEC,
                  "{} has {} octets, where libmango.h has {}: it was built with another one",
                  kSymbol, size, sizeof *plugin_);
  }
  // Plugins that were built before there was a number have none.
  auto* abi = static_cast<const uint32_t*>(::dlsym(library_, kAbiSymbol));
  if (abi && *abi != MANGO_PLUGIN_ABI) {
    return errorf(ENOEXEC, "its libmango.h was of plugin interface {}, this is {}", *abi,
                  MANGO_PLUGIN_ABI);
  }
  keep_ = reinterpret_cast<mango_pcc_algo_keep_fn*>(::dlsym(library_, kKeepSymbol));
  return {};
}

Result<void> PccPlugin::check(const PccPlugin* old) const {
  if (!plugin_->name) return Error{ENOEXEC, "it has no name"};
  std::string_view name = plugin_->name;
  if (!valid_algorithm_name(name)) {
    return errorf(ENOEXEC,
                  "its name {} is not 1 to {} printable characters, or has a blank or one of {}, "
                  "begins with -, or is ., .., none or all",
                  quoted(name.substr(0, kMaxName)), kMaxName, kNoNameHas);
  }
  if (handle_.controller().find(name) && !(old && old->name_ == name))
    return errorf(EEXIST, "the name {} is in use", name);
  if (!plugin_->algo_fn && !plugin_->algo_event_fn) {
    return Error{ENOEXEC, "it has neither algo_fn nor algo_event_fn"};
  }
  if (plugin_->algo_event_fn && !known_metrics(plugin_->required_metrics)) {
    return errorf(ENOEXEC, "there is no such metric as required_metrics {:#x}",
                  plugin_->required_metrics);
  }
  return {};
}

Result<PccAlgorithm> PccPlugin::prepare(const PccPlugin* old) {
  std::optional<unsigned> slot = old ? old->slot_ : handle_.controller().free_slot();
  if (!slot) return errorf(ENOSPC, "all {} slots are taken", MANGO_PCC_MAX_SLOTS);
  slot_ = *slot;
  name_ = plugin_->name;
  PccAlgorithm algorithm{.name = name_,
                         .desc = plugin_->desc ? plugin_->desc : "",
                         .legacy = plugin_->algo_fn,
                         .event = plugin_->algo_event_fn,
                         .metrics = plugin_->required_metrics,
                         .initial = {},
                         .parameters = {},
                         .keep = keep_};
  if (!plugin_->init_params) return algorithm;
  PccHandle::Preparation preparation(handle_, slot_);
  size_t size = 0;
  try {
    block_ = plugin_->init_params(handle_.c_handle(), slot_, &size);
  } catch (...) {
    return Error{ENOEXEC, "its init_params threw an exception"};
  }
  if (!block_ && size > 0) return Error{ENOEXEC, "its init_params failed"};
  if (size > MANGO_PCC_MAX_PARAM_SIZE) {
    return errorf(ENOEXEC, "its parameters take {} octets, and may take {}", size,
                  MANGO_PCC_MAX_PARAM_SIZE);
  }
  auto* bytes = static_cast<const uint8_t*>(block_);
  if (size > 0) algorithm.initial.assign(bytes, bytes + size);
  for (auto& parameter : preparation.take_parameters()) {
    if (check_parameter(algorithm, parameter) != MANGO_STATUS_OK) {
      return bad_parameter(parameter, size);
    }
    algorithm.parameters.push_back(std::move(parameter));
  }
  return algorithm;
}

}  // namespace rocefs
