#include "rma/window.hpp"

#include <mutex>
#include <string>

namespace perdure {

std::array<WindowSlot, window_slots> window_table;

namespace {

constexpr std::size_t windows_max = window_slots / 2;
std::mutex table_mutex;
std::size_t keys_used = 0;

// The slot of `key`, or the one that a new key takes: a dead one on its way, else the empty end.
struct Found {
  WindowSlot* slot = nullptr;
  bool is_key = false;
};
Found find_slot(std::uint64_t key) {
  WindowSlot* dead = nullptr;
  for (std::size_t i = window_place(key);; i = (i + 1) % window_slots) {
    WindowSlot& slot = window_table[i];
    const std::uint64_t there = slot.key.load(std::memory_order_acquire);
    if (there == key) return {&slot, true};
    if (there == 0) return {dead == nullptr ? &slot : dead, false};
    if (dead == nullptr && slot.window.load(std::memory_order_relaxed) == nullptr) dead = &slot;
  }
}

}  // namespace

Status register_window(Window& window) {
  const std::lock_guard<std::mutex> lock(table_mutex);
  const std::uint64_t key = window_key(window.handle);
  WindowSlot* slot = find_slot(key).slot;
  if (slot->key.load() == 0) {
    if (keys_used == windows_max) {
      return {Code::no_space, "more than " + std::to_string(windows_max) +
                                  " persistent windows in one process; free some"};
    }
    ++keys_used;
  }
  slot->window.store(&window, std::memory_order_release);
  slot->key.store(key, std::memory_order_release);
  return Status::success();
}

void forget_window(MPI_Win handle) {
  const std::lock_guard<std::mutex> lock(table_mutex);
  const Found found = find_slot(window_key(handle));
  if (found.is_key) found.slot->window.store(nullptr, std::memory_order_release);
}

}  // namespace perdure
