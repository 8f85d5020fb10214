#include "core/tree/tree_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "core/tree/knob.h"
#include "core/tree/knob_file.h"

namespace rocefs {
namespace {

// The setting at `path`; nullptr if there is none.
Attribute* setting_at(Tree& tree, std::string_view path) {
  Tree::Node* node = tree.resolve(path);
  auto* attribute = node ? dynamic_cast<Attribute*>(node->file.get()) : nullptr;
  return attribute && attribute->saved() ? attribute : nullptr;
}

bool changes_others(Tree& tree, std::string_view path) {
  auto* knob = dynamic_cast<KnobFile*>(setting_at(tree, path));
  return knob && knob->set()->has_consequences(knob->index());
}

}  // namespace

TreeKeeper::TreeKeeper(Journal& journal, SavedTree& saved, Tree& tree, PollLoop& loop)
    : journal_(journal), saved_(saved), tree_(tree), loop_(loop) {}

TreeKeeper::~TreeKeeper() {
  tree_.set_change_listener(nullptr);
}

void TreeKeeper::watch() {
  if (saved_.born.tv_sec == 0) journal_.stage(saved_.born, tree_.find(kRootIno)->mtime);
  journal_.before_commit([this] { stage(); });
  journal_.commit();
  tree_.set_change_listener([this](Ino ino) { stored(tree_.path_of(ino)); });
}

// A setting's own value comes after those that other stores bring along. Rules that span settings
// may refuse one before another is set: refused stores are repeated as long as another one
// succeeds.
std::vector<std::string> TreeKeeper::restore() {
  tree_.date_all(saved_.born);
  std::vector<const SavedNode*> texts;
  for (count_ = 0; count_ < saved_.count; ++count_) {
    const SavedNode& saved = saved_.nodes[count_];
    std::string path(saved.path, saved.path_size);
    slots_[path] = count_;
    if (saved.has_text) texts.push_back(&saved);
    Tree::Node* node = tree_.resolve(path);
    if (!saved.has_attributes || !node) continue;
    node->mode = saved.mode;
    node->uid = saved.uid;
    node->gid = saved.gid;
    node->atime = saved.atime;
    node->mtime = saved.mtime;
  }
  std::stable_partition(texts.begin(), texts.end(), [this](const SavedNode* saved) {
    return changes_others(tree_, {saved->path, saved->path_size});
  });
  for (;;) {
    std::vector<const SavedNode*> refused;
    std::vector<std::string> reasons;
    for (const SavedNode* saved : texts) {
      std::string why;
      if (restore_text(*saved, why)) continue;
      refused.push_back(saved);
      reasons.push_back(std::move(why));
    }
    if (refused.size() == texts.size()) return reasons;
    texts = std::move(refused);
  }
}

bool TreeKeeper::restore_text(const SavedNode& saved, std::string& why) {
  std::string path(saved.path, saved.path_size), text(saved.text, saved.text_size);
  Attribute* setting = setting_at(tree_, path);
  if (!setting) {
    why = path + ": no such setting";
    return false;
  }
  if (Result<std::string> now = setting->show(); now && *now == text) return true;
  bool accepted = true;
  setting->restore(text, std::make_shared<Operation>(Caller{}), [&](Result<void> result) {
    accepted = static_cast<bool>(result);
    if (!result) why = fmt::format("{}: {}", path, result.error().reason);
  });
  return accepted;
}

void TreeKeeper::stored(const std::string& path) {
  texts_.insert(path);
  flush_later();
}

void TreeKeeper::attributes_changed(const std::string& path) {
  attributes_.insert(path);
  flush_later();
}

// The answer to a store commits its changes before this runs; other changes are committed here.
void TreeKeeper::flush_later() {
  if (std::exchange(flushing_, true)) return;
  loop_.post([this] {
    flushing_ = false;
    if (!texts_.empty() || !attributes_.empty()) journal_.commit();
  });
}

void TreeKeeper::stage() {
  for (const std::string& path : std::exchange(texts_, {})) stage_text(path);
  for (const std::string& path : std::exchange(attributes_, {})) stage_attributes(path);
}

// Forgets a setting whose device is gone.
void TreeKeeper::stage_text(const std::string& path) {
  Attribute* setting = setting_at(tree_, path);
  Result<std::string> text = setting ? setting->show() : Error{ENOENT, "gone"};
  if (!text && !slots_.contains(path)) return;
  SavedNode* saved = slot(path);
  if (!saved) return;
  journal_.stage(saved->has_text, uint32_t{static_cast<bool>(text)});
  if (!text) return;
  size_t size = std::min(text->size(), sizeof saved->text);
  journal_.stage(saved->text, text->data(), size);
  journal_.stage(saved->text_size, static_cast<uint32_t>(size));
}

void TreeKeeper::stage_attributes(const std::string& path) {
  Tree::Node* node = tree_.resolve(path);
  SavedNode* saved = node ? slot(path) : nullptr;
  if (!saved) return;
  journal_.stage(saved->has_attributes, uint32_t{1});
  journal_.stage(saved->mode, node->mode);
  journal_.stage(saved->uid, node->uid);
  journal_.stage(saved->gid, node->gid);
  journal_.stage(saved->atime, node->atime);
  journal_.stage(saved->mtime, node->mtime);
}

SavedNode* TreeKeeper::slot(const std::string& path) {
  auto it = slots_.find(path);
  if (it != slots_.end()) return &saved_.nodes[it->second];
  if (count_ == SavedTree::kMaxNodes || path.size() > SavedNode::kMaxPath) return nullptr;
  SavedNode& fresh = saved_.nodes[count_];
  slots_[path] = count_++;
  journal_.stage(saved_.count, count_);
  journal_.stage(fresh.path, path.data(), path.size());
  journal_.stage(fresh.path_size, static_cast<uint32_t>(path.size()));
  return &fresh;
}

}  // namespace rocefs
