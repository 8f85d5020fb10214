// UniqueFunction: a move-only callable, for commands and answers that own what they carry.
#pragma once

#include <cassert>
#include <memory>
#include <type_traits>
#include <utility>

namespace rocefs {

template <class Signature>
class UniqueFunction;

// Calling an empty one is a programming error. Not synchronised.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}

  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) UniqueFunction(F&& function)
      : callable_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(function))) {}

  explicit operator bool() const { return callable_ != nullptr; }
  R operator()(Args... args) {
    assert(callable_);
    return callable_->call(std::forward<Args>(args)...);
  }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Holder final : Callable {
    explicit Holder(F f) : function(std::move(f)) {}
    R call(Args... args) override { return function(std::forward<Args>(args)...); }
    F function;
  };

  std::unique_ptr<Callable> callable_;
};

using Task = UniqueFunction<void()>;

}  // namespace rocefs
