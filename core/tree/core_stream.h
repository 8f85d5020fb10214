// CoreStream: a file of any length whose text is made on the core's thread, which owns the data.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/loop/engine.h"
#include "core/tree/file.h"

namespace rocefs {

class CoreStream final : public Stream {
 public:
  // `take` runs on the core's thread; its data and `engine` outlive the file. `doc` is the file's
  // line in the reference and outlives it too.
  CoreStream(Engine& engine, std::function<std::string()> take, std::string_view doc)
      : engine_(engine), take_(std::move(take)), doc_(doc) {}
  void content(Answer<std::string> answer) override {
    engine_.call<std::string>([take = take_]() -> Result<std::string> { return take(); },
                              std::move(answer));
  }
  FileDoc doc() const override { return {"value", {}, {}, doc_}; }

 private:
  Engine& engine_;
  const std::function<std::string()> take_;
  const std::string_view doc_;
};

}  // namespace rocefs
