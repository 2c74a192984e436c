// SPDX-License-Identifier: BSD-3-Clause
//
// Open pools: something of each pool that is open in this process, found by the pool's directory.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace perdure {

// The one path of a directory that has several; as it was given if it has none.
inline std::string canonical(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::weakly_canonical(directory, error);
  return error ? directory : full.string();
}

// Held is a pointer, or owns. Directories are canonical().
template <typename Held>
class OpenPools {
 public:
  auto* add(const std::string& directory, Held held) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return &*(by_directory_[directory] = std::move(held));
  }
  // Null: it is not open.
  auto* find(const std::string& directory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_directory_.find(directory);
    return found == by_directory_.end() ? nullptr : &*found->second;
  }
  // If it is `held` that is open there.
  template <typename T>
  void remove(const std::string& directory, const T* held) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_directory_.find(directory);
    if (found != by_directory_.end() && &*found->second == held) by_directory_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Held> by_directory_;
};

}  // namespace perdure
