#include "tools/mango-ctl/completion.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "tools/mango-ctl/pcc.h"

namespace rocefs {
namespace {

using Words = std::vector<std::string>;

// Position on a command line: the row so far, and the argument that takes the next word.
class Reader {
 public:
  explicit Reader(const CommandTable& table) : table_(table), row_(&table.root()) {}

  // False when no row begins like this.
  bool take(const std::string& word) {
    if (word.starts_with('-')) {
      option_ = option_named(word);
      if (option_ && option_->flag()) option_ = nullptr;
    } else if (const Argument* argument = expected()) {
      values_[argument->name] = word;
      if (!option_) ++taken_;
      if (!argument->repeated) option_ = nullptr;
    } else if (row_->noun()) {
      row_ = table_.find(row_->path.empty() ? word : row_->path + " " + word);
    } else {
      return false;
    }
    return row_ != nullptr;
  }

  // nullptr: a command's word or nothing may follow.
  const Argument* expected() const {
    if (option_) return option_;
    size_t skipped = 0;
    for (const Argument& argument : row_->arguments) {
      if (argument.positional() && skipped++ == taken_) return &argument;
    }
    return nullptr;
  }
  bool wants_value() const { return option_ && !option_->repeated; }

  Words options() const {
    Words all;
    for (const Argument* option : known_options()) all.push_back(longest(*option));
    return all;
  }
  Words words() const {
    Words all;
    if (!row_->noun()) return all;
    for (const Command* row : table_.words_behind(*row_)) all.push_back(row->word());
    return all;
  }
  std::string value(const std::string& name) const {
    auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
  }

 private:
  // "--count" of "-n,--count"; the vendor's, which is the first, of two long ones.
  static std::string longest(const Argument& option) {
    Words all = option.spellings();
    auto found = std::find_if(all.begin(), all.end(),
                              [](const std::string& one) { return one.starts_with("--"); });
    return found == all.end() ? all.front() : *found;
  }
  std::vector<const Argument*> known_options() const {
    std::vector<const Argument*> all;
    for (const Argument& option : common_options()) all.push_back(&option);
    for (const Argument& argument : row_->arguments) {
      if (!argument.positional()) all.push_back(&argument);
    }
    return all;
  }
  const Argument* option_named(const std::string& word) const {
    for (const Argument* option : known_options()) {
      Words all = option->spellings();
      if (std::find(all.begin(), all.end(), word) != all.end()) return option;
    }
    return nullptr;
  }

  const CommandTable& table_;
  const Command* row_;
  size_t taken_ = 0;  // positional arguments
  const Argument* option_ = nullptr;
  std::map<std::string, std::string> values_;
};

Words devices_of(const NicTree& tree, const std::string& device) {
  return device == "all" ? tree.devices() : Words{device};
}

Words algorithms(const NicTree& tree, const std::string& device) {
  std::set<std::string> all;
  for (const std::string& name : devices_of(tree, device)) {
    Result<std::string> names = tree.value(device_file(name, "pcc/algos"));
    if (!names) continue;
    for (std::string_view one : split(*names, " \t\n")) all.emplace(one);
  }
  return {all.begin(), all.end()};
}

// "KEY=" for each parameter, where the algorithm is applied.
Words assignments(const NicTree& tree, const std::string& device, const std::string& algorithm) {
  std::set<std::string> all;
  for (const std::string& name : devices_of(tree, device)) {
    Result<std::string> applied = tree.value(device_file(name, "pcc/algo"));
    if (!applied || *applied != algorithm) continue;
    for (const std::string& one : tree.counted(device_file(name, "pcc/params"))) {
      all.insert(one + "=");
    }
  }
  return {all.begin(), all.end()};
}

Words names_for(const Argument& argument, const Reader& reader) {
  if (!argument.choices.empty()) return argument.choices;
  if (argument.offer == Offer::kNothing) return {};
  if (argument.offer == Offer::kFiles) return {":files"};
  if (argument.offer == Offer::kDirectories) return {":directories"};
  Result<NicTree> tree = NicTree::find(reader.value("--mount"));
  if (!tree) return {};
  Words names;
  switch (argument.offer) {
    case Offer::kDevices:
      return tree->devices();
    case Offer::kDevicesOrAll:
      names = tree->devices();
      names.push_back("all");
      return names;
    case Offer::kAlgorithms:
      return algorithms(*tree, reader.value("device"));
    case Offer::kParameters:
      return assignments(*tree, reader.value("device"), reader.value("algorithm"));
    default:
      return tree->management_interfaces();
  }
}

}  // namespace

std::string completions(const CommandTable& table, const std::vector<std::string>& words) {
  Reader reader(table);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "=") continue;  // a word of its own in bash: --mount=DIR
    if (!reader.take(words[i])) return "";
  }
  Words offered;
  const Argument* argument = reader.expected();
  if (!words.empty() && words.back().starts_with('-') && !reader.wants_value()) {
    offered = reader.options();
  } else if (argument) {
    offered = names_for(*argument, reader);
  } else {
    offered = reader.words();
  }
  std::string lines;
  for (const std::string& one : offered) lines += one + "\n";
  return lines;
}

}  // namespace rocefs
