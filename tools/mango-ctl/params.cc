// rdma pcc list-params and update-params.
#include <cerrno>
#include <cstring>
#include <set>

#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/text_file.h"

namespace rocefs {
namespace {

struct Parameter {
  std::string name, value;
};

// One flat object of numbers and booleans. Numbers keep their text; a boolean is a word, which the
// daemon takes for a boolean parameter alone.
class FlatObject : public nlohmann::json_sax<Json> {
 public:
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& why() const { return why_; }

  bool null() override { return refuse("null"); }
  bool boolean(bool value) override { return take(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return take(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return take(text); }
  bool string(string_t&) override { return refuse("a text"); }
  bool binary(binary_t&) override { return refuse("binary"); }
  bool start_object(size_t) override {
    if (inside_) return refuse("an object");
    return inside_ = true;
  }
  bool start_array(size_t) override { return refuse("a list"); }
  bool end_object() override { return true; }
  bool end_array() override { return true; }
  bool key(string_t& name) override {
    if (name.empty() || name.find_first_of(" \t\r\n=") != name.npos) {
      why_ = fmt::format("'{}': not the name of a parameter", name);
      return false;
    }
    if (!names_.insert(name).second) {
      why_ = fmt::format("{}: given twice", name);
      return false;
    }
    parameters_.push_back({name, ""});
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // Strips "[json.exception.parse_error.101] " from "… parse error at line 2, column 3: …".
    std::string_view text = error.what();
    size_t end = text.find("] ");
    why_ = text.substr(end == text.npos ? 0 : end + 2);
    return false;
  }

 private:
  bool take(std::string value) {
    if (!inside_) return refuse("a value");
    parameters_.back().value = std::move(value);
    return true;
  }
  bool refuse(const char* what) {
    why_ = inside_ ? fmt::format("{}: a number or a boolean is wanted, not {}",
                                 parameters_.back().name, what)
                   : fmt::format("an object of parameters is wanted, not {}", what);
    return false;
  }

  bool inside_ = false;
  std::vector<Parameter> parameters_;
  std::set<std::string> names_;
  std::string why_;
};

Result<std::vector<Parameter>> parameters_in(const std::string& file, const std::string& text) {
  FlatObject object;
  if (!Json::sax_parse(text, &object)) return errorf(EINVAL, "{}: {}", file, object.why());
  if (object.parameters().empty()) return errorf(EINVAL, "{}: no parameter", file);
  return object.parameters();
}

struct ListOptions {
  std::string device, algorithm;
};

struct UpdateOptions {
  std::string device, algorithm, json_file;
  std::vector<std::string> parameters;
};

Result<std::vector<Parameter>> assignments(const UpdateOptions& options) {
  std::vector<Parameter> all;
  std::set<std::string> names;
  for (const std::string& text : options.parameters) {
    size_t equals = text.find('=');
    Parameter one{text.substr(0, equals), text.substr(equals + 1)};
    if (!names.insert(one.name).second) return errorf(EINVAL, "{}: given twice", one.name);
    all.push_back(std::move(one));
  }
  return all;
}

std::string order_of(const std::string& algorithm, const std::vector<Parameter>& parameters) {
  std::string order = algorithm;
  for (const Parameter& one : parameters) order += fmt::format(" {}={}", one.name, one.value);
  return order;
}

// Present values of a device's parameters of these names; without those that it does not have.
std::vector<Parameter> present(const NicTree& tree, const std::string& device,
                               std::vector<Parameter> parameters) {
  std::erase_if(parameters, [&](Parameter& one) {
    Result<std::string> value = tree.value(device_file(device, "pcc/params/" + one.name));
    if (value) one.value = *value;
    return !value;
  });
  return parameters;
}

// Updates `all`: the active devices that run this algorithm. Only a device itself can tell whether
// it takes the values: after a refusal, those that had taken them get theirs back.
void update_active(Session& session, const std::string& algorithm,
                   const std::vector<Parameter>& parameters) {
  std::vector<std::string> targets;
  session.each_device("all", [&](const std::string& name) -> Result<void> {
    Result<bool> active = pcc_is_active(session.tree(), name);
    if (!active) return active.error();
    if (!*active) return {};
    Result<std::string> applied = session.tree().value(device_file(name, "pcc/algo"));
    if (!applied) return applied.error();
    if (*applied != algorithm) {
      session.notice(fmt::format("{}: skipped, it runs {}", name, *applied));
      return {};
    }
    targets.push_back(name);
    return {};
  });
  if (session.failed()) return;
  if (targets.empty()) {
    return session.fail(wrong_state(fmt::format("no active device runs {}", algorithm)));
  }
  std::vector<std::pair<std::string, std::string>> undo;  // devices, and what to store
  auto update = [&](const std::string& name, const std::string& order) {
    return session.tree().store(device_file(name, "pcc/update"), order);
  };
  for (const std::string& name : targets) {
    std::string before = order_of(algorithm, present(session.tree(), name, parameters));
    if (Result<void> done = update(name, order_of(algorithm, parameters)); !done) {
      session.fail(errorf(done.error().code, "{}: {}", name, done.error().reason));
      break;
    }
    undo.emplace_back(name, std::move(before));
  }
  if (!session.failed()) return;
  for (const auto& [name, before] : undo) {
    Result<void> done = update(name, before);
    if (!done) session.fail(errorf(done.error().code, "{}: {}", name, done.error().reason));
  }
}

void update_parameters(Session& session, const UpdateOptions& options) {
  const std::string& file = options.json_file;
  Result<std::string> text = file.empty() ? std::string() : read_text(file);
  if (!text) return session.fail(text.error());
  Result<std::vector<Parameter>> parameters =
      file.empty() ? assignments(options) : parameters_in(file, *text);
  if (!parameters) return session.misused(parameters.error());
  if (options.device == "all") return update_active(session, options.algorithm, *parameters);
  const std::string order = order_of(options.algorithm, *parameters);
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<void> done = session.tree().store(device_file(name, "pcc/update"), order);
    // The file's EINVAL is that of any name or value which it does not take.
    if (!done && done.error().code == EINVAL &&
        applied_to(session.tree(), name) != options.algorithm &&
        must_be_loaded(session.tree(), name, options.algorithm)) {
      return wrong_state(done.error().reason);
    }
    return done;
  });
}

void list_parameters(Session& session, const ListOptions& options) {
  const std::string& algorithm = options.algorithm;
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    const NicTree& tree = session.tree();
    Result<std::string> applied = tree.value(device_file(name, "pcc/algo"));
    if (!applied) return applied.error();
    if (*applied != algorithm) {
      if (Result<void> loaded = must_be_loaded(tree, name, algorithm); !loaded) return loaded;
      return wrong_state(*applied == "none" ? fmt::format("no algorithm is applied to {}", name)
                                            : fmt::format("{} is not applied to {}, but {}",
                                                          algorithm, name, *applied));
    }
    // Directory order is the order of registration.
    std::string directory = device_file(name, "pcc/params");
    Result<std::vector<std::string>> names = tree.names(directory);
    if (!names) return names.error();
    Json rows = Json::array();
    for (const std::string& parameter : *names) {
      if (!session.json()) continue;
      Result<std::string> value = tree.value(directory + "/" + parameter);
      if (!value) return value.error();
      rows.push_back({{"name", parameter}, {"value", number_or_text(*value)}});
    }
    session.print(fmt::format("{}\n", fmt::join(*names, " ")));
    session.add({{"device", name}, {"algorithm", algorithm}, {"parameters", rows}});
    return {};
  });
}

