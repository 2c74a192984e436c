// SPDX-License-Identifier: BSD-3-Clause
//
// ipv.hpp: in-place versioning (perdure_ipv.h) for C++20.
//
//     perdure::Pool pool("/mnt/pmem/heat");               // or perdure::open_mpi()
//     std::uint64_t iteration = 0;
//     pool.scalar("iteration", iteration);
//     std::vector<double, perdure::ipv::allocator<double>> u(cells);
//     perdure::ipv::Objects objects(pool);
//     objects.add("u", u);                                // contents as they are: version 0
//     objects.restart();                                  // takes the newest version
//     while (iteration < iterations) {
//       heat_step(u);                                     // unchanged
//       iteration++;
//       objects.persist();                                // the persistence point
//     }
//
// Conventions of perdure.hpp and of perdure_ipv.h, and
//   - Declare the pool first, then the memory, then Objects: they are destroyed in the opposite
//     order. The destructor of Objects drops its outcome; call close() to learn of it.
//   - A vector that changes its size is named by follow(): objects.follow("u", u); versions have it
//     as long as it is then, and wherever its memory is. Of one that add() named, memory that the
//     program frees meanwhile (a vector grows or ends) stays until close(), and persist() throws,
//     as the program's data are elsewhere; unless resize() says where.
//
// Threads: memory may be allocated and freed by any thread; the rest is as in perdure_ipv.h.
#ifndef PERDURE_IPV_HPP
#define PERDURE_IPV_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/ipv_allocator.hpp"
#include "perdure/perdure.hpp"
#include "perdure/perdure_ipv.h"

