// SPDX-License-Identifier: BSD-3-Clause
//
// Companion: something that is committed with the versions of a pool, but kept elsewhere, such as
// a cached file. It must be able to go back to what it was when the newest version was committed.
//
// Threads: called by the thread that calls the pool. Failure: prepare() fails the commit, on all
// ranks.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace perdure {

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
  // The pool is closed and not to be called any more; what it was committed with last stays what
  // the companion goes back to.
  virtual void pool_closed() = 0;
};

}  // namespace perdure
