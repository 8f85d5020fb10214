// Datagrams of RDMA netlink, answered from the files of a small /sys: each answer is a whole
// message, with attributes within it, to the asker's port and with a request's number; a datagram
// that is cut short has the same answers as its whole requests.
//
// An input is a length of two bytes, so many bytes of kernel/debug/rocefs/resources, and the
// datagram.
#include <fcntl.h>
#include <linux/netlink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "test/fuzz/fuzz.h"
#include "tools/rocefs/netlink/rdma_answers.h"

using namespace rocefs;

namespace {

constexpr uint32_t kPort = 4711;

// A root directory with two devices, the second of which has two ports.
class SmallRoot {
 public:
  SmallRoot() {
    std::string name = (std::filesystem::temp_directory_path() / "rocefs-fuzz-XXXXXX").string();
    fuzz::require(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    add_device("mb_0", 0, 1);
    add_device("mb_1", 1, 2);
    write("class/misc/rdma_cm/dev", "10:122\n");
    write("class/infiniband_mad/abi_version", "5\n");
    resources("");
    directory_ = Fd(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    fuzz::require(bool(directory_));
  }
  ~SmallRoot() { std::filesystem::remove_all(root_); }

  void resources(std::string_view text) { write("kernel/debug/rocefs/resources", text); }
  RdmaView view() const { return RdmaView(directory_.get()); }

 private:
  void write(const std::string& path, std::string_view text) {
    std::filesystem::path file = root_ / "sys" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void add_device(const std::string& name, unsigned number, unsigned ports) {
    std::string at = "class/infiniband/" + name, index = std::to_string(number);
    write(at + "/node_guid", "0200:4cff:fe6d:620" + index + "\n");
    write(at + "/node_type", "1: CA\n");
    write(at + "/fw_ver", "1.0\n");
    write(at + "/device/infiniband_verbs/uverbs" + index + "/dev", "231:19" + index + "\n");
    write("class/infiniband_verbs/uverbs" + index + "/ibdev", name + "\n");
    for (unsigned port = 1; port <= ports; ++port) {
      std::string below = at + "/ports/" + std::to_string(port);
      write(below + "/state", "4: ACTIVE\n");
      write(below + "/phys_state", "5: LinkUp\n");
      write(below + "/gid_attrs/ndevs/0", "enp43s" + index + "\n");
      write(below + "/hw_counters/np_cnp_sent", "18446744073709551615\n");
      write(at + "/device/infiniband_mad/umad" + std::to_string(number + port - 1) + "/dev", "x\n");
    }
  }

  std::filesystem::path root_;
  Fd directory_;
};

SmallRoot& small_root() {
  static SmallRoot one;
  return one;
}

// Attributes of a known message: each whole, and the last one ends with the message.
void check_attributes(std::string_view rest) {
  while (!rest.empty()) {
    nlattr header;
    fuzz::require(rest.size() >= sizeof header);
    std::memcpy(&header, rest.data(), sizeof header);
    fuzz::require(header.nla_len >= sizeof header && header.nla_len <= rest.size());
    if (header.nla_type & NLA_F_NESTED) {
      check_attributes(rest.substr(sizeof header, header.nla_len - sizeof header));
    }
    rest.remove_prefix(std::min<size_t>(NLA_ALIGN(header.nla_len), rest.size()));
  }
}

void check(const std::string& message, const std::set<uint32_t>& sequences) {
  nlmsghdr header;
  fuzz::require(message.size() >= sizeof header);
  std::memcpy(&header, message.data(), sizeof header);
  fuzz::require(header.nlmsg_len == message.size() && header.nlmsg_pid == kPort);
  fuzz::require(sequences.count(header.nlmsg_seq) != 0);
  std::string_view body = std::string_view(message).substr(sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    fuzz::require(body.size() == sizeof error);
    std::memcpy(&error, body.data(), sizeof error);
    fuzz::require(error.error <= 0);
  } else if (header.nlmsg_type != NLMSG_DONE) {
    check_attributes(body);
  }
}

// Numbers of the requests in a datagram; `whole` gets the octets that they take.
std::set<uint32_t> sequences_of(std::string_view datagram, size_t& whole) {
  std::set<uint32_t> sequences;
  for (whole = 0; datagram.size() - whole >= sizeof(nlmsghdr);) {
    nlmsghdr header;
    std::memcpy(&header, &datagram[whole], sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size() - whole) break;
    sequences.insert(header.nlmsg_seq);
    whole = std::min<size_t>(whole + NLMSG_ALIGN(header.nlmsg_len), datagram.size());
  }
  return sequences;
}

std::vector<std::string> answers_to(std::string_view datagram, const RdmaView& view, int& error) {
  std::vector<std::string> answers;
  auto take = [&](std::string message) {
    answers.push_back(std::move(message));
    return true;
  };
  error = answer_rdma_netlink(datagram, kPort, view, take);
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t length = std::min<size_t>(data[0] << 8 | data[1], size - 2);
  std::string_view datagram = input.substr(2 + length);
  small_root().resources(input.substr(2, length));
  RdmaView view = small_root().view();
  size_t whole;
  std::set<uint32_t> sequences = sequences_of(datagram, whole);
  int error, again;
  std::vector<std::string> answers = answers_to(datagram, view, error);
  fuzz::require(error == 0 || (error == ENOBUFS && answers.empty()));
  for (const std::string& answer : answers) check(answer, sequences);
  fuzz::require(answers_to(datagram.substr(0, whole), view, again) == answers && again == error);
  return 0;
}
