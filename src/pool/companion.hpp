// SPDX-License-Identifier: BSD-3-Clause
//
// Companion: something that is committed with the versions of a pool, but kept elsewhere, such as
// a cached file. It must be able to go back to what it was when the newest version was committed.
//
// Levels (version_taker.hpp) may keep it with the pool's versions: each rank gives its share of
// what the companion was at a version to its image of it, and the shares of all ranks are all.
//
// Threads: called by the thread that calls the pool, but read_share(), which is called by any.
// Failure: prepare() fails the commit, on all ranks; read_share() fails the taking of a version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace perdure {

// What a rank gives to an image.
struct CompanionShare {
  std::string name;             // of the companion, the same on all ranks
  std::vector<std::byte> head;  // what its owner must know to use the bytes
  std::uint64_t bytes = 0;
};

// What a rank's image has of a companion.
struct HeldShare {
  std::span<const std::byte> head;
  std::span<const std::byte> bytes;
};

class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;

  virtual std::string name() const = 0;  // for sentences
  // What belongs to `version`, which is being made, becomes durable, and nothing is forgotten of
  // the version before. Every rank has done so before the version is decided.
  virtual Status prepare(std::uint64_t version) = 0;
  // The version is decided, and durable; what changes from now on belongs to the next one. Called
  // before any rank that has returned from the commit can change anything. A failure is reported
  // by the next prepare().
  virtual void committed(std::uint64_t version) = 0;
  // Of this rank, of the version that was committed last.
  virtual CompanionShare share() = 0;
  // Bytes of it from `offset` on, as they were at `version`. Until the next version is agreed on,
  // or the companion is removed from the pool.
  virtual Status read_share(std::uint64_t version, std::uint64_t offset,
                            std::span<std::byte> out) = 0;
  // Nobody knows whether the version that was prepared counts: what changed from now on could not
  // be undone, so nothing may change any more.
  virtual void failed(const Status& status) = 0;
  // The pool is closed and not to be called any more; what it was committed with last stays what
  // the companion goes back to.
  virtual void pool_closed() = 0;
};

}  // namespace perdure
