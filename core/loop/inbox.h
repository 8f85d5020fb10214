// Inbox: commands for one owner thread from any other thread. Lock-free, so that the packet core
// can both receive from it and post to it without ever waiting for another thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "core/base/task.h"

namespace rocefs {

class Inbox {
 public:
  // Holds at most `limit` commands; post() refuses more.
  explicit Inbox(size_t limit) : limit_(limit) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox() { drop_all(head_.exchange(nullptr)); }

  // Any thread. False, and `task` untouched, when the inbox is full. Commands of one thread run in
  // the order in which they were posted.
  [[nodiscard]] bool post(Task& task) {
    if (waiting_.fetch_add(1, std::memory_order_relaxed) >= limit_) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    auto* node = new Node{std::move(task), head_.load(std::memory_order_relaxed)};
    while (!head_.compare_exchange_weak(node->next, node, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
    }
    return true;
  }

  // Owner thread. Whether a drain would run a command.
  bool empty() const { return head_.load(std::memory_order_seq_cst) == nullptr; }

  // Owner thread. Runs the commands that are queued at the call, in order; returns their number.
  size_t drain() {
    Node* list = reversed(head_.exchange(nullptr, std::memory_order_acquire));
    size_t count = 0;
    while (list) {
      std::unique_ptr<Node> node(list);
      list = node->next;
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      node->task();
      ++count;
    }
    return count;
  }

 private:
  struct Node {
    Task task;
    Node* next;
  };

  static Node* reversed(Node* list) {
    Node* result = nullptr;
    while (list) {
      Node* next = list->next;
      list->next = result;
      result = list;
      list = next;
    }
    return result;
  }
  static void drop_all(Node* list) {
    while (list) {
      std::unique_ptr<Node> node(list);
      list = node->next;
    }
  }

  std::atomic<Node*> head_{nullptr};
  std::atomic<size_t> waiting_{0};
  const size_t limit_;
};

}  // namespace rocefs
