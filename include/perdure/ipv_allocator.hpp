// SPDX-License-Identifier: BSD-3-Clause
//
// ipv_allocator.hpp: memory for objects of in-place versioning (perdure_ipv.h), for C++11.
//
//     std::vector<double, perdure::ipv::allocator<double>> u(cells);
//     perdure_ipv_object("u", u.data(), u.size() * sizeof(double), NULL);
//
// A vector that grows frees the memory of its object, which ends then (perdure_ipv_free()), unless
// perdure_ipv_resize() says before the next persistence point where its elements are now. Those of
// Objects::follow() in perdure/ipv.hpp are followed without that; of one that Objects::add() named,
// an exception at the persistence point says so. Header only; link libperdure. Threads: any.
#ifndef PERDURE_IPV_ALLOCATOR_HPP
#define PERDURE_IPV_ALLOCATOR_HPP

#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/perdure_ipv.h"

namespace perdure {
inline namespace interface {
namespace ipv {

namespace detail {

// The objects of the process, for the allocator: whose memory must not go before close().
class Named {
 public:
  static Named& of_process() {
    static Named all;
    return all;
  }
  void add(std::string name, const void* address, std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto* const first = static_cast<const unsigned char*>(address);
    objects_.push_back({std::move(name), first, first + bytes, nullptr});
  }
  // An object, or the first array of a pair, whose second one goes, lies there now. What was freed
  // of it before is free.
  void move(const std::string& name, const void* address, std::size_t bytes) {
    std::vector<Object> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (std::size_t i = objects_.size(); i-- > 0;) {
        if (objects_[i].name != name) continue;
        gone.push_back(objects_[i]);
        objects_.erase(objects_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (const Object& object : gone) free_unless_shared(object.freed);
    add(name, address, bytes);
  }
  // False: no object is in the allocation that begins at `address`.
  bool keep_until_close(void* address, std::size_t bytes) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto* const first = static_cast<const unsigned char*>(address);
    const std::less<const unsigned char*> before;
    for (Object& object : objects_) {
      if (before(object.first, first) || !before(object.first, first + bytes)) continue;
      object.freed = address;
      return true;
    }
    return false;
  }
  // The name of an object whose memory was freed; empty: there is none.
  std::string freed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Object& object : objects_) {
      if (object.freed != nullptr) return object.name;
    }
    return {};
  }
  void clear() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      void* const address = objects_[i].freed;
      for (Object& object : objects_) {  // several objects may share an allocation
        if (object.freed == address) object.freed = nullptr;
      }
      perdure_ipv_free(address);
    }
    objects_.clear();
  }

 private:
  void free_unless_shared(void* allocation) noexcept {
    if (allocation == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Object& object : objects_) {
      if (object.freed == allocation) return;  // clear() frees it
    }
    perdure_ipv_free(allocation);
  }
  struct Object {
    std::string name;
    const unsigned char* first;
    const unsigned char* end;
    void* freed;  // the allocation that holds it, if the program has freed that
  };
  mutable std::mutex mutex_;
  std::vector<Object> objects_;
};

}  // namespace detail

// Memory for objects, for std::vector and the like: page-aligned, zeroed, whole pages.
template <typename T>
class allocator {  // NOLINT(readability-identifier-naming): named as std::allocator
 public:
  using value_type = T;
  using is_always_equal = std::true_type;

  allocator() noexcept = default;
  template <typename U>
  allocator(const allocator<U>& /*other*/) noexcept {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    void* const memory = perdure_ipv_alloc(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (detail::Named::of_process().keep_until_close(memory, count * sizeof(T))) return;
    perdure_ipv_free(memory);
  }
  friend bool operator==(const allocator& /*a*/, const allocator& /*b*/) noexcept { return true; }
  friend bool operator!=(const allocator& /*a*/, const allocator& /*b*/) noexcept { return false; }
};

}  // namespace ipv
}  // namespace interface
}  // namespace perdure
#endif