std::string check_assignment(const std::string& text) {
  size_t equals = text.find('=');
  bool good = equals != text.npos && equals > 0 && equals + 1 < text.size() &&
              text.find_first_of(" \t\r\n") == text.npos;
  return good ? "" : fmt::format("'{}': KEY=VALUE is wanted", text);
}

}  // namespace

std::vector<Command> params_commands() {
  return {
      CommandOf<ListOptions>{
          .path = "rdma pcc list-params",
          .summary = "List the parameters of the applied algorithm",
          .manual = "They stand in the order in which the algorithm registers them. --json has "
                    "their values too.",
          .examples = {"rdma pcc list-params mb_0 dcqcn", "--json rdma pcc list-params mb_0 dcqcn"},
          .arguments = {one_device<ListOptions>(),
                        algorithm_argument<ListOptions>("the applied algorithm")},
          .run = list_parameters},
      CommandOf<UpdateOptions>{
          .path = "rdma pcc update-params",
          .summary = "Change parameters, also while PCC is active",
          .manual = "All values are taken, or none, on all devices. `all` is every active device "
                    "that runs the algorithm.",
          .examples = {"rdma pcc update-params mb_0 dcqcn --param wai=80 --param g=0.0625",
                       "rdma pcc update-params all dcqcn --params_json dcqcn.json"},
          .arguments = {device_or_all<UpdateOptions>(
                            "its name, mb_0, or all that run the algorithm"),
                        algorithm_argument<UpdateOptions>("the applied algorithm"),
                        {&UpdateOptions::parameters,
                         {.name = "--param",
                          .value = "KEY=VALUE",
                          .help = "one assignment or several; can be given again",
                          .offer = Offer::kParameters,
                          .alternative = true,
                          .check = check_assignment}},
                        {&UpdateOptions::json_file,
                         {.name = "--params_json,--params-json",
                          .value = "FILE",
                          .help = "one flat JSON object of numbers and booleans",
                          .offer = Offer::kFiles,
                          .alternative = true}}},
          .run = update_parameters},
  };
}

}  // namespace rocefs
