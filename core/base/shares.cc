#include "core/base/shares.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace rocefs {

namespace {

constexpr uid_t kNobody = ~uid_t{0};
std::atomic<uid_t> named_owner{kNobody};

}  // namespace

void name_owner(uid_t user) {
  named_owner = user;
}

bool is_privileged(uid_t user) {
  return user == 0 || user == ::geteuid() || (user == named_owner && user != kNobody);
}

struct Shares::State {
  size_t all, reserve;
  std::mutex mutex;
  size_t taken = 0;
  std::map<uid_t, size_t> of_user;

  bool grants(uid_t user, bool privileged, size_t count);
  void give_back(uid_t user, size_t count);
};

bool Shares::State::grants(uid_t user, bool privileged, size_t count) {
  std::lock_guard lock(mutex);
  auto has = of_user.find(user);
  size_t mine = privileged || has == of_user.end() ? 0 : has->second;
  size_t kept = taken + (privileged ? 0 : reserve);
  if (mine + count > all - std::min(all, kept)) return false;
  taken += count;
  if (count > 0) of_user[user] += count;
  return true;
}

void Shares::State::give_back(uid_t user, size_t count) {
  if (count == 0) return;  // another share may have ended the user's entry
  std::lock_guard lock(mutex);
  taken -= count;
  auto has = of_user.find(user);
  has->second -= count;
  if (has->second == 0) of_user.erase(has);
}

Shares::Shares(size_t all, size_t reserve) : state_(std::make_shared<State>()) {
  state_->all = all;
  state_->reserve = reserve;
}

Shares::Share Shares::take(uid_t user, bool privileged, size_t count) {
  if (!state_->grants(user, privileged, count)) return nullptr;
  return Share(state_.get(),
               [state = state_, user, count](const void*) { state->give_back(user, count); });
}

}  // namespace rocefs
