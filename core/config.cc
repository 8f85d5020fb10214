#include "core/config.h"

#include <arpa/inet.h>
#include <ini.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "core/kstrto.h"
#include "core/units.h"

namespace rocefs {
namespace {

constexpr size_t kMaxFile = 1 << 20;
// inih's own line buffer is INI_MAX_LINE (200) with its newline and NUL: it would cut longer lines.
constexpr size_t kMaxLine = 197;

// Names become directories, and links are named A-B.
bool valid_name(std::string_view name) {
  constexpr size_t kLongest = 63;
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), allowed);
}

Result<void> set_mac(std::string_view text, std::array<uint8_t, 6>& mac) {
  unsigned bytes[6];
  char rest;
  std::string copy(text);
  int count = std::sscanf(copy.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &bytes[0], &bytes[1],
                          &bytes[2], &bytes[3], &bytes[4], &bytes[5], &rest);
  if (count != 6 || copy.size() != 17) return errorf(EINVAL, "mac={}: six octets are wanted", text);
  if (bytes[0] & 1) return errorf(EINVAL, "mac={}: a multicast address", text);
  std::copy(bytes, bytes + 6, mac.begin());
  return {};
}

Result<void> set_pci(std::string_view text, std::string& pci) {
  unsigned domain, bus, slot, function;
  char rest;
  std::string copy(text);
  int count =
      std::sscanf(copy.c_str(), "%4x:%2x:%2x.%1u%c", &domain, &bus, &slot, &function, &rest);
  if (count != 4 || copy.size() != 12 || slot > 31 || function > 7) {
    return errorf(EINVAL, "pci={}: an address such as 0000:2b:00.0 is wanted", text);
  }
  pci = fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, bus, slot, function);
  return {};
}

template <class T>
Result<void> keep(std::string_view key, Result<T> value, T& out) {
  if (!value) return errorf(value.error().code, "{}: {}", key, value.error().reason);
  out = *value;
  return {};
}

