// Triggers: files whose stores start an action. One row per trigger, as for knobs; the stored text
// is a command, not a value that is kept.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/function_file.h"
#include "core/tree/tree.h"

namespace rocefs {

struct TriggerRow {
  std::string_view path;    // below its directory
  std::string_view syntax;  // accepted text
  std::string_view doc;
  bool replayed = true;  // changes the run: clock/log keeps it, clock/at takes it
  // Whether a text names files, which are opened as who opened the trigger; null: never.
  bool (*names_files)(std::string_view text) = nullptr;
  // Whether all users may store: the action looks itself at what they may.
  bool for_all = false;
};

// A file that is not a knob, but whose stores may change the run.
class ReplayedFile {
 public:
  virtual ~ReplayedFile() = default;
  // Whether it does: it then reports its moment to the operation, and clock/at takes it alone.
  virtual bool replayed() const = 0;
  // Whether the text names files: a store for later then keeps the writer's identity.
  virtual bool names_files(std::string_view) const { return false; }
};

// Stores to `store`, reads from `show` if there is one. Under the virtual clock the engine is held
// while a store that changes the run is served, however long that takes: it happens at one moment
// of the run, and can be replayed there.
class TriggerFile final : public Attribute,
                          public ReplayedFile,
                          public std::enable_shared_from_this<TriggerFile> {
 public:
  using Store = FunctionAttribute::Store;
  using Show = FunctionAttribute::Show;
  // Brings up to date what `show` shows; answers when that is done. An error is the reader's.
  using Refresh = std::function<void(Answer<void>)>;
  // `row` and `engine` outlive the file.
  TriggerFile(const TriggerRow& row, Engine& engine, Store store, Show show = nullptr,
              Refresh refresh = nullptr)
      : row_(row),
        engine_(engine),
        store_(std::move(store)),
        show_(std::move(show)),
        refresh_(std::move(refresh)) {}

  bool readable() const override { return static_cast<bool>(show_); }
  bool writable() const override { return true; }
  mode_t mode() const override { return Attribute::mode() | (row_.for_all ? 0222 : 0); }
  bool keeps_opener() const override { return row_.for_all || row_.names_files; }
  FileDoc doc() const override { return {"trigger", std::string(row_.syntax), {}, row_.doc}; }
  Result<std::string> show() override;
  void show_present(Answer<std::string> answer) override;
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override;
  bool replayed() const override { return row_.replayed; }
  bool names_files(std::string_view text) const override {
    return row_.names_files && row_.names_files(text);
  }

 private:
  void store_held(std::string text, const OperationPtr& operation, Answer<void> answer);

  const TriggerRow& row_;
  Engine& engine_;
  Store store_;
  Show show_;
  Refresh refresh_;
};

// Adds `row`'s file below `directory`.
void add_trigger(Tree& tree, const std::string& directory, const TriggerRow& row, Engine& engine,
                 TriggerFile::Store store, TriggerFile::Show show = nullptr,
                 TriggerFile::Refresh refresh = nullptr);

// Text as stored, without one newline at its end.
std::string_view without_newline(std::string_view text);

}  // namespace rocefs