namespace perdure {
inline namespace interface {
namespace ipv {

// How versions are made; see perdure_ipv.h: Objects(pool, {.helper = false}).
struct Options {
  std::optional<bool> helper = {};  // a thread that flushes beside; default: where a core is idle
  unsigned threads = 1;             // that flush and copy at the persistence point
  unsigned every = 1;               // so many persistence points make one version
  bool lag = true;                  // a version is durable one persistence point later; see
                                    // perdure_ipv_persist()
  bool guard = true;                // objects are write-protected; false damages versions if a
                                    // store is not announced
  std::string report = {};          // close() writes there what was done for each object

  // The same for perdure_ipv.h; points into this object.
  perdure_ipv_options to_c() const noexcept {
    perdure_ipv_options options{};
    if (helper) options.helper = *helper ? 1 : -1;
    options.threads = threads;
    options.every = every;
    options.no_guard = guard ? 0 : 1;
    options.no_lag = lag ? 0 : 1;
    options.report = report.empty() ? nullptr : report.c_str();
    return options;
  }
};

using Tier = perdure_ipv_tier;
using ObjectStatus = perdure_ipv_object_status;

namespace detail {

// A vector that is an object, as long as it is at each persistence point.
class FollowedVector {
 public:
  FollowedVector() = default;
  FollowedVector(const FollowedVector&) = delete;
  FollowedVector& operator=(const FollowedVector&) = delete;
  virtual ~FollowedVector() = default;
  virtual const std::string& name() const = 0;
  virtual bool has_changed() const = 0;  // its size, or where it lies
  virtual void tell() = 0;
};

template <typename T, typename Allocator>
class FollowedVectorOf final : public FollowedVector {
 public:
  FollowedVectorOf(std::string name, std::vector<T, Allocator>& vector)
      : name_(std::move(name)), vector_(vector) {
    note();
  }
  ~FollowedVectorOf() override = default;
  const std::string& name() const override { return name_; }
  bool has_changed() const override { return vector_.data() != data_ || vector_.size() != size_; }
  void tell() override {
    check(perdure_ipv_resize(name_.c_str(), vector_.data(), vector_.size() * sizeof(T)));
    note();
  }

 private:
  void note() {
    data_ = vector_.data();
    size_ = vector_.size();
  }

  std::string name_;
  std::vector<T, Allocator>& vector_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detail

// The objects of a pool that is open and was not restarted. One at a time in a process. Move-only.
class Objects {
 public:
  // Errors: BUSY if the process has objects already, STATE if the pool was restarted.
  explicit Objects(const Pool& pool, const Options& options = {}) {
    const perdure_ipv_options c_options = options.to_c();
    check(perdure_ipv_open(pool.handle(), &c_options));
    pool_ = pool.handle();
  }
  ~Objects() { (void)end(); }
  Objects(Objects&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), followed_(std::move(other.followed_)) {}
  Objects& operator=(Objects&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(followed_, other.followed_);
    return *this;
  }

  // Names the elements of a std::span, std::vector, std::array or array as an object; its contents
  // are its own until a restart finds a version. Collective. Errors: INVALID if it overlaps another
  // object; SHAPE if the pool has it with another size.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range>  // the memory outlives the call
  void add(const std::string& name, Range&& memory, Tier tier = PERDURE_IPV_AUTO,
           bool own_pages = false) {
    const std::span elements(memory);
    using T = typename decltype(elements)::element_type;
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                  "an object is saved byte by byte: no pointers, strings or containers in it");
    perdure_ipv_object_options options{};
    options.tier = tier;
    options.own_pages = own_pages ? 1 : 0;
    check(perdure_ipv_object(name.c_str(), elements.data(), elements.size_bytes(), &options));
    detail::Named::of_process().add(name, elements.data(), elements.size_bytes());
  }

  // Names the elements of a std::vector, which outlives close(), as an object that follows it: the
  // vector may grow, shrink, be swapped or assigned, and each version has what it has at the
  // persistence point. If the pool has the object with another size, the vector gets that here.
  // Collective. Errors: those of add(), except that.
  template <typename T, typename Allocator>
  void follow(const std::string& name, std::vector<T, Allocator>& vector) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "an object is saved byte by byte: no pointers, strings or containers in it");
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory");
    std::uint64_t stored[8] = {};
    unsigned dimensions = 0;
    const int held = perdure_stored_shape(pool_, name.c_str(), 0, &dimensions, stored);
    if (held == PERDURE_OK && dimensions == 1 && stored[0] % sizeof(T) == 0) {
      vector.resize(static_cast<std::size_t>(stored[0] / sizeof(T)));
    }
    check(perdure_ipv_object(name.c_str(), vector.data(), vector.size() * sizeof(T), nullptr));
    followed_.push_back(std::make_unique<detail::FollowedVectorOf<T, Allocator> >(name, vector));
  }

  // Of an object that add() named: it lies there now, with its contents (perdure_ipv_resize()).
  // Local. Errors: NO_SPACE leaves all as it was; NOT_FOUND, INVALID, STATE.
  template <std::ranges::contiguous_range Range>
    requires std::ranges::borrowed_range<Range>
  void resize(const std::string& name, Range&& memory) {
    const std::span elements(memory);
    check(perdure_ipv_resize(name.c_str(), elements.data(), elements.size_bytes()));
    detail::Named::of_process().move(name, elements.data(), elements.size_bytes());
  }
  // The same of a pair, whose contents are in `a`, after a persistence point.
  template <typename T>
  void resize_pair(const std::string& name, std::span<T> a, std::span<T> b) {
    if (a.size() != b.size()) {
      throw Error(PERDURE_E_INVALID, "the arrays of pair '" + name + "' differ in length");
    }
    check(perdure_ipv_resize_pair(name.c_str(), a.data(), b.data(), a.size_bytes()));
    detail::Named::of_process().move(name, a.data(), a.size_bytes());
    detail::Named::of_process().add(name, b.data(), b.size_bytes());
  }

  // Names two spans of the same length as a pair whose roles alternate (perdure_ipv_pair()).
  // Collective. Errors: INVALID.
  template <typename T>
  void add_pair(const std::string& name, std::span<T> a, std::span<T> b) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                  "an object is saved byte by byte: no pointers, strings or containers in it");
    if (a.size() != b.size()) {
      throw Error(PERDURE_E_INVALID, "the arrays of pair '" + name + "' differ in length");
    }
    check(perdure_ipv_pair(name.c_str(), a.data(), b.data(), a.size_bytes()));
    detail::Named::of_process().add(name, a.data(), a.size_bytes());
    detail::Named::of_process().add(name, b.data(), b.size_bytes());
  }
  // Of a pair: the first element of the array that the next iteration reads. Errors: NOT_FOUND.
  void* alive(const std::string& name) const {
    void* array = nullptr;
    check(perdure_ipv_alive(name.c_str(), &array));
    return array;
  }

