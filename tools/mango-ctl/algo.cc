// rdma pcc algo: algorithms of a device's card; plugins are built, loaded and unloaded.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/text.h"
#include "tools/mango-ctl/child.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/include_directory.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/text_file.h"

namespace rocefs {
namespace {

void list_algorithms(Session& session, const DeviceOptions& options) {
  const std::string& device = options.device;
  session.each_device(device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    std::string names = files.text("pcc/algos");
    session.print((device == "all" ? name + ": " : "") + names + "\n");
    if (session.json()) {
      session.add({{"device", name},
                   {"algorithms", split(names, " \t\n")},
                   {"applied", name_or_null(files.text("pcc/algo"))}});
    }
    return files.outcome();
  });
}

// Loads plugins; the reasons of refusals stand in the file that starts a load. The last one is the
// result, those before it are reported here, behind `prefix`.
Result<void> load_one(Session& session, const std::string& name, bool force,
                      const std::string& prefix) {
  std::string path = device_file(name, "pcc/load");
  Result<void> done = session.tree().store(path, force ? "force" : "1");
  if (done || done.error().code != ENOEXEC) return done;
  Result<std::string> lines = session.tree().read(path);
  Result<std::string> directory = session.tree().value(device_file(name, "pcc/plugin_dir"));
  if (!lines || !directory) return done;
  std::string reason;
  for (std::string_view line : split(*lines, "\n")) {
    const size_t end = line.find(": refused: ");
    if (end == line.npos) continue;
    if (!reason.empty()) session.fail(Error{ENOEXEC, prefix + reason});
    reason = line;
    const std::string file = fmt::format("{}/{}", *directory, line.substr(0, end));
    // The last line may be about more files.
    if (::access(file.c_str(), F_OK) == 0) {
      reason += fmt::format("; each load tries {} again until it is removed", file);
    }
  }
  if (reason.empty()) return done;
  return Error{ENOEXEC, reason};
}

// Runs $CXX, which may contain options, or else the first compiler that exists.
Result<int> compile(const std::vector<std::string>& arguments) {
  const char* named = std::getenv("CXX");
  std::vector<std::vector<std::string>> compilers = {{"c++"}, {"g++"}, {"clang++"}};
  if (named && !split(named, " \t").empty()) {
    std::vector<std::string_view> words = split(named, " \t");
    compilers = {{words.begin(), words.end()}};
  }
  Result<int> status = Error{ENOENT, "no C++ compiler"};
  for (std::vector<std::string> words : compilers) {
    words.insert(words.end(), arguments.begin(), arguments.end());
    status = run_program(words);
    if (status || status.error().code != ENOENT) return status;
  }
  if (named) return status;
  return Error{ENOENT, "there is no C++ compiler: neither c++ nor g++ nor clang++; CXX names one"};
}

Result<void> cross_build(Session& session, const std::string& name, const std::string& source) {
  if (::access(source.c_str(), R_OK) != 0) {
    return errorf(errno, "{}: {}", source, std::strerror(errno));
  }
  std::string stem = std::filesystem::path(source).stem().string();
  if (!valid_entry_name(stem)) {
    return errorf(EINVAL, "{}: a plugin's name has letters, digits, '_', '-' and '.' only", source);
  }
  Result<std::string> directory = session.tree().value(device_file(name, "pcc/plugin_dir"));
  if (!directory) return directory.error();
  if (::mkdir(directory->c_str(), 0755) != 0 && errno != EEXIST) {
    return errorf(errno, "{}: {}", *directory, std::strerror(errno));
  }
  Result<Replacement> plugin = Replacement::of(*directory + "/" + stem + ".so", 0755);
  if (!plugin) return plugin.error();

  std::vector<std::string> arguments = {"-std=c++20", "-O2", "-g", "-shared", "-fPIC"};
  if (std::string include = include_directory(); !include.empty()) {
    arguments.push_back("-I" + include);
  }
  std::string absolute =
      std::filesystem::absolute(source).string();  // no option, even if it begins with a dash
  arguments.insert(arguments.end(), {"-o", plugin->path(), "-x", "c++", absolute});
  Result<int> status = compile(arguments);
  if (!status) return status.error();
  if (*status != 0) return errorf(ENOEXEC, "{}: the compiler refused it", source);
  return plugin->commit();
}

struct LoadOptions {
  std::string device;
  bool force = false;
};

void load_plugins(Session& session, const LoadOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    return load_one(session, name, options.force, options.device == "all" ? name + ": " : "");
  });
}

struct UnloadOptions {
  std::string device, algorithm;
};

void unload_algorithm(Session& session, const UnloadOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    return session.tree().store(device_file(name, "pcc/unload"), options.algorithm);
  });
}

struct BuildOptions {
  std::string file, device;
};

void build_plugin(Session& session, const BuildOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    return cross_build(session, name, options.file);
  });
}

}  // namespace

std::vector<Command> algo_commands() {
  return {
      Command{.path = "rdma pcc algo",
              .summary = "Algorithms of a device, built-in ones and plugins",
              .examples = {"rdma pcc algo list mb_0", "rdma pcc algo cross-build ./my_algo.cc mb_0",
                           "rdma pcc algo load mb_0", "rdma pcc algo unload mb_0 my_custom_algo"}},
      CommandOf<DeviceOptions>{
          .path = "rdma pcc algo list",
          .summary = "List the algorithms that can be applied",
          .manual =
              "Built-in ones come first, then plugins in the order in which they were loaded.",
          .examples = {"rdma pcc algo list mb_0"},
          .arguments = {device_or_all<DeviceOptions>()},
          .run = list_algorithms},
      CommandOf<LoadOptions>{
          .path = "rdma pcc algo load",
          .summary = "Load each deployed plugin that is not loaded or has changed",
          .manual =
              "Each is tried in a process of its own first. Plugins that are refused are reported "
              "with the reason, and again by each load until their files are removed from "
              "pcc/plugin_dir; the others are loaded all the same, and what was loaded before "
              "stays. Queue pairs that run an algorithm which is loaded again go on with the new "
              "one: their windows stay, and so do values set by `rdma pcc update-params`; other "
              "state does if the plugin has `mango_pcc_algo_keep`, see libmango(3).",
          .examples = {"rdma pcc algo load mb_0"},
          .arguments = {device_or_all<LoadOptions>(),
                        {&LoadOptions::force,
                         {.name = "--force", .help = "load those that have not changed, too"}}},
          .run = load_plugins},
      CommandOf<UnloadOptions>{
          .path = "rdma pcc algo unload",
          .summary = "Unload an algorithm that is not applied",
          .examples = {"rdma pcc algo unload mb_0 my_custom_algo"},
          .arguments = {device_or_all<UnloadOptions>(), algorithm_argument<UnloadOptions>()},
          .run = unload_algorithm},
      CommandOf<BuildOptions>{
          .path = "rdma pcc algo cross-build",
          .summary = "Compile a plugin and deploy it",
          .manual =
              "The plugin is put where the card looks for plugins; `rdma pcc algo load` loads it. "
              "The compiler is $CXX, else c++, g++ or clang++. libmango.h is taken from "
              "$MANGO_INCLUDE, else from the include directory beside that of this program.",
          .examples = {"rdma pcc algo cross-build ./my_algo.cc mb_0"},
          .arguments = {{&BuildOptions::file,
                         {.name = "file", .help = "source in C++", .offer = Offer::kFiles}},
                        device_or_all<BuildOptions>()},
          .run = build_plugin},
  };
}

}  // namespace rocefs
