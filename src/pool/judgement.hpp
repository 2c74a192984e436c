// SPDX-License-Identifier: BSD-3-Clause
//
// Judgement: what the slots of a rank mean after a crash, and which version all ranks go back to.
//
// Pure, so that its test runs every combination of slot states. The order of the exchanges between
// the ranks is in recover.cpp, which together with commit.cpp says why the rules are right.
//
// Words
//   top   the highest number in any slot: open, or complete
//   next  the number that this rank would commit as next: the top if that is open, else top + 1
//   head  the version that this rank goes on from: the top if that is complete, else its parent
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pool/slots.hpp"

namespace perdure {

// A version whose body is whole on this rank.
struct Offer {
  std::uint64_t version = 0;
  std::uint64_t parent = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t slot = 0;
  bool reopened = false;   // its slot is open again: data may have been stored over it
  bool checkable = false;  // all its arrays have checksums, or no versions
};

// What one rank can say of its own slots.
struct Judgement {
  std::uint64_t top = 0;
  bool top_complete = false;
  std::uint64_t head = 0;
  std::vector<Offer> offers;  // newest first
  std::string damage;         // empty, or what no crash leaves behind; then head says nothing
  bool unsure = false;        // damage may hide a newer version

  std::uint64_t next() const { return top_complete ? top + 1 : top; }
  std::uint64_t top_parent() const;  // of a complete top
  const Offer* find(std::uint64_t version) const;
};

Judgement judge_slots(const std::vector<SlotView>& slots);

// What all ranks together know; every element is the maximum over the ranks, some of a complement.
class Positions {
 public:
  Positions() = default;
  explicit Positions(const Judgement& judgement);

  std::span<std::uint64_t> words() { return words_; }  // to be exchanged
  void add(const Positions& other);

  std::uint64_t top_max() const { return words_[0]; }
  std::uint64_t next_min() const { return ~words_[1]; }
  std::uint64_t next_max() const { return words_[2]; }
  std::uint64_t head_min() const { return ~words_[3]; }
  bool damaged() const { return words_[4] != 0; }
  bool unsure() const { return words_[5] != 0; }

  void set_damaged() { words_[4] = 1; }

  // A rank has lost a version that all had completed, or can't tell.
  bool lost() const;

 private:
  std::array<std::uint64_t, 6> words_{};
};

// A set of versions: those that are older than `base` by 1 to 64 and have their bit (bit i is
// version base - 1 - i), and all that are not older, or older by more.
struct VersionSet {
  std::uint64_t base = 0;
  std::uint64_t bits = 0;
  bool contains(std::uint64_t version) const;
};

// The versions that this rank cannot give back; OR over all ranks gives those that the job lacks.
VersionSet lacking_versions(const Judgement& judgement, const Positions& positions,
                            std::uint32_t slots);

struct Choice {
  std::uint64_t version = 0;  // R
  std::uint64_t next = 0;     // the number of the version that comes after it
  bool weak = false;          // its data must be verified before it is believed
  bool fell_back = false;     // newer versions are lost
  VersionSet lacking;         // all but these are kept

  bool possible() const { return !lacking.contains(version); }
};

// R. Code::damaged if no version is whole on all ranks, or if some were lost and not `allow_older`.
Result<Choice> choose(const Positions& positions, const VersionSet& lacking, std::uint32_t slots,
                      bool allow_older);

// Errors of this rank: R is not on all, or it is not what this rank's unfinished top was made from.
Status check_choice(const Judgement& judgement, const Choice& choice);

// What the state word of `slot` becomes once R is the newest version; absent: it stays. A version
// that some rank lacks is deleted.
std::optional<StateWord> word_without_version(const std::vector<SlotView>& slots,
                                              std::uint32_t slot, const Choice& choice);

}  // namespace perdure