// Collects what the file says; every error knows its line.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text) { config_.name = name; }

  Result<Config> read() {
    if (text_.find('\0') != text_.npos) return fail(0, "holds a NUL byte: not a text file");
    int rc = ini_parse_stream(&Reader::next_line, this, &Reader::on_pair, this);
    if (!error_.empty()) return fail(error_line_, error_);
    if (rc > 0) return fail(rc, "neither [section], key = value, nor a comment");
    if (rc < 0) return fail(0, "out of memory");
    if (Result<void> checked = check_graph(); !checked) return checked.error();
    return std::move(config_);
  }

 private:
  struct Section {
    std::string text;  // as between the brackets
    std::set<std::string> keys;
  };

  Error fail(int line, const std::string& why) {
    if (line == 0) return errorf(EINVAL, "{}: {}", config_.name, why);
    return errorf(EINVAL, "{}:{}: {}", config_.name, line, why);
  }
  bool refuse(int line, std::string why) {
    if (error_.empty()) {
      error_ = std::move(why);
      error_line_ = line;
    }
    return false;
  }

  // inih's reader: one call is one line, which is how we know where we are. Indentation goes, or
  // inih would take the line as the continuation of a value; a section without keys is a section.
  static char* next_line(char* buffer, int size, void* self) {
    auto* reader = static_cast<Reader*>(self);
    if (reader->at_ >= reader->text_.size()) return nullptr;
    ++reader->line_;
    size_t end = std::min(reader->text_.find('\n', reader->at_), reader->text_.size());
    std::string_view line = reader->text_.substr(reader->at_, end - reader->at_);
    reader->at_ = end + 1;
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.size() > kMaxLine || line.size() + 2 > static_cast<size_t>(size)) {
      reader->refuse(reader->line_, fmt::format("longer than {} characters", kMaxLine));
      line = {};
    }
    if (!line.empty() && line.front() == '[') reader->enter(line);
    std::copy(line.begin(), line.end(), buffer);
    buffer[line.size()] = '\n';
    buffer[line.size() + 1] = '\0';
    return buffer;
  }

  void enter(std::string_view line) {
    size_t close = line.find(']');
    if (close == line.npos) return;  // inih says so
    section_ = {std::string(line.substr(1, close - 1)), {}};
    std::istringstream words(section_.text);
    std::string kind, first, second, extra;
    words >> kind >> first >> second >> extra;
    if (kind == "clock" || kind == "knobs") {
      if (!first.empty()) refuse(line_, fmt::format("[{}] takes no name", kind));
    } else if (kind == "device" && second.empty()) {
      add_device(first);
    } else if (kind == "switch" && second.empty()) {
      if (claim_name(first)) topology_.switches.push_back({first});
    } else if (kind == "link" && !second.empty() && extra.empty()) {
      topology_.links.push_back({first, second});
      link_lines_.push_back(line_);
    } else {
      refuse(line_, fmt::format("unknown section [{}]: clock, device NAME, switch NAME, link A B "
                                "or knobs is wanted",
                                section_.text));
    }
    kind_ = kind;
    if (kind != "clock" && kind != "knobs") topology_given_ = true;
  }

  bool claim_name(const std::string& name) {
    if (!valid_name(name)) {
      return refuse(line_, fmt::format("{} cannot be a name", quoted(name)));
    }
    if (!names_.insert(name).second) {
      return refuse(line_, fmt::format("{} is there already", name));
    }
    return true;
  }

  // Everything that is not said differs from device to device.
  void add_device(const std::string& name) {
    if (!claim_name(name)) return;
    size_t n = topology_.devices.size() + 1;
    if (n > 200) return void(refuse(line_, "more than 200 devices"));
    DeviceSpec device;
    device.name = name;
    unsigned bus = n == 1 ? 0x2b : n == 2 ? 0xac : static_cast<unsigned>(n);
    if (bus == 0x2b && n != 1) bus = 0xf0;  // the numbers that the first two have taken
    if (bus == 0xac && n != 2) bus = 0xf1;
    device.pci = fmt::format("0000:{:02x}:00.0", bus);
    device.netdev = fmt::format("enp{}s0", bus);
    device.mac = {0x02, 0, 0x4c, 0x6d, 0x62, static_cast<uint8_t>(n)};
    device.ipv4 = {10, 77, 0, static_cast<uint8_t>(n)};
    topology_.devices.push_back(device);
    device_lines_.push_back(line_);
  }

  static int on_pair(void* self, const char* section, const char* key, const char* value) {
    auto* reader = static_cast<Reader*>(self);
    if (!reader->error_.empty()) return 1;
    Result<void> taken = reader->take(section, key, value);
    if (!taken) reader->refuse(reader->line_, taken.error().reason);
    return 1;
  }

  Result<void> take(std::string_view section, const std::string& key, std::string_view value) {
    if (section.empty()) return errorf(EINVAL, "{} stands before any section", key);
    if (!section_.keys.insert(key).second) return errorf(EINVAL, "{} is given twice", key);
    if (kind_ == "clock") return take_clock(key, value);
    if (kind_ == "device") return take_device(topology_.devices.back(), key, value);
    if (kind_ == "link") return take_link(topology_.links.back(), key, value);
    if (kind_ == "knobs") {
      config_.knobs.push_back({key, std::string(value), line_});
      return {};
    }
    return errorf(EINVAL, "unknown key {} in [{}]", key, section);
  }

  Result<void> take_clock(const std::string& key, std::string_view value) {
    if (key == "mode") {
      if (value != "real" && value != "virtual") {
        return errorf(EINVAL, "mode={}: real or virtual is wanted", value);
      }
      config_.clock = value == "real" ? ClockMode::kReal : ClockMode::kVirtual;
      return {};
    }
    uint64_t number = 0;
    if (key == "seed" || key == "dilation") {
      if (Result<void> kept = keep(key, kstrtou64(value, 0), number); !kept) return kept;
      if (key == "dilation" && (number < 1 || number > 1'000'000)) {
        return errorf(EINVAL, "dilation={}: 1 to 1000000 is wanted", value);
      }
      (key == "seed" ? config_.seed : config_.dilation) = number;
      return {};
    }
    return errorf(EINVAL, "unknown key {} in [clock]: mode, seed or dilation is wanted", key);
  }

  Result<void> take_device(DeviceSpec& device, const std::string& key, std::string_view value) {
    std::string text(value);
    if (key == "pci") return set_pci(value, device.pci);
    if (key == "mac") return set_mac(value, device.mac);
    if (key == "netdev") {
      if (!valid_name(value) || value.size() > 15) {
        return errorf(EINVAL, "netdev={}: not an interface's name", value);
      }
      device.netdev = text;
      return {};
    }
    if (key == "ip") {
      if (::inet_pton(AF_INET, text.c_str(), device.ipv4.data()) == 1) return {};
      return errorf(EINVAL, "ip={}: an IPv4 address is wanted", value);
    }
    if (key == "ip6") {
      device.ipv6.emplace();
      if (::inet_pton(AF_INET6, text.c_str(), device.ipv6->data()) == 1) return {};
      return errorf(EINVAL, "ip6={}: an IPv6 address is wanted", value);
    }
    if (key == "mtu") {
      for (uint32_t mtu : {256u, 512u, 1024u, 2048u, 4096u}) {
        if (text == std::to_string(mtu)) {
          device.mtu = mtu;
          return {};
        }
      }
      return errorf(EINVAL, "mtu={}: 256, 512, 1024, 2048 or 4096 is wanted", value);
    }
    return errorf(EINVAL, "unknown key {} in [device]: pci, netdev, mac, ip, ip6 or mtu is wanted",
                  key);
  }

  Result<void> take_link(LinkSpec& link, const std::string& key, std::string_view value) {
    if (key == "rate") {
      Result<void> kept = keep(key, parse_rate(value), link.rate_bps);
      if (kept && (link.rate_bps < 1'000'000 || link.rate_bps > 10'000'000'000'000)) {
        return errorf(EINVAL, "rate={} is outside 1M to 10T", value);
      }
      return kept;
    }
    if (key == "delay") {
      Result<void> kept = keep(key, parse_duration(value), link.delay_ns);
      if (kept && link.delay_ns > 10 * kSecond) {
        return errorf(EINVAL, "delay={} is longer than 10s", value);
      }
      return kept;
    }
    if (key == "loss") return keep(key, parse_probability(value), link.loss);
    if (key == "buffer") return keep(key, parse_size(value), link.buffer_bytes);
    if (key == "state") {
      if (value != "up" && value != "down") {
        return errorf(EINVAL, "state={}: up or down is wanted", value);
      }
      link.up = value == "up";
      return {};
    }
    return errorf(EINVAL, "unknown key {} in [link]: rate, delay, loss, buffer or state is wanted",
                  key);
  }

  Result<void> check_graph() {
    if (!topology_given_) return {};
    if (topology_.devices.empty()) return fail(0, "a topology without a device");
    std::set<std::string> cabled;
    std::set<std::pair<std::string, std::string>> pairs;
    for (size_t i = 0; i < topology_.links.size(); ++i) {
      const LinkSpec& link = topology_.links[i];
      int line = link_lines_[i];
      for (const std::string& end : {link.a, link.b}) {
        if (!names_.contains(end)) return fail(line, fmt::format("no device or switch {}", end));
        bool device = std::any_of(topology_.devices.begin(), topology_.devices.end(),
                                  [&](const DeviceSpec& spec) { return spec.name == end; });
        if (device && !cabled.insert(end).second) {
          return fail(line, fmt::format("the port of {} has its cable already", end));
        }
      }
      if (link.a == link.b) return fail(line, "a link from a thing to itself");
      if (!pairs.insert(std::minmax(link.a, link.b)).second) {
        return fail(line, fmt::format("{} and {} are linked already", link.a, link.b));
      }
    }
    std::set<std::string> taken;
    for (size_t i = 0; i < topology_.devices.size(); ++i) {
      const DeviceSpec& device = topology_.devices[i];
      int line = device_lines_[i];
      if (!cabled.contains(device.name)) {
        return fail(line, fmt::format("{} has no link", device.name));
      }
      std::string mac(device.mac.begin(), device.mac.end());
      std::string ip(device.ipv4.begin(), device.ipv4.end());
      std::pair<std::string, std::string> unique[] = {
          {"pci", device.pci}, {"netdev", device.netdev}, {"mac", "m" + mac}, {"ip", "i" + ip}};
      for (auto& [what, value] : unique) {
        if (!taken.insert(what + value).second) {
          return fail(line, fmt::format("{} has the {} of another device", device.name, what));
        }
      }
    }
    config_.topology = std::move(topology_);
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 0;
  Config config_;
  Topology topology_;
  bool topology_given_ = false;
  Section section_;
  std::string kind_;
  std::set<std::string> names_;
  std::vector<int> device_lines_, link_lines_;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

Result<Config> read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errorf(errno, "{}: {}", path, std::strerror(errno));
  std::string text(kMaxFile + 1, '\0');
  errno = 0;
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || errno == EISDIR) {
    return errorf(errno ? errno : EIO, "{}: {}", path, std::strerror(errno ? errno : EIO));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFile) return errorf(EFBIG, "{}: larger than {} bytes", path, kMaxFile);
  return parse_config(text, path);
}

}  // namespace rocefs
