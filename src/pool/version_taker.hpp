// SPDX-License-Identifier: BSD-3-Clause
//
// Version taker: takes versions of a pool to other levels (levels/levels.hpp), beside the program.
//
// What it needs of a commit is no message of its own: its words travel with the agreement that
// there is anyhow.
//
// Threads: called by the thread that calls the pool.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

class VersionTaker {
 public:
  VersionTaker() = default;
  VersionTaker(const VersionTaker&) = delete;
  VersionTaker& operator=(const VersionTaker&) = delete;
  virtual ~VersionTaker() = default;

  // Local. Versions up to this number may be stored over from now on: returns when nobody reads
  // them any more. Before the ranks agree on a commit, as another rank that has returned from it
  // may put into this one's arrays.
  virtual void release(std::uint64_t version) = 0;
  // Of this rank; in the commit's agreement each is replaced by the largest of all ranks'. At most
  // 6, as many on all ranks.
  virtual std::span<std::uint64_t> words() = 0;
  // The version exists on all ranks, and words() are those of all. The pool keeps it until
  // release().
  virtual void committed(const Catalogue& catalogue) = 0;
  // [collective] The pool goes to another version: what was taken of newer ones, which are of
  // incarnations up to this one, is abandoned, durably. Between two agreements.
  virtual Status restoring(const Catalogue& target, std::uint64_t incarnation) = 0;
  // [collective] It has gone there, on all ranks.
  virtual Status restored(const Catalogue& target) = 0;
  // What is to be committed with the pool has state elsewhere. Code::unsupported if that can't be
  // given to the levels that were asked for.
  virtual Status check_companion(const std::string& name) = 0;
  // The program called the pool: an occasion to move messages on, for a short time.
  virtual void progress() = 0;
};

}  // namespace perdure
