// Result<T>: a value, or an errno and the reason a person needs to mend what was refused.
#pragma once

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace rocefs {

// `code` is a positive errno; `reason` is one line without a newline, fit for dmesg and stderr.
struct Error {
  int code = 0;
  std::string reason;
};

template <class... Args>
[[nodiscard]] Error errorf(int code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& value() {
    assert(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    assert(state_.index() == 1);
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) { assert(error_.code != 0); }

  explicit operator bool() const { return error_.code == 0; }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// Moves a parsed value into `out`. The error names `key`.
template <class T>
Result<void> keep(std::string_view key, const Result<T>& value, T& out) {
  if (!value) return errorf(value.error().code, "{}: {}", key, value.error().reason);
  out = *value;
  return {};
}

}  // namespace rocefs