  // What an object or pair is to the ranks together, for any_ranks (perdure_ipv_ranks()); before
  // the restart. Errors: NOT_FOUND.
  void ranks(const std::string& name, Ranks ranks) {
    check(perdure_ipv_ranks(name.c_str(), static_cast<int>(ranks)));
  }

  // As Pool::restart(), in its place. Collective.
  std::uint64_t restart() {
    for (const auto& each : followed_) {
      if (!each->has_changed()) continue;
      throw Error(PERDURE_E_STATE, "the vector of object '" + each->name() +
                                       "' got another size or place between follow() and "
                                       "restart(); change it before or after");
    }
    return version_by(perdure_ipv_restart);
  }
  // The persistence point: objects and scalars, as they are now, become the next version, which the
  // next persistence point makes durable (Options::lag). Returns the newest durable version.
  // Collective. STATE: the program has freed the memory of an object.
  std::uint64_t persist() {
    const std::string freed = detail::Named::of_process().freed();
    if (!freed.empty()) {
      throw Error(PERDURE_E_STATE, "the memory of object '" + freed +
                                       "' was freed by the program (did a vector grow?); name "
                                       "the vector by follow(), or say by resize() where it is "
                                       "now");
    }
    for (const auto& each : followed_) {
      if (each->has_changed()) each->tell();
    }
    return version_by(perdure_ipv_persist);
  }
  // Makes the version durable that the last persistence point began; its number. Collective.
  std::uint64_t wait() { return version_by(perdure_ipv_wait); }
  // Makes an unfinished version durable and ends: objects keep contents and addresses, in ordinary
  // memory. Collective. Again: nothing to do.
  void close() { check(end()); }

  // What was done for an object. Local. Errors: NOT_FOUND.
  ObjectStatus status(const std::string& name) const {
    ObjectStatus status{};
    check(perdure_ipv_status(name.c_str(), &status));
    return status;
  }

 private:
  static std::uint64_t version_by(int (*call)(std::uint64_t*)) {
    std::uint64_t version = 0;
    check(call(&version));
    return version;
  }
  int end() noexcept {
    if (std::exchange(pool_, nullptr) == nullptr) return PERDURE_OK;
    const int code = perdure_ipv_close();
    followed_.clear();
    detail::Named::of_process().clear();
    return code;
  }

  perdure_pool* pool_ = nullptr;  // null: it has ended
  std::vector<std::unique_ptr<detail::FollowedVector> > followed_;
};

// While it lives, the pages of the object that holds `address` stay where they are: they are
// registered with a network or a pending receive. Move-only. Error: NOT_FOUND.
class Pin {
 public:
  explicit Pin(const void* address) : address_(address) { check(perdure_ipv_pin(address)); }
  ~Pin() {
    if (address_ != nullptr) (void)perdure_ipv_unpin(address_);
  }
  Pin(Pin&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
  }

 private:
  const void* address_;
};

// Before the kernel or a device stores to `memory`; until the next persistence point.
template <typename T>
void touch(std::span<T> memory) noexcept {
  perdure_ipv_touch(memory.data(), memory.size_bytes());
}

// perdure_flush_init(), _async() and _barrier(): flushes beside the computation, placed by hand.
inline void flush_init(unsigned threads = 0) {
  check(perdure_flush_init(threads));
}
template <typename T>
void flush_async(std::span<T> memory) {
  check(perdure_flush_async(memory.data(), memory.size_bytes()));
}
inline void flush_barrier() {
  check(perdure_flush_barrier());
}

}  // namespace ipv
}  // namespace interface
}  // namespace perdure
#endif
