#include "tools/page/bundle.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "core/base/text.h"
#include "tools/page/page.h"

namespace rocefs {
namespace {

// Each module becomes a function of its own, so that names of two modules do not meet.
class Bundler {
 public:
  void add(std::string_view path) {
    const PageFile* file = page_file(path);
    if (!file || !added_.emplace(path).second) return;
    std::string body;
    std::vector<std::string> exported;
    std::string_view rest = file->content;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1);
      take_line(rest.substr(0, end), body, exported);
      rest.remove_prefix(end + 1);
    }
    script_ += fmt::format("modules['{}'] = (() => {{\n{}return {{{}}};\n}})();\n", path, body,
                           fmt::join(exported, ", "));
  }
  std::string script() && { return "'use strict';\nconst modules = {};\n" + std::move(script_); }

 private:
  void take_line(std::string_view line, std::string& body, std::vector<std::string>& exported) {
    constexpr std::string_view kImport = "import ", kExport = "export ";
    if (line.starts_with(kImport)) {
      const size_t names_end = line.find(" from '"), begin = line.find('\'') + 1;
      const std::string_view from = line.substr(begin, line.rfind('\'') - begin);
      add(from);
      std::string names(line.substr(kImport.size(), names_end - kImport.size()));
      constexpr std::string_view kAs = " as ";
      for (size_t at; (at = names.find(kAs)) != names.npos;) names.replace(at, kAs.size(), ": ");
      body += fmt::format("const {} = modules['{}'];\n", names, from);
      return;
    }
    if (line.starts_with(kExport)) {
      line.remove_prefix(kExport.size());
      exported.emplace_back(split(line, " (=")[1]);  // function, class or const, and a name
    }
    body += line;
    body += '\n';
  }

  std::set<std::string, std::less<>> added_;
  std::string script_;
};

}  // namespace

std::string bundle(std::string_view entry) {
  Bundler bundler;
  bundler.add(entry);
  return std::move(bundler).script();
}

}  // namespace rocefs
