// SPDX-License-Identifier: BSD-3-Clause
//
// Commit: the order of stores, flushes and fences that makes version v the one recovery finds.
//
// Each rank has a ring of N slots, and each array N copies. Version v lives in slot v mod N and
// names, for each array, the copy that holds it. A slot's state word is OPEN(v, p), COMPLETE(v, p)
// or DELETED(v, p), where p is the version that v was made from: v - 1, or, after a restore, an
// older one. The head is the version that the next one is made from; retained are those that stand
// COMPLETE in a slot other than that of the next version.
//
//   0  slot v mod N is OPEN(v, p), durably      (done when p was committed, restored or restarted)
//   1  data to the working copies, changed pages of the catalogue's tree to free ones (if it has
//      one), body to slot v mod N; flush all; fence
//   2  state word := COMPLETE(v, p); flush; fence   <- this store makes v durable on this rank
//   3  agree: all ranks did 2                       <- and this makes it a version of the job
//   4  state word of slot (v + 1) mod N := OPEN(v + 1, v); flush; fence; then commit returns
//
// A restore of r writes OPEN(next, r) over OPEN(next, p), between two agreements. Deleting v writes
// DELETED(v) over COMPLETE(v), between two agreements; v is not the head.
//
// Invariants
//   pool.I1  At every instant the head and all retained versions of a rank have a whole body in a
//       slot that is COMPLETE, and the copies that they name are durable and not being stored to.
//       v's slot is stored to only while it is OPEN (0). The working copy of an array is one that
//       neither the head nor a retained version names (array_copies.hpp, pool.A1). There is one:
//       N copies, and at most N - 1 slots beside v's. 4 opens a slot only after 3, when v is
//       complete, and the slot is that of the oldest version, not v's; a restore opens no slot that
//       was not open. Pages of the tree are to a catalogue what copies are to an array: a body
//       reaches them, and those that the body of the head or of a retained version reaches are not
//       stored to (catalogue_pages.hpp, pool.G1). So parity decides nothing: an array that was
//       closed for a while, or a version on another line, names the copy that it happens to name.
//   pool.I2  COMPLETE(v) is durable only after v's body, pages and data are: the fence of 1 comes
//       before the store of 2, and an 8-byte store does not tear. They need no fence between them,
//       as nobody believes a body whose slot is OPEN, nor a page that none but such a body reaches.
//   pool.I3  If a rank has begun v + 1 (its slot is OPEN(v + 1, v)), every rank has COMPLETE(v): 3.
//       So the tops of two ranks, and their nexts, differ by at most 1, and R, the minimum of their
//       heads, is held by all: a rank whose head is v, not acknowledged, has its parent in another
//       slot, untouched by pool.I1, since it would open that slot only after 3.
//   pool.I4  Recovery to R writes OPEN(next, R) on every rank and then synchronises (recover.cpp),
//       so that no COMPLETE(next) of before the crash can meet one of after it.
//   pool.I5  If commit(v) returned anywhere, 3 had completed: every rank holds COMPLETE(v), so R is
//       v or was made from it or chosen by a restore since. R is never more than the newest begun,
//       as nothing else writes COMPLETE.
//       But a rank may be between 3 and 4, with COMPLETE(v + 1 - N) still in the slot that it is
//       about to open, while another rank whose commit returned already puts data of v + 1 into
//       this rank's copies of v + 1 - N. R is right: it is v on all. Only a recovery that falls
//       back past v because v is damaged can encounter that version: whatever is as old as (newest
//       number that any rank may have begun) - N is then weak, whatever its slot says
//       (judgement.hpp).
//   pool.I6  If a rank fails in 1 or 2, 3 reports it to all; those that had completed v open it
//       again before any rank returns, so that a second try for v does not meet the first one's
//       remains (as pool.I4). So they do if a rank is in another call than this commit, as 3 tells
//       all as well (agreement.hpp, base.M2): what says "3 had completed" below is said of ranks
//       that all commit v.
//   pool.I7  Lineage is in the state word, so that a restore is one 8-byte store on each rank, and
//       no version that it abandoned is ever newest again: not after a crash right after it (heads
//       are r), nor between its ranks (recover.cpp, pool.C1), nor later (only r's descendants
//       follow).
//   pool.I8  All ranks have the same retained versions: commits, restores and deletions are agreed,
//       and recovery drops what some rank lacks. So the same array has the same working copy on all
//       ranks, and a rank may put into another's by the number of its own. Arrays with a writer
//       (twin_writer.hpp) are no part of this: one that is unchanged on a rank keeps its copy there
//       (pool.I1 holds: the head names it still), and nobody else stores to them. Nor are arrays
//       that are marked, whose copies are their own rank's alone: one that was not has no part in
//       v. One that has a spare copy is stored to while v is under way: its working copy is then
//       one that neither a slot nor v names (VersionedArray::move_on()), and stays the working one
//       when v is committed.
//   pool.I9  A version that is acknowledged can be found again: between 2 and 3 each rank looks
//       whether its file still has a name and its size. A file that a cleaner removed would take
//       every store and give none back. Before 1 it looks whether the file is still what its path
//       leads to, as a pool that was renamed, or exchanged for a copy, is not what a restart finds;
//       that at most once in a millisecond. What happens after these looks is found by the next
//       commit.
//   pool.I10 Whoever takes versions to other levels (version_taker.hpp) reads v until v + N - 1 is
//       under way on this rank: it is asked to be done before 3 of that commit, after which another
//       rank may put into the copies of v (pool.I5). What it tells the other ranks travels with 3.
//
// This is the pairing "barrier after the slot write, recovery to the minimum". The other right one
// is "barrier before it, recovery to the maximum"; the mixed ones are wrong. tests/spin/commit.pml
// checks this protocol and that each of its parts is needed.
#include "pool/commit.hpp"

