// Triggers: files that make something happen when they are stored to. One row per trigger, as for
// knobs; what is stored is an order, not a value that is kept.
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
  std::string_view syntax;  // what may be stored
  std::string_view doc;
  bool replayed = true;  // changes the run: clock/log keeps it, clock/at takes it
  // Whether what is stored names files, which are opened as the writer; null: it never does.
  bool (*names_files)(std::string_view text) = nullptr;
};

// A file whose store may change the run and is no setting of a knob.
class ReplayedFile {
 public:
  virtual ~ReplayedFile() = default;
  // Does so: it tells its operation where in the run it was applied, clock/at takes it alone.
  virtual bool replayed() const = 0;
  // Whether the text names files: who keeps it for later takes the writer's identity with it.
  virtual bool names_files(std::string_view) const { return false; }
};

// Stores to `store`, reads from `show` if there is one. Under the virtual clock the engine is held
// while a store that changes the run is served, however long that takes: it happens at one place in
// the run, and can be replayed there.
class TriggerFile final : public Attribute,
                          public ReplayedFile,
                          public std::enable_shared_from_this<TriggerFile> {
 public:
  using Store = FunctionAttribute::Store;
  using Show = FunctionAttribute::Show;
  // `row` and `engine` outlive the file.
  TriggerFile(const TriggerRow& row, Engine& engine, Store store, Show show = nullptr)
      : row_(row), engine_(engine), store_(std::move(store)), show_(std::move(show)) {}

  bool readable() const override { return static_cast<bool>(show_); }
  bool writable() const override { return true; }
  FileDoc doc() const override { return {"trigger", std::string(row_.syntax), {}, row_.doc}; }
  Result<std::string> show() override;
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
};

// Adds `row`'s file below `directory`.
void add_trigger(Tree& tree, const std::string& directory, const TriggerRow& row, Engine& engine,
                 TriggerFile::Store store, TriggerFile::Show show = nullptr);

// Text as stored, without one newline at its end.
std::string_view without_newline(std::string_view text);

}  // namespace rocefs
