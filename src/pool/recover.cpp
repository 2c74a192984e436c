// SPDX-License-Identifier: BSD-3-Clause
//
// Recovery: what is in the slots after a crash, and why the choice is right. The states, the
// steps 0 to 4 of a commit and the invariants pool.I1 to pool.I7 are in commit.cpp; top, next and
// head in judgement.hpp.
//
// A crash leaves all ranks in one of these situations (v > 0 is a version under way, p its parent):
//
//   commit of v      each rank OPEN(v, p) or COMPLETE(v, p); heads p or v
//   step 4 of v      each rank COMPLETE(v), and some OPEN(v + 1, v) beside it; all heads v
//   restore of r     each rank OPEN(t, p) or OPEN(t, r); heads p or r; or, where step 4 failed,
//                    COMPLETE(p) instead of OPEN(t, p)
//   finishing at R   each rank as in one of the situations above, or OPEN(next, R)
//
// Choice
//   pool.C1  R is the minimum of the heads. A commit counts when all ranks completed it: in its
//       situation the minimum is v then, and p otherwise. If a restore goes to an older version,
//       the minimum is r from the first rank on that has written; if it goes to a newer one (that
//       was abandoned before), from the last one on. Either way all ranks choose the same, and once
//       restore has returned on any rank, all have written, and R is r or a descendant of it.
//   pool.C2  All ranks hold R: p, v and r are versions that all had completed, and the slots of p
//       and r are not stored to while a version is under way (pool.I1). So is the slot of every
//       retained version. Deleting one (DELETED(w), w not the head) takes it from the offers of
//       this rank, and so, as only what all ranks offer is kept, from the job.
//   pool.C3  next is the minimum of the ranks' nexts. A rank whose next is larger by 1 has
//       COMPLETE(v) that others lack, v = next: its slot is opened again, so that no COMPLETE(next)
//       of before the crash can meet one of after it (pool.I4). No two versions that were ever
//       committed have one number, as a number below next is never given again.
//   pool.C4  A top above next is impossible: a rank writes OPEN(t) only after all have completed t
//       - 1, and COMPLETE(t) only after all could write OPEN(t). So some rank lost what it had.
//   pool.C5  A rank with COMPLETE(next) had every other rank's OPEN(next, p) before it with the
//       same p (pool.I4, pool.I7). If p is not R, some rank's file is from before that restore.
//
// Settling: OPEN(next, R) on all; then versions that some rank lacks are DELETED. They count for
// nothing from the choice on (Pool::read_retained()), so that all ranks pick the same working
// copies: none can be chosen any more, as not all offer it. OPEN first: until it is durable on a
// rank, that rank's top is what says where it stands, and must not be deleted. Until all have
// written OPEN, pool.C1 gives R again: the heads of those that have are R, all others are not
// smaller. No rank commits before.
//
// Falling back (only if asked for, when a rank lost versions)
//   R is the newest version that is whole on all ranks, and that no rank's head shows to be given
//   up by a restore. What is whole by its slot may have been
//   stored over: see pool.I5 in commit.cpp. Such a version is weak: it is verified by its
//   checksums, and is no choice if an array has none. next is then the largest of the nexts, or the
//   number after that, so that R's slot stays. First R is complete on all ranks, then the rest is
//   given up.
#include "pool/recover.hpp"

#include <bit>

#include "base/agreement.hpp"
#include "pool/commit.hpp"

namespace perdure {
namespace {

// One exchange: which versions some rank lacks, and what follows. With errors of all ranks.
Result<Choice> exchange_versions(Group& group, const Judgement& mine, const Positions& positions,
                                 std::uint32_t slots, bool allow_older) {
  VersionSet lacking = lacking_versions(mine, positions, slots);
  PERDURE_TRY(agree_any(group, Status::success(), lacking.bits));
  return choose(positions, lacking, slots, allow_older);
}

// All ranks must hold R of one run of the job.
Status agree_on_incarnation(Group& group, const Status& local, std::uint64_t incarnation,
                            std::uint64_t version) {
  std::uint64_t values[] = {incarnation, ~incarnation};
  PERDURE_TRY(agree_max(group, local, values));
  if (values[0] == ~values[1]) return Status::success();
  return Status(Code::damaged, "version ", version,
                " was written by different runs of the job on different ranks: a rank's file was "
                "replaced by an older copy");
}

}  // namespace

Result<Recovered> choose_version(Group& group, const Slots& slots, bool allow_older) {
  Recovered recovered;
  recovered.slots = slots.read_all();
  const Judgement mine = judge_slots(recovered.slots);
  recovered.explanation = mine.damage;
  Positions positions(mine);
  const bool refused = !mine.damage.empty() && !allow_older;
  const Status local = refused ? Status(Code::damaged, "rank ", group.rank(), ", ", slots.medium(),
                                        ": ", mine.damage)
                               : Status::success();
  PERDURE_TRY(agree_max(group, local, positions.words()));

  auto chosen = exchange_versions(group, mine, positions, slots.count(), allow_older);
  if (chosen.ok() && !chosen.value().possible() && allow_older) {
    positions.set_damaged();
    chosen = exchange_versions(group, mine, positions, slots.count(), allow_older);
  }
  if (!chosen.ok()) return chosen.status();  // the same on all ranks
  recovered.choice = chosen.take();
  const std::uint64_t version = recovered.choice.version;
  const Status held = check_choice(mine, recovered.choice);
  const Offer* offer = held.ok() ? mine.find(version) : nullptr;
  PERDURE_TRY(
      agree_on_incarnation(group, held, offer == nullptr ? 0 : offer->incarnation, version));
  recovered.catalogue = *recovered.slots[offer->slot].body;
  return recovered;
}

Status finish_recovery(Device& device, Slots& slots, Group& group, const Recovered& recovered,
                       const std::function<Status()>& when_newest) {
  const Choice& choice = recovered.choice;
  if (choice.fell_back) {
    // Before any slot that could still offer a newer version is given up, R is complete everywhere.
    slots.store_state(state_of(SlotState::complete, choice.version, recovered.catalogue.parent));
    PERDURE_TRY(agree(group, device.fence()));
  }
  // No rank goes on before every rank has opened the successor's slot (commit.cpp, pool.I4).
  PERDURE_TRY(agree(group, open_slot(device, slots, choice.next, choice.version)));
  for (std::uint32_t slot = 0; slot < slots.count(); ++slot) {
    const auto word = word_without_version(recovered.slots, slot, choice);
    if (word) slots.store_state(*word);
  }
  Status settled = device.fence();
  if (settled.ok()) settled = when_newest();
  return agree(group, settled);
}

}  // namespace perdure
