// Attributes and streams made of functions, for files that are neither knobs nor triggers:
// identities, states, results. `doc` is their line in the reference; it outlives the file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/tree/file.h"

namespace rocefs {

class FunctionAttribute final : public Attribute {
 public:
  // Without a newline.
  using Show = std::function<Result<std::string>()>;
  using Store = std::function<void(std::string_view, const OperationPtr&, Answer<void>)>;
  FunctionAttribute(Show show, Store store, std::string_view doc = {})
      : show_(std::move(show)), store_(std::move(store)), doc_(doc) {}

  bool readable() const override { return static_cast<bool>(show_); }
  bool writable() const override { return static_cast<bool>(store_); }
  bool saved() const override { return show_ && store_; }
  FileDoc doc() const override { return {"value", {}, {}, doc_}; }
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
  std::string_view doc_;
};

inline std::shared_ptr<Attribute> read_only(FunctionAttribute::Show show,
                                            std::string_view doc = {}) {
  return std::make_shared<FunctionAttribute>(std::move(show), nullptr, doc);
}
inline std::shared_ptr<Attribute> constant(std::string text, std::string_view doc = {}) {
  return read_only([text = std::move(text)]() -> Result<std::string> { return text; }, doc);
}
inline std::shared_ptr<Attribute> write_only(FunctionAttribute::Store store) {
  return std::make_shared<FunctionAttribute>(nullptr, std::move(store));
}
// The text shown can be stored again.
inline std::shared_ptr<Attribute> read_write(FunctionAttribute::Show show,
                                             FunctionAttribute::Store store) {
  return std::make_shared<FunctionAttribute>(std::move(show), std::move(store));
}

class FunctionStream final : public Stream {
 public:
  explicit FunctionStream(std::function<std::string()> content, std::string_view doc = {})
      : content_(std::move(content)), doc_(doc) {}
  void content(Answer<std::string> answer) override { answer(content_()); }
  FileDoc doc() const override { return {"value", {}, {}, doc_}; }

 private:
  std::function<std::string()> content_;
  std::string_view doc_;
};

}  // namespace rocefs
