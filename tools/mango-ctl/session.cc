#include "tools/mango-ctl/session.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/text.h"

namespace rocefs {

ExitStatus exit_status(const Error& error) {
  switch (error.code) {
    case 0:
      return kDone;
    case ENODEV:
      return kNoDevice;
    case EBUSY:
    case EOPNOTSUPP:
      return kWrongState;
    default:
      return kFailed;
  }
}

Error wrong_state(std::string reason) {
  return {EBUSY, std::move(reason)};
}

void complain(std::string_view text) {
  std::string line(text);
  while (line.ends_with('\n')) line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "mango-ctl: error: %s\n", line.c_str());
}

bool Session::stream(std::string_view text) {
  streams();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

void Session::notice(std::string_view text) {
  std::fprintf(stderr, "mango-ctl: %.*s\n", static_cast<int>(text.size()), text.data());
}

void Session::warn(std::string_view text) {
  std::fprintf(stderr, "mango-ctl: warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

void Session::each_device(const std::string& device,
                          const std::function<Result<void>(const std::string& name)>& each) {
  if (device != "all") {
    if (!valid_entry_name(device) || !tree_.has("class/infiniband/" + device)) {
      return fail(errorf(ENODEV, "{}: no such device", device));
    }
    if (Result<void> done = each(device); !done) fail(done.error());
    return;
  }
  std::vector<std::string> devices = tree_.devices();
  if (devices.empty()) return fail(Error{ENODEV, "there is no device"});
  for (const std::string& name : devices) {
    if (Result<void> done = each(name); !done) {
      fail(errorf(done.error().code, "{}: {}", name, done.error().reason));
    }
  }
}

ExitStatus Session::finish() {
  if (failed()) {
    for (const Error& error : errors_) complain(error.reason);
    return misused_ ? kUsage : exit_status(errors_.front());
  }
  if (!streamed_) {
    if (json_) text_ = rows_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text_.data(), 1, text_.size(), stdout);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    complain(std::string("stdout: ") + std::strerror(errno));
    return kFailed;
  }
  return status_;
}

std::string device_file(const std::string& device, std::string_view file) {
  return fmt::format("class/infiniband/{}/{}", device, file);
}

std::string DeviceReader::text(std::string_view file) {
  Result<std::string> value = tree_.value(device_file(device_, file));
  if (value) return *value;
  if (outcome_) outcome_ = value.error();
  return "";
}

uint64_t DeviceReader::number(std::string_view file) {
  return std::strtoull(text(file).c_str(), nullptr, 10);
}

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Plain numbers, of which a status has thousands, do not take the parser.
Json number_or_text(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  if (error == std::errc() && stop == end && !leading_zero) return number;
  Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() ? parsed : Json(text);
}

Json name_or_null(const std::string& text) {
  if (text.empty() || text == "-" || text == "none") return nullptr;
  return text;
}

}  // namespace rocefs
