#include "rdma/host/processes_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "rdma/host/link_text.h"

using namespace rocefs;

namespace {

struct Processes {
  PollLoop loop;
  std::unique_ptr<Engine> engine = std::move(*Engine::create({ClockMode::kVirtual}, loop));
  Worker worker;
  std::string network = link_text("/proc/self/ns/net");
  std::shared_ptr<ProcessesFile> file =
      std::make_shared<ProcessesFile>(*engine, worker, [this] { return network; });
  std::vector<std::string> answers;

  void ask() {
    file->content([this](Result<std::string> text) {
      answers.push_back(*text);
      if (answers.size() == wanted) loop.stop();
    });
  }
  size_t wanted = 0;
  void await(size_t count) {
    wanted = count;
    if (answers.size() < count) loop.run();
  }
};

}  // namespace

TEST_CASE("processes: those of a network namespace are listed by pid") {
  std::string text = "\n" + processes_in(link_text("/proc/self/ns/net"));
  CHECK(text.find("\n" + std::to_string(::getpid()) + "\n") != text.npos);
  CHECK(processes_in("net:[0]").empty());
}

TEST_CASE("processes: a read is answered later, by the worker's walk") {
  Processes processes;
  processes.ask();
  CHECK(processes.answers.empty());
  processes.ask();
  processes.await(2);
  for (const std::string& text : processes.answers) {
    CHECK(("\n" + text).find("\n" + std::to_string(::getpid()) + "\n") != text.npos);
  }
}

TEST_CASE("processes: a host that is off has none") {
  Processes processes;
  processes.network.clear();
  processes.ask();
  CHECK(processes.answers == std::vector<std::string>{""});
}
