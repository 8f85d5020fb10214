// Answers of RDMA netlink: from a made-up /sys, to requests good and bad.
#include "tools/rocefs/netlink/rdma_answers.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "test/catch.h"
#include "test/here.h"
#include "test/skip.h"
#include "tools/rocefs/netlink/message.h"

using namespace rocefs;

namespace {

namespace files = std::filesystem;

class Sys {
 public:
  Sys() : root_(files::temp_directory_path() / ("rocefs-sys-" + std::to_string(::getpid()))) {
    std::string device = "class/infiniband/mb_3";
    put(device + "/node_guid", "0200:4cff:fe6d:6201");
    put(device + "/sys_image_guid", "0200:4cff:fe6d:6202");
    put(device + "/fw_ver", "1.0.0");
    put(device + "/node_type", "1: CA");
    put(device + "/ports/1/state", "4: ACTIVE");
    put(device + "/ports/1/phys_state", "5: LinkUp");
    put(device + "/ports/1/gid_attrs/ndevs/0", "enp3s0");
    put(device + "/ports/1/hw_counters/out_of_sequence", "17");
    put(device + "/ports/1/hw_counters/lifespan", "10");
    put(device + "/device/infiniband_verbs/uverbs5/dev", "231:193");
    put(device + "/device/infiniband_verbs/uverbs5/abi_version", "1");
    put("class/infiniband_verbs/uverbs5/ibdev", "mb_3");
    put("class/net/enp3s0/ifindex", "7");
    put("class/misc/rdma_cm/dev", "10:58");
    put("class/misc/rdma_cm/abi_version", "4");
    std::string resources = "mb_3 ctx ctxn=1 pid=9 comm=x\nmb_4 ctx ctxn=1 pid=9\n";
    for (int i = 0; i < 300; ++i) {
      resources +=
          "mb_3 qp lqpn=" + std::to_string(100 + i) +
          " port=1 type=2 state=3 sq_psn=5 rqpn=17 rq_psn=6 path_mig_state=0 pdn=2 pid=9\n";
    }
    put("kernel/debug/rocefs/resources", resources);
    directory_ = Fd(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~Sys() { files::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    files::path at = root_ / "sys" / path;
    files::create_directories(at.parent_path());
    std::ofstream(at) << text << "\n";
  }
  const files::path& root() const { return root_; }
  int directory() const { return directory_.get(); }

 private:
  const files::path root_;
  Fd directory_;
};

std::string request(uint16_t type, uint16_t flags,
                    const std::vector<std::pair<uint16_t, uint32_t>>& attributes = {}) {
  NetlinkMessage message(type, NLM_F_REQUEST | flags, 42, 0);
  for (auto [attribute, value] : attributes) message.u32(attribute, value);
  return std::move(message).finish();
}
std::string ask(uint16_t command, uint16_t flags = 0,
                const std::vector<std::pair<uint16_t, uint32_t>>& attributes = {}) {
  return request(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags, attributes);
}

nlmsghdr header_of(const std::string& message) {
  nlmsghdr header;
  std::memcpy(&header, message.data(), sizeof header);
  CHECK(header.nlmsg_len == message.size());
  CHECK(header.nlmsg_seq == 42);
  CHECK(header.nlmsg_pid == 1234);
  return header;
}
std::string_view attributes_of(const std::string& message) {
  return std::string_view(message).substr(NLMSG_HDRLEN);
}
// The errno of an error message; -1 for another message.
int error_of(const std::string& message) {
  if (header_of(message).nlmsg_type != NLMSG_ERROR) return -1;
  nlmsgerr body;
  std::memcpy(&body, message.data() + NLMSG_HDRLEN, sizeof body);
  return -body.error;
}

struct Asked {
  Sys sys;
  size_t room = 1000;
  int error_of_send = 0;
  std::vector<std::string> of(const std::string& datagram) {
    std::vector<std::string> answers;
    auto take = [&](std::string message) {
      answers.push_back(std::move(message));
      return answers.size() < room;
    };
    error_of_send = answer_rdma_netlink(datagram, 1234, RdmaView(sys.directory()), take);
    return answers;
  }
  int error(const std::string& datagram) {
    auto answers = of(datagram);
    REQUIRE(answers.size() == 1);
    return error_of(answers[0]);
  }
};

constexpr std::pair<uint16_t, uint32_t> kDevice{RDMA_NLDEV_ATTR_DEV_INDEX, 5};
constexpr std::pair<uint16_t, uint32_t> kPort{RDMA_NLDEV_ATTR_PORT_INDEX, 1};

}  // namespace

#define NEEDS_OPENAT2() \
  if (!test::has_openat2()) test::skip("no openat2(2) here")

TEST_CASE("RDMA netlink: a device, by its index and in a dump") {
  NEEDS_OPENAT2();
  Asked asked;
  auto one = asked.of(ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK, {kDevice}));
  REQUIRE(one.size() == 2);
  CHECK(error_of(one[1]) == 0);
  CHECK((header_of(one[0]).nlmsg_flags & NLM_F_MULTI) == 0);
  auto attributes = attributes_of(one[0]);
  CHECK(attribute_text(attributes, RDMA_NLDEV_ATTR_DEV_NAME) == "mb_3");
  CHECK(attribute_number(attributes, RDMA_NLDEV_ATTR_DEV_INDEX) == 5);
  CHECK(attribute_number(attributes, RDMA_NLDEV_ATTR_NODE_GUID) == 0x02004cfffe6d6201);
  CHECK(attribute_number(attributes, RDMA_NLDEV_ATTR_DEV_NODE_TYPE) == 1);
  CHECK(attribute_number(attributes, RDMA_NLDEV_ATTR_PORT_INDEX) == 1);
  CHECK(attribute_number(attributes, RDMA_NLDEV_ATTR_CAP_FLAGS) ==
        (IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT | IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
         IB_UVERBS_DEVICE_RC_RNR_NAK_GEN | IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_XRC |
         IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B | uint64_t{1} << 40));  // ATOMIC_WRITE
  auto all = asked.of(ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP));
  REQUIRE(all.size() == 2);
  CHECK((header_of(all[0]).nlmsg_flags & NLM_F_MULTI) != 0);
  CHECK(attribute_text(attributes_of(all[0]), RDMA_NLDEV_ATTR_FW_VERSION) == "1.0.0");
  CHECK(header_of(all[1]).nlmsg_type == NLMSG_DONE);
}

