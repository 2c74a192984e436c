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
#include <optional>
#include <span>
#include <string>

#include "base/status.hpp"
#include "pool/catalogue.hpp"
#include "pool/companion.hpp"

namespace perdure {

class VersionTaker {
 public:
  VersionTaker() = default;
  VersionTaker(const VersionTaker&) = delete;
  VersionTaker& operator=(const VersionTaker&) = delete;
  virtual ~VersionTaker() = default;

  // What is whole beyond the pool, and how to have it, for the sentence that says that the pool is
  // damaged; or "".
  virtual std::string whole_elsewhere() const { return ""; }

  // [collective] The pool was of another number of ranks, and has become that of these with its
  // newest version, which another restart would find. Versions are taken from this one on, which
  // committed() had, too.
  virtual Status changed(const Catalogue& newest) = 0;
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
  // [collective] What is to be committed with the pool has state elsewhere; `obstacle` says why
  // levels can't keep it, or "". Whether they do; Code::unsupported if they can't and were asked
  // for. If they can't, no version is taken any more.
  virtual Result<bool> admit(const std::string& name, const std::string& obstacle) = 0;
  // [collective] It was admitted, and is part of the newest version, `newest`, and of later ones.
  virtual Status joined(Companion& companion, const Catalogue& newest) = 0;
  // Local. Returns when nobody reads it any more.
  virtual void leaving(Companion& companion) = 0;
  // What this rank's image has of it if the pool, which is at `version`, was made of images and not
  // committed since; empty: it was not, or they do not have it. Until the pool's next version.
  virtual Result<std::optional<HeldShare>> held(const std::string& name, std::uint64_t version) = 0;
  // The program called the pool: an occasion to move messages on, for a short time.
  virtual void progress() = 0;
};

}  // namespace perdure
