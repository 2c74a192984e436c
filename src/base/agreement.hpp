// SPDX-License-Identifier: BSD-3-Clause
//
// Agreement: what all ranks of a group think of a step that each did alone.
//
// Each exchange of words says which collective call it is a step of: its name, how many calls the
// rank has made before it, and what it is about (a version, for example). If these differ, ranks
// are in calls that do not belong together. Then the call has failed on all of them, with one
// sentence that names two of the calls and their ranks, and nobody goes on with it:
//
//   base.M1  All learn of it from the same exchange, as it has the largest and the smallest of all
//       tags.
//   base.M2  Each rank undoes what it has done of its call, and then they exchange once more, so
//       that no rank begins another call while another still has something of this one.
//   base.M3  What the call would still exchange is not sent: it fails with the same sentence. So
//       all ranks leave their calls after as many exchanges, and what each calls next meets what
//       the others call next, under the same count.
//   base.M4  Exchanges that may be the first of their calls have one size, as a message library
//       pairs only such as are equally long.
//   base.M5  If the call of a rank ends its part in the group (a pool is closed), there is nobody
//       to meet any more: all later calls of the others fail at once, without an exchange.
//
// Threads: as the group. Failure: of the exchange itself as Group says.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/group.hpp"
#include "base/status.hpp"

namespace perdure {

// From here to its end all exchanges of the group are of the collective call `name`, a text that
// stays; of the outermost one, if a call is made of others. Local.
class CollectiveCall {
 public:
  enum class Kind { step, last };  // last: this rank leaves the group with it

  CollectiveCall(Group& group, const char* name, Kind kind = Kind::step);
  CollectiveCall(Group& group, const char* name, std::uint64_t file);
  ~CollectiveCall();
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

 private:
  Group* group_;  // null: it is a part of another one
};

// What the exchange is about, equal on all ranks whose part in it did not fail.
enum class About : std::uint64_t {
  nothing,
  version,   // that is committed now
  begun,     // a version whose contents were fixed by an earlier call
  staging,   // a version whose contents are fixed now, and which a later call commits
  restored,  // a version to go to
  deleted,   // a version
};
struct Subject {
  About about = About::nothing;
  std::uint64_t number = 0;
};

// Undoes what this rank has done of a call that turns out to be another one elsewhere.
using Undo = std::function<Status()>;

// Collective, and a barrier: success if every rank's `local` is success. Otherwise a rank that
// failed gets its own status back and the others Code::peer_failed, which names the lowest rank
// that failed and its error. Code::invalid_argument on all ranks if their calls do not match.
Status agree(Group& group, const Status& local, const Subject& subject = {});

// The same, with each bit of `bits` set if it is set on any rank. One exchange of 69 words; never
// the first of a call.
Status agree_any(Group& group, const Status& local, std::uint64_t& bits);

// The same as agree(), with `values` replaced by their maxima over the ranks (of all ranks, also
// failed ones), unless the calls do not match. The first of a call has at most 3.
Status agree_max(Group& group, const Status& local, std::span<std::uint64_t> values,
                 const Subject& subject = {}, const Undo& undo = {});

// Collective: whether it is so on any rank.
inline Result<bool> is_on_any(Group& group, bool here) {
  std::uint64_t words[] = {here ? 1U : 0U};
  PERDURE_TRY(agree_max(group, Status::success(), words));
  return words[0] != 0;
}

// Collective: whether `word` is the same on all ranks.
inline Result<bool> is_same_on_all(Group& group, const Status& local, std::uint64_t word) {
  std::uint64_t words[] = {word, ~word};
  PERDURE_TRY(agree_max(group, local, words));
  return words[0] == ~words[1];
}

// The calls did not match, all ranks know it, and none has anything of them left.
bool is_undone_mismatch(Group& group, const Status& agreed);

// Success unless a rank has left (base.M5).
inline Status check_all_there(Group& group) {
  return group.call().gone;
}

}  // namespace perdure