TEST_CASE("RDMA netlink: a port, its counters and its character device") {
  NEEDS_OPENAT2();
  Asked asked;
  auto port = asked.of(ask(RDMA_NLDEV_CMD_PORT_GET, 0, {kDevice, kPort}));
  REQUIRE(port.size() == 1);
  CHECK(attribute_number(attributes_of(port[0]), RDMA_NLDEV_ATTR_PORT_STATE) == 4);
  CHECK(attribute_number(attributes_of(port[0]), RDMA_NLDEV_ATTR_PORT_PHYS_STATE) == 5);
  CHECK(attribute_text(attributes_of(port[0]), RDMA_NLDEV_ATTR_NDEV_NAME) == "enp3s0");
  CHECK(attribute_number(attributes_of(port[0]), RDMA_NLDEV_ATTR_NDEV_INDEX) == 7);
  auto counters = asked.of(ask(RDMA_NLDEV_CMD_STAT_GET, 0, {kDevice, kPort}));
  REQUIRE(counters.size() == 1);
  CHECK(counters[0].find("out_of_sequence") != counters[0].npos);
  CHECK(counters[0].find("lifespan") == counters[0].npos);
  // No counter is optional, and none is bound to a queue pair.
  auto states = asked.of(ask(RDMA_NLDEV_CMD_STAT_GET_STATUS, NLM_F_ACK, {kDevice, kPort}));
  REQUIRE(states.size() == 2);
  CHECK(error_of(states[1]) == 0);
  CHECK(states[0].find("out_of_sequence") != states[0].npos);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_STAT_GET_STATUS, 0, {kDevice})) == EINVAL);
  constexpr std::pair<uint16_t, uint32_t> kOfQps{RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP};
  auto mode = asked.of(
      ask(RDMA_NLDEV_CMD_STAT_GET, 0, {kDevice, kPort, kOfQps, {RDMA_NLDEV_ATTR_STAT_MODE, 0}}));
  REQUIRE(mode.size() == 1);
  CHECK(attribute_number(attributes_of(mode[0]), RDMA_NLDEV_ATTR_STAT_MODE) ==
        RDMA_COUNTER_MODE_NONE);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_STAT_GET, 0, {kDevice, kPort, kOfQps})) == ENOENT);

  auto character_device = [&](const char* type) {
    NetlinkMessage message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV),
                           NLM_F_REQUEST, 42, 0);
    message.text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, type);
    message.u32(RDMA_NLDEV_ATTR_DEV_INDEX, 5);
    return asked.of(std::move(message).finish());
  };
  auto verbs = character_device("uverbs");
  REQUIRE(verbs.size() == 1);
  CHECK(attribute_text(attributes_of(verbs[0]), RDMA_NLDEV_ATTR_CHARDEV_NAME) == "uverbs5");
  CHECK(attribute_number(attributes_of(verbs[0]), RDMA_NLDEV_ATTR_CHARDEV) == (231 << 8 | 193));
  auto cm = character_device("rdma_cm");
  REQUIRE(cm.size() == 1);
  CHECK(attribute_number(attributes_of(cm[0]), RDMA_NLDEV_ATTR_CHARDEV_ABI) == 4);
  CHECK(error_of(character_device("issm")[0]) == EOPNOTSUPP);
}

