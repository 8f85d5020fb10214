// rdma pcc algo: the algorithms that a device's card has, and how it gets others.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/text.h"
#include "tools/mango-ctl/child.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/text_file.h"

namespace rocefs {
namespace {

void list(Session& session, const std::string& device) {
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

// The file of the last load says what became of each plugin.
Result<void> load_one(Session& session, const std::string& name) {
  std::string path = device_file(name, "pcc/load");
  Result<void> done = session.tree().store(path, "1");
  if (done || done.error().code != ENOEXEC) return done;
  Result<std::string> lines = session.tree().read(path);
  if (!lines) return done;
  std::string reason;
  for (std::string_view line : split(*lines, "\n")) {
    if (line.find(": refused: ") == line.npos) continue;
    if (!reason.empty()) session.fail(Error{ENOEXEC, std::move(reason)});
    reason = line;
  }
  if (reason.empty()) return done;
  return Error{ENOEXEC, reason};
}

// The directory of libmango.h; empty where only the compiler may know it. It is beside the
// directory of this program, in the build tree as where it is installed.
std::string include_directory() {
  const char* named = std::getenv("MANGO_INCLUDE");
  if (named && *named) return named;
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::path beside = program.parent_path().parent_path() / "include";
  return std::filesystem::exists(beside / "libmango.h", failed) ? beside.string() : "";
}

// $CXX, which may have words behind it, or the first that there is.
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

  std::vector<std::string> arguments = {"-std=c++20", "-O2", "-shared", "-fPIC"};
  if (std::string include = include_directory(); !include.empty()) {
    arguments.push_back("-I" + include);
  }
  std::string absolute = std::filesystem::absolute(source).string();  // one may begin with a dash
  arguments.insert(arguments.end(), {"-o", plugin->path(), "-x", "c++", absolute});
  Result<int> status = compile(arguments);
  if (!status) return status.error();
  if (*status != 0) return errorf(ENOEXEC, "{}: the compiler refused it", source);
  return plugin->commit();
}

struct Words {
  std::string device, word;
};

}  // namespace

void add_algo_commands(CommandLine& line, CLI::App& pcc) {
  CLI::App& algo =
      line.group(pcc, "algo", "the algorithms of a device",
                 "rdma pcc algo list mb_0\nrdma pcc algo cross-build ./my_algo.cc mb_0\n"
                 "rdma pcc algo load mb_0\nrdma pcc algo unload mb_0 my_custom_algo");

  auto listed = line.options<std::string>();
  CLI::App& list_command =
      line.command(algo, "list", "those that can be applied", "rdma pcc algo list mb_0",
                   [=](Session& session) { list(session, *listed); });
  add_device_or_all(list_command, *listed);

  auto loaded = line.options<std::string>();
  CLI::App& load_command =
      line.command(algo, "load", "load what has been deployed and is not loaded yet",
                   "rdma pcc algo load mb_0", [=](Session& session) {
                     session.each_device(
                         *loaded, [&](const std::string& name) { return load_one(session, name); });
                   });
  add_device_or_all(load_command, *loaded);

  auto unloaded = line.options<Words>();
  CLI::App& unload_command =
      line.command(algo, "unload", "forget one that is not applied",
                   "rdma pcc algo unload mb_0 my_custom_algo", [=](Session& session) {
                     session.each_device(unloaded->device, [&](const std::string& name) {
                       return session.tree().store(device_file(name, "pcc/unload"), unloaded->word);
                     });
                   });
  add_device_or_all(unload_command, unloaded->device);
  unload_command.add_option("algorithm", unloaded->word, "its name")->required()->type_name("");

  auto built = line.options<Words>();
  CLI::App& build_command =
      line.command(algo, "cross-build", "compile a plugin and deploy it; $CXX names the compiler",
                   "rdma pcc algo cross-build ./my_algo.cc mb_0", [=](Session& session) {
                     session.each_device(built->device, [&](const std::string& name) {
                       return cross_build(session, name, built->word);
                     });
                   });
  build_command.add_option("file", built->word, "its source, in C++")->required()->type_name("");
  add_device_or_all(build_command, built->device);
}

}  // namespace rocefs
