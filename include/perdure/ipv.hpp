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
//   - Memory of an object that the program frees meanwhile (a vector grows or ends) stays until
//     close(). persist() then throws, because the object has no owner and the program's data are
//     elsewhere: size vectors before you name them.
//
// Threads: memory may be allocated and freed by any thread; the rest is as in perdure_ipv.h.
#ifndef PERDURE_IPV_HPP
#define PERDURE_IPV_HPP

#include <cstddef>
#include <cstdint>
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

// The objects of a pool that is open and was not restarted. One at a time in a process. Move-only.
class Objects {
 public:
  // Errors: BUSY if the process has objects already, STATE if the pool was restarted.
  explicit Objects(const Pool& pool, const Options& options = {}) {
    const perdure_ipv_options c_options = options.to_c();
    check(perdure_ipv_open(pool.handle(), &c_options));
    open_ = true;
  }
  ~Objects() { (void)end(); }
  Objects(Objects&& other) noexcept : open_(std::exchange(other.open_, false)) {}
  Objects& operator=(Objects&& other) noexcept {
    std::swap(open_, other.open_);
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
  std::uint64_t restart() { return version_by(perdure_ipv_restart); }
  // The persistence point: objects and scalars, as they are now, become the next version, which the
  // next persistence point makes durable (Options::lag). Returns the newest durable version.
  // Collective. STATE: the program has freed the memory of an object.
  std::uint64_t persist() {
    const std::string freed = detail::Named::of_process().freed();
    if (!freed.empty()) {
      throw Error(PERDURE_E_STATE, "the memory of object '" + freed +
                                       "' was freed by the program (did a vector grow?); give it "
                                       "its size before it is named, and keep it until close()");
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
    if (!std::exchange(open_, false)) return PERDURE_OK;
    const int code = perdure_ipv_close();
    detail::Named::of_process().clear();
    return code;
  }

  bool open_ = false;
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