TEST_CASE("RDMA netlink: a request for one device reads the files of no other") {
  NEEDS_OPENAT2();
  Asked asked;
  asked.sys.put("class/infiniband/mb_4/device/infiniband_verbs/uverbs6/dev", "231:194");
  Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  for (const char* path : {"class/infiniband", "class/infiniband/mb_4/device/infiniband_verbs"}) {
    std::string at = asked.sys.root() / "sys" / path;
    REQUIRE(::inotify_add_watch(watch.get(), at.c_str(), IN_OPEN) >= 0);
  }
  auto was_read = [&] {
    char events[4096];
    return ::read(watch.get(), events, sizeof events) > 0;
  };
  CHECK(asked.of(ask(RDMA_NLDEV_CMD_GET, 0, {kDevice})).size() == 1);
  CHECK(asked.of(ask(RDMA_NLDEV_CMD_PORT_GET, NLM_F_DUMP, {kDevice})).size() == 2);
  CHECK(asked.of(ask(RDMA_NLDEV_CMD_STAT_GET, 0, {kDevice, kPort})).size() == 1);
  CHECK(asked.of(ask(RDMA_NLDEV_CMD_RES_GET, 0, {kDevice})).size() == 1);
  CHECK_FALSE(was_read());
  // Names that are wrong, or no names.
  for (const char* name : {"mb_4", "mb_5", "../infiniband/mb_3", "..", ""}) {
    INFO(name);
    asked.sys.put("class/infiniband_verbs/uverbs5/ibdev", name);
    auto answers = asked.of(ask(RDMA_NLDEV_CMD_GET, 0, {kDevice}));
    REQUIRE(answers.size() == 1);
    CHECK(attribute_text(attributes_of(answers[0]), RDMA_NLDEV_ATTR_DEV_NAME) == "mb_3");
  }
  CHECK(was_read());
}

TEST_CASE("RDMA netlink: resources in messages that fit a reader's buffer") {
  NEEDS_OPENAT2();
  Asked asked;
  auto answers = asked.of(ask(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, {kDevice}));
  REQUIRE(answers.size() > 4);
  size_t octets = 0;
  for (const std::string& answer : answers) {
    CHECK(answer.size() <= 8192);
    octets += answer.size();
  }
  CHECK(octets > 300 * 60);  // each queue pair has ten attributes of 8 octets or less
  CHECK(header_of(answers.back()).nlmsg_type == NLMSG_DONE);
  auto one =
      asked.of(ask(RDMA_NLDEV_CMD_RES_QP_GET, 0, {kDevice, {RDMA_NLDEV_ATTR_RES_LQPN, 399}}));
  REQUIRE(one.size() == 1);
  CHECK(attribute_number(attributes_of(one[0]), RDMA_NLDEV_ATTR_RES_PID) == 9);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_RES_QP_GET, 0,
                        {kDevice, {RDMA_NLDEV_ATTR_RES_LQPN, 400}})) == ENOENT);
}

TEST_CASE("RDMA netlink: refusals are the kernel's") {
  Asked asked;
  CHECK(asked.error(ask(RDMA_NLDEV_NUM_OPS + 1)) == EINVAL);
  CHECK(asked.error(request(RDMA_NL_GET_TYPE(RDMA_NL_LS, 0), 0)) == EINVAL);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_GET)) == EINVAL);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_GET, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 6}})) == EINVAL);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_PORT_GET, 0, {kDevice, {RDMA_NLDEV_ATTR_PORT_INDEX, 2}})) ==
        EINVAL);
  CHECK(asked.error(ask(RDMA_NLDEV_CMD_SET, 0, {kDevice})) == EOPNOTSUPP);
  // A message that is no request is not answered; a control message with NLM_F_ACK is acknowledged.
  CHECK(asked.of(std::string(3, 'x')).empty());
  CHECK(asked.of(request(NLMSG_NOOP, 0)).empty());
  CHECK(asked.error(request(NLMSG_NOOP, NLM_F_ACK)) == 0);
}

