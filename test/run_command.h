// Command of an engine, for tests of its threads.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <future>

#include "core/loop/engine.h"

namespace rocefs::test {

// Runs `work` on the first core, between two events, and waits for its end.
inline void run_command(Engine& engine, const std::function<void()>& work) {
  std::promise<void> done;
  Task task = [&] {
    work();
    done.set_value();
  };
  REQUIRE(engine.post(task));
  done.get_future().wait();
}

}  // namespace rocefs::test
