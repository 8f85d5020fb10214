// Attributes and streams made of functions, for files that are not knobs: identities, counters,
// triggers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/file.h"

namespace rocefs {

class FunctionAttribute final : public Attribute {
 public:
  // Without a newline.
  using Show = std::function<Result<std::string>()>;
  using Store = std::function<void(std::string_view, const OperationPtr&, Answer<void>)>;
  FunctionAttribute(Show show, Store store) : show_(std::move(show)), store_(std::move(store)) {}

  bool readable() const override { return static_cast<bool>(show_); }
  bool writable() const override { return static_cast<bool>(store_); }
  bool kept() const override { return show_ && store_; }
  Result<std::string> show() override {
    Result<std::string> text = show_();
    if (text) *text += '\n';
    return text;
  }
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    store_(text, operation, std::move(answer));
  }

 private:
  Show show_;
  Store store_;
};

inline std::shared_ptr<Attribute> read_only(FunctionAttribute::Show show) {
  return std::make_shared<FunctionAttribute>(std::move(show), nullptr);
}
inline std::shared_ptr<Attribute> constant(std::string text) {
  return read_only([text = std::move(text)]() -> Result<std::string> { return text; });
}
inline std::shared_ptr<Attribute> write_only(FunctionAttribute::Store store) {
  return std::make_shared<FunctionAttribute>(nullptr, std::move(store));
}
// What it shows can be stored again.
inline std::shared_ptr<Attribute> read_write(FunctionAttribute::Show show,
                                             FunctionAttribute::Store store) {
  return std::make_shared<FunctionAttribute>(std::move(show), std::move(store));
}

class FunctionStream final : public Stream {
 public:
  explicit FunctionStream(std::function<std::string()> content) : content_(std::move(content)) {}
  Result<std::string> content() override { return content_(); }

 private:
  std::function<std::string()> content_;
};

}  // namespace rocefs