TEST_CASE("RDMA netlink: several requests in one datagram are answered in order") {
  NEEDS_OPENAT2();
  Asked asked;
  auto answers = asked.of(ask(RDMA_NLDEV_CMD_SYS_GET) + ask(RDMA_NLDEV_NUM_OPS + 1) +
                          ask(RDMA_NLDEV_CMD_GET, 0, {kDevice}));
  REQUIRE(answers.size() == 3);
  CHECK(attribute_number(attributes_of(answers[0]), RDMA_NLDEV_SYS_ATTR_NETNS_MODE) == 1);
  CHECK(error_of(answers[1]) == EINVAL);
  CHECK(attribute_text(attributes_of(answers[2]), RDMA_NLDEV_ATTR_DEV_NAME) == "mb_3");
}

TEST_CASE("RDMA netlink: a datagram has 64 messages at most") {
  NEEDS_OPENAT2();
  Asked asked;
  std::string many;
  for (int i = 0; i < 64; ++i) many += ask(RDMA_NLDEV_CMD_SYS_GET);
  CHECK(asked.of(many).size() == 64);
  CHECK(asked.error_of_send == 0);
  CHECK(asked.of(many + ask(RDMA_NLDEV_CMD_SYS_GET)).empty());
  CHECK(asked.error_of_send == ENOBUFS);
  CHECK(refuse_rdma_netlink(many + many, 1234).size() == 64);
}

TEST_CASE("RDMA netlink: a dump ends where there is no room") {
  NEEDS_OPENAT2();
  Asked asked;
  asked.room = 2;
  std::string dump = ask(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP, {kDevice});
  CHECK(asked.of(dump + dump).size() == 2);
  CHECK(asked.error_of_send == ENOBUFS);
}

TEST_CASE("RDMA netlink: a file of the asker's own is read in part") {
  NEEDS_OPENAT2();
  Asked asked;
  files::path root = asked.sys.root() / "sys";
  files::resize_file(root / "class/infiniband/mb_3/fw_ver", uintmax_t{1} << 40);
  auto answers = asked.of(ask(RDMA_NLDEV_CMD_GET, 0, {kDevice}));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].size() < 8192);
  // Lines of any length, and a file without an end.
  asked.sys.put("kernel/debug/rocefs/resources",
                "mb_3 qp lqpn=1 pid=" + std::string(100'000, '9') + "\nmb_3 qp lqpn=2 pid=9");
  files::resize_file(root / "kernel/debug/rocefs/resources", uintmax_t{1} << 40);
  for (auto [number, count] : {std::pair<uint32_t, int>{1, ENOENT}, {2, -1}}) {
    INFO(number);
    CHECK(asked.error(ask(RDMA_NLDEV_CMD_RES_QP_GET, 0,
                          {kDevice, {RDMA_NLDEV_ATTR_RES_LQPN, number}})) == count);
  }
  for (int i = 0; i < 5000; ++i) {
    asked.sys.put("class/infiniband/mb_3/ports/1/hw_counters/" + std::to_string(i), "1");
  }
  CHECK(RdmaView(asked.sys.directory()).names("class/infiniband/mb_3/ports/1/hw_counters").size() ==
        4096);
}

TEST_CASE("RDMA netlink: no link leads out of the asker's root") {
  NEEDS_OPENAT2();
  Asked asked;
  files::path outside = asked.sys.root().string() + "-secret";
  std::ofstream(outside) << "hidden";
  files::path version = asked.sys.root() / "sys/class/infiniband/mb_3/fw_ver";
  for (std::string target : {outside.string(), "../../../../../" + outside.filename().string()}) {
    INFO(target);
    files::remove(version);
    files::create_symlink(target, version);
    auto answers = asked.of(ask(RDMA_NLDEV_CMD_GET, 0, {kDevice}));
    REQUIRE(answers.size() == 1);
    CHECK(attribute_text(attributes_of(answers[0]), RDMA_NLDEV_ATTR_FW_VERSION) == "");
  }
  files::remove(outside);
}

TEST_CASE("RDMA netlink: truncated and damaged requests are answered or passed over") {
  Asked asked;
  std::string good = ask(RDMA_NLDEV_CMD_GET, NLM_F_ACK, {kDevice}) +
                     ask(RDMA_NLDEV_CMD_RES_QP_GET, 0, {kDevice, {RDMA_NLDEV_ATTR_RES_LQPN, 150}});
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(asked.of(good.substr(0, size)).size() <= 3);
    for (char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string damaged = good;
      damaged[size] = value;
      CHECK(asked.of(damaged).size() <= 500);
    }
  }
}
