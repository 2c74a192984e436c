// SPDX-License-Identifier: BSD-3-Clause
//
// Commit under way: the version that is being made, from the moment in which its contents are fixed
// until commit.cpp has made it exist or not.
//
// VersionUnderWay is the version. A synchronous commit has it on its stack. One whose end is
// another call leaves it in CommitUnderWay, which holds at most one, and by its type knows which
// call that is. To finish a commit takes a version out of it, so what was not begun can't be waited
// for, and nothing is finished twice.
//
// Threads: as the pool. Failure: a step that failed on this rank is kept as `begun`, and the call
// that ends the commit reports it to the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/agreement.hpp"
#include "base/assert.hpp"
#include "base/status.hpp"
#include "pool/catalogue.hpp"
#include "pool/retained.hpp"
#include "pool/run_page.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

struct VersionUnderWay {
  struct Participant {
    VersionedArray* array;
    ArrayId entry;       // in catalogue.arrays
    bool named = false;  // there: which copy was saved
  };
  // Closed while it takes part.
  struct RetiredArray {
    std::unique_ptr<VersionedArray> array;
    bool erase;
  };

  Catalogue catalogue;
  ArrayTable begun_from;  // its arrays, before the copies that were saved were named
  std::vector<Participant> participants;
  std::vector<RetiredArray> retired;
  std::uint64_t iteration = no_iteration;
  About about = About::version;
  Status begun;           // what this rank did of it so far
  bool is_saved = false;  // the working copies are up to date, or `begun` says why not
  std::uint64_t saved_bytes = 0;
  std::uint64_t blocked_ns = 0;  // how long the application has waited for it

  Subject subject() const { return {about, catalogue.version}; }
  bool has(const VersionedArray& array) const;
  void add(VersionedArray& array, ArrayId entry);
  std::vector<VersionedArray*> arrays() const;
  // Local, before any store to a working copy.
  Status collect_changes() const;
  // Brings the working copies up to date, except for the fence; adds to `bytes`.
  Status save(const RunPage& run_page, std::uint64_t& bytes) const;
  // The copies that were saved are those of the version.
  void name_copies();
  // That of this array, whose size changes now, when it is saved.
  void name_copy_of(const VersionedArray& array);
  // It exists, as `retained` knows: its copies are the committed ones, and `open_slot` names none.
  void take_roles(const Retained& retained, std::uint32_t open_slot) const;
  // It does not exist.
  void retract() const;
};

class CommitUnderWay {
 public:
  // Of commit_capture(): commit_captured() ends it, and saves the arrays unless commit_save() did.
  void capture(VersionUnderWay version) { put<Captured>(std::move(version)); }
  // Of commit_begin() and commit_staged(): the background saver has the arrays, unless the version
  // could not be begun here; commit_wait() ends it.
  void save(VersionUnderWay version) { put<Saving>(std::move(version)); }
  void save_staged(VersionUnderWay version) { put<SavingStaged>(std::move(version)); }
  void fail(VersionUnderWay version) { put<Failed>(std::move(version)); }

  // commit_wait() is to be called.
  bool pending() const { return pending_version() != nullptr; }
  const VersionUnderWay* pending_version() const;
  VersionUnderWay* pending_version();
  // The saver has its arrays: their buffers themselves, or what was staged of them.
  bool saving() const { return saving_buffers() || std::holds_alternative<SavingStaged>(state_); }
  bool saving_buffers() const { return std::holds_alternative<Saving>(state_); }
  VersionUnderWay& captured();
  VersionUnderWay* captured_version();  // null: there is none

  // Nothing is under way then. There must be a version of that kind.
  VersionUnderWay take_captured() { return take(&captured()); }
  VersionUnderWay take_pending() { return take(pending_version()); }

 private:
  struct None {};
  struct Captured {
    VersionUnderWay version;
  };
  struct Saving {
    VersionUnderWay version;
  };
  struct SavingStaged {
    VersionUnderWay version;
  };
  struct Failed {
    VersionUnderWay version;
  };

  template <typename State>
  void put(VersionUnderWay version) {
    PERDURE_ASSERT(std::holds_alternative<None>(state_));
    state_ = State{std::move(version)};
  }
  VersionUnderWay take(VersionUnderWay* version);

  std::variant<None, Captured, Saving, SavingStaged, Failed> state_;
};

}  // namespace perdure