#include "base/agreement.hpp"

namespace perdure {
namespace {

// Steps 1 and 2 on this rank.
Status complete_locally(const CommitParties& parties, const Catalogue& next, const Status& data) {
  PERDURE_TRY(data);
  PERDURE_TRY(parties.slots.store_body(next, &parties.pages));
  parties.run_page.rehearse(KillPoint::data, next.version, parties.iteration);
  PERDURE_TRY(parties.device.fence());  // 1  data and body are durable (pool.I2)
  parties.run_page.rehearse(KillPoint::slot, next.version, parties.iteration);
  parties.slots.store_state(state_of(SlotState::complete, next.version, next.parent));
  PERDURE_TRY(parties.device.fence());  // 2  the version is durable on this rank
  parties.run_page.rehearse(KillPoint::state, next.version, parties.iteration);
  return parties.device.check();  // pool.I9
}

Status open_again(const CommitParties& parties, const Catalogue& next) {
  return open_slot(parties.device, parties.slots, next.version, next.parent);
}

// pool.I6: leaves no COMPLETE of `next` on any rank.
CommitResult retract(const CommitParties& parties, const Catalogue& next, const Status& cause) {
  const Status opened = agree(parties.group, open_again(parties, next));
  if (opened.ok()) return {CommitOutcome::retracted, cause};
  return {CommitOutcome::unknown, cause};
}

}  // namespace

Status open_slot(Device& device, Slots& slots, std::uint64_t version, std::uint64_t parent) {
  slots.store_state(state_of(SlotState::open, version, parent));
  return device.fence();
}

Status delete_slot(Device& device, Slots& slots, std::uint64_t version, std::uint64_t parent) {
  slots.store_state(state_of(SlotState::deleted, version, parent));
  return device.fence();
}

CommitResult commit_version(const CommitParties& parties, const Catalogue& next,
                            const Status& data) {
  const Status local = complete_locally(parties, next, data);
  const auto reopen = [&] { return open_again(parties, next); };  // as retract() does
  const Status all = agree_max(parties.group, local, parties.words, parties.subject, reopen);  // 3
  if (is_undone_mismatch(parties.group, all)) return {CommitOutcome::retracted, all};
  if (!all.ok()) {
    const bool agreed = !local.ok() || all.code() == Code::peer_failed;
    return agreed ? retract(parties, next, all) : CommitResult{CommitOutcome::unknown, all};
  }
  parties.run_page.rehearse(KillPoint::agreed, next.version, parties.iteration);
  // 4. A failure here does not undo v; the next commit would find its slot not open, so it is
  // reported.
  Status opened = open_slot(parties.device, parties.slots, next.version + 1, next.version);
  return {CommitOutcome::committed, opened};
}

}  // namespace perdure
