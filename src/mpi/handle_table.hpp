// SPDX-License-Identifier: BSD-3-Clause
//
// What Perdure knows of MPI handles: open addressing with linear probing. An entry whose object is
// gone keeps its key until another key comes by, so that probing never ends too early.
//
// Threads: find() any, without a lock, as it is called before every operation; the others too.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "base/status.hpp"

namespace perdure {

template <typename Handle, typename Object, std::size_t places = 4096>
class HandleTable {
 public:
  // The object of a handle; null: not ours.
  Object* find(Handle handle) const {
    const std::uint64_t key = key_of(handle);
    for (std::size_t i = place_of(key);; i = (i + 1) % places) {
      const std::uint64_t there = entries_[i].key.load(std::memory_order_acquire);
      if (there == key) return entries_[i].object.load(std::memory_order_acquire);
      if (there == 0) return nullptr;
    }
  }

  // The same if it is where it would be alone, else null, which says nothing: for callers that have
  // no register to spare.
  Object* glance(Handle handle) const {
    const std::uint64_t key = key_of(handle);
    const Entry& entry = entries_[place_of(key)];
    if (entry.key.load(std::memory_order_acquire) != key) return nullptr;
    return entry.object.load(std::memory_order_acquire);
  }

  // Code::no_space when the table is full.
  Status add(Handle handle, Object* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint64_t key = key_of(handle);
    Entry* entry = find_entry(key).entry;
    if (entry->key.load() == 0) {
      if (keys_used_ == places / 2) {
        return Status(Code::no_space, "more than ", places / 2,
                      " of Perdure's windows or files in one process; free some");
      }
      ++keys_used_;
    }
    entry->object.store(object, std::memory_order_release);
    entry->key.store(key, std::memory_order_release);
    return Status::success();
  }

  void remove(Handle handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Found found = find_entry(key_of(handle));
    if (found.is_key) found.entry->object.store(nullptr, std::memory_order_release);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> key{0};  // 0: never used
    std::atomic<Object*> object{nullptr};
  };
  struct Found {
    Entry* entry = nullptr;
    bool is_key = false;
  };

  static std::uint64_t key_of(Handle handle) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &handle, sizeof handle);
    return bits + 1;
  }
  static std::size_t place_of(std::uint64_t key) {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 32) % places;
  }

  // The entry of `key`, or the one that a new key takes: a dead one on its way, else the empty end.
  Found find_entry(std::uint64_t key) {
    Entry* dead = nullptr;
    for (std::size_t i = place_of(key);; i = (i + 1) % places) {
      Entry& entry = entries_[i];
      const std::uint64_t there = entry.key.load(std::memory_order_acquire);
      if (there == key) return {&entry, true};
      if (there == 0) return {dead == nullptr ? &entry : dead, false};
      if (dead == nullptr && entry.object.load(std::memory_order_relaxed) == nullptr) dead = &entry;
    }
  }

  std::array<Entry, places> entries_;
  std::mutex mutex_;
  std::size_t keys_used_ = 0;
};

}  // namespace perdure
