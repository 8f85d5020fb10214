#include "core/tree/trigger.h"

#include <cerrno>

namespace rocefs {

std::string_view without_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

Result<std::string> TriggerFile::show() {
  Result<std::string> text = show_();
  if (text) *text += '\n';
  return text;
}

void TriggerFile::show_present(Answer<std::string> answer) {
  if (!refresh_) return answer(show());
  refresh_([self = shared_from_this(), answer = std::move(answer)](Result<void> done) mutable {
    if (!done) return answer(done.error());
    answer(self->show());
  });
}

void TriggerFile::store(std::string_view text, const OperationPtr& operation, Answer<void> answer) {
  if (names_files(text)) (void)operation->identity();
  if (row_.replayed && engine_.mode() == ClockMode::kVirtual) {
    return store_held(std::string(text), operation, std::move(answer));
  }
  store_(text, operation,
         [self = shared_from_this(), order = std::string(without_newline(text)), operation,
          answer = std::move(answer)](Result<void> result) mutable {
           std::optional<Moment> applied;
           if (self->row_.replayed) applied = Moment{self->engine_.now(), 0};
           if (result) operation->accepted(order, applied);
           answer(std::move(result));
         });
}

// Signals are handled while the engine is being held; then `store_` may offer its own way to
// cancel.
void TriggerFile::store_held(std::string text, const OperationPtr& operation, Answer<void> answer) {
  struct Held {
    Engine::Pause pause;
    Moment moment;
  };
  auto interrupted = std::make_shared<bool>(false);
  operation->on_interrupt([interrupted] { *interrupted = true; });
  auto hold = [this]() -> Result<Held> { return Held{engine_.pause(), engine_.moment()}; };
  auto go_on = [self = shared_from_this(), text = std::move(text), operation, interrupted,
                answer = std::move(answer)](Result<Held> held) mutable {
    if (!held) return answer(held.error());
    if (*interrupted) return answer(Error{EINTR, "interrupted"});
    operation->on_interrupt(nullptr);
    self->store_(text, operation,
                 [self, order = std::string(without_newline(text)), operation, held = *held,
                  answer = std::move(answer)](Result<void> result) mutable {
                   held.pause.reset();
                   if (result) operation->accepted(order, held.moment);
                   answer(std::move(result));
                 });
  };
  engine_.call<Held>(hold, std::move(go_on));
}

void add_trigger(Tree& tree, const std::string& directory, const TriggerRow& row, Engine& engine,
                 TriggerFile::Store store, TriggerFile::Show show, TriggerFile::Refresh refresh) {
  tree.add_file(fmt::format("{}/{}", directory, row.path),
                std::make_shared<TriggerFile>(row, engine, std::move(store), std::move(show),
                                              std::move(refresh)));
}

}  // namespace rocefs
