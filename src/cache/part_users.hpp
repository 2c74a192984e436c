// SPDX-License-Identifier: BSD-3-Clause
//
// Part users: which blocks of a part the processes of the node are reading and writing at this
// moment, so that a block's bytes can be taken away (cache.P17 of evictor.hpp).
//
// An access marks its block in words of its process (UserFormat), then looks at the block's state,
// and takes the mark back when it is done. Whoever takes a block away changes the state first, and
// then looks at the marks of all processes. Between the two steps each of them needs a fence, so
// that one sees the other. As long as nothing is evicted, an access goes without:
//
//   cache.U1  The thread that joined marks with a plain store, then looks at `evicting`; if that is
//       not `never`, it marks again by an exchange, which is the fence. Other threads, and what
//       takes long, always mark by an exchange or the like.
//   cache.U2  Whoever is first to evict sets `starting`, and has the kernel wait until every thread
//       of the machine has passed a fence (MEMBARRIER_CMD_GLOBAL, which waits for all processors
//       and needs no registration; that of MEMBARRIER_CMD_GLOBAL_EXPEDITED does not reach all of
//       them). An access that saw `never` has looked before that fence, and so its mark is seen
//       after it; all that come later see `starting`. Then it sets `begun`, without which nobody
//       looks at marks.
//   cache.U3  A mark covers all that its access does with the block: also its journal entry, as
//       long as that intends something. Marks of the dead count as long as their entry in the table
//       of owners (cache.O2), and so until what they intended is done; who gets the number next
//       takes them back.
//   cache.U4  Whoever has a mark does not wait for a block that somebody has, as that one may be
//       waiting for the mark; or else the wait has a bound.
//
// Where the kernel has no such barrier nothing is evicted.
//
// Threads: any. Failure: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "parts/part_format.hpp"

namespace perdure {

// What tells the threads of a process apart, without a call.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit char thread_at = 0;

class PartUsers {
 public:
  explicit PartUsers(PartStateFormat& state) : state_(state) {}
  PartUsers(const PartUsers&) = delete;
  PartUsers& operator=(const PartUsers&) = delete;

  // From now on this process's accesses are marked. By the thread that is to do most of them.
  void join(std::uint32_t number);
  // After the last access.
  void leave() { own_ = nullptr; }
  // cache.U2. False: there is no barrier here.
  bool begin_evicting();
  bool is_evicting() const {
    return word(state_.evicting).load(std::memory_order_acquire) ==
           static_cast<std::uint64_t>(EvictingState::begun);
  }
  // The number of a process, from `first` on, that has the block marked, dead or alive; 0: none.
  std::uint32_t find_user(std::uint64_t block, std::uint32_t first) const;

  class ShortMark;
  class Mark;

 private:
  // A word of this process that says what is under way; the lowest bit: it is a count. 0: none, as
  // nobody wants to know.
  using Place = std::uintptr_t;
  static Place take(UserFormat& own, std::uint64_t block) noexcept;
  static Place take_any(UserFormat& own) noexcept;
  static void give(Place place) noexcept;
  static std::uint64_t& word_at(Place place) {
    return *reinterpret_cast<std::uint64_t*>(place & ~Place{1});
  }
  static const char* this_thread() { return &thread_at; }

  PartStateFormat& state_;
  UserFormat* own_ = nullptr;
  std::atomic<const char*> joined_{nullptr};  // the thread that did
};

// Of a short access to one block. A thread has one at a time.
class PartUsers::ShortMark {
 public:
  ShortMark(const PartUsers& users, std::uint64_t block) {
    if (users.own_ == nullptr) return;
    if (users.joined_.load(std::memory_order_relaxed) != this_thread()) [[unlikely]] {
      place_ = take(*users.own_, block);
      return;
    }
    std::uint64_t& first = users.own_->first;
    place_ = reinterpret_cast<Place>(&first);
    word(first).store(block + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (word(users.state_.evicting).load(std::memory_order_relaxed) != 0) [[unlikely]] {
      (void)word(first).exchange(block + 1);  // cache.U1
    }
  }
  ~ShortMark() {
    if (place_ == 0) return;
    if ((place_ & 1) != 0) [[unlikely]] {
      give(place_);
    } else {
      word(word_at(place_)).store(0, std::memory_order_release);
    }
  }
  ShortMark(const ShortMark&) = delete;
  ShortMark& operator=(const ShortMark&) = delete;

 private:
  Place place_ = 0;
};

// Of any access: to one block, or to all of them.
class PartUsers::Mark {
 public:
  Mark(const PartUsers& users, std::uint64_t block) {
    if (users.own_ != nullptr) place_ = take(*users.own_, block);
  }
  explicit Mark(const PartUsers& users) {
    if (users.own_ != nullptr) place_ = take_any(*users.own_);
  }
  ~Mark() { give(place_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  Place place_ = 0;
};

}  // namespace perdure
