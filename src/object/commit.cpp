// Commit: the order of stores, flushes and fences that makes version v the one recovery finds.
//
// Each rank has two slots and each array two halves. Version v lives in slot v mod 2 and names, for
// each array, the half that holds it. A slot's state word is COMPLETE(v) or OPEN(v).
//
//   0  slot v mod 2 is OPEN(v), durably       (done when v - 1 was committed, or by restart)
//   1  data to the working halves, body to slot v mod 2; flush both; fence
//   2  state word := COMPLETE(v); flush; fence    <- this store makes v durable on this rank
//   3  agree: all ranks did 2                     <- and this makes it a version of the job
//   4  state word of slot (v + 1) mod 2 := OPEN(v + 1); flush; fence; then commit returns
//
// Invariants
//   I1  At every instant a rank has a slot that is COMPLETE with a whole body, and the halves that
//       it names are durable and not being stored to.
//       v's slot and halves are stored to only while they are OPEN (0), and they are not the ones
//       that v - 1 names (parity; halves swap with every version). 4 opens the slot of v - 1 only
//       after 3, when v is complete.
//   I2  COMPLETE(v) is durable only after v's body and data are: the fence of 1 stands before the
//       store of 2, and an 8-byte store does not tear. Data and body need no fence between them,
//       as nobody believes a body whose slot is OPEN.
//   I3  If a rank has begun v + 1 (its slot is OPEN(v + 1)), every rank has COMPLETE(v): 3.
//       So the newest complete versions of two ranks differ by at most 1, and their minimum R is
//       held by all: a rank at R + 1 has R in its other slot, untouched, by I1 with I3, since it
//       would store there only for R + 2, which needs COMPLETE(R + 1) on every rank.
//   I4  Recovery to R opens slot (R + 1) mod 2 on every rank and then synchronises (recover.cpp),
//   so
//       that no COMPLETE(R + 1) of before the crash can meet one of after it.
//   I5  If commit(v) returned anywhere, 3 had completed: every rank holds COMPLETE(v), so R >= v.
//       R is never more than the newest begun, as nothing else writes COMPLETE.
//   I6  If a rank fails in 1 or 2, 3 tells all; those that had completed v open it again before any
//       rank returns, so that a second try for v does not meet the first one's remains (as I4).
//
// This is the pairing "barrier after the slot write, recovery to the minimum". The other right one
// is "barrier before it, recovery to the maximum"; the mixed ones are wrong. tests/spin/commit.pml
// checks this protocol and that each of its parts is needed.
#include "object/commit.hpp"

#include "base/agreement.hpp"

namespace perdure {
namespace {

// Steps 1 and 2 on this rank.
Status complete_locally(const CommitParties& parties, const Catalogue& next, const Status& data) {
  PERDURE_TRY(data);
  PERDURE_TRY(parties.slots.store_body(next));
  parties.run_page.rehearse(KillPoint::data, next.version, parties.iteration);
  PERDURE_TRY(parties.device.fence());  // 1  data and body are durable (I2)
  parties.run_page.rehearse(KillPoint::slot, next.version, parties.iteration);
  parties.slots.store_state({SlotState::complete, next.version});
  PERDURE_TRY(parties.device.fence());  // 2  the version is durable on this rank
  parties.run_page.rehearse(KillPoint::state, next.version, parties.iteration);
  return Status::success();
}

// I6: leaves no COMPLETE(version) behind on any rank.
CommitResult retract(const CommitParties& parties, std::uint64_t version, const Status& cause) {
  const Status opened = agree(parties.group, open_slot(parties.device, parties.slots, version));
  if (opened.ok()) return {CommitOutcome::retracted, cause};
  return {CommitOutcome::unknown, cause};
}

}  // namespace

Status open_slot(Device& device, Slots& slots, std::uint64_t version) {
  slots.store_state({SlotState::open, version});
  return device.fence();
}

CommitResult commit_version(const CommitParties& parties, const Catalogue& next,
                            const Status& data) {
  const Status local = complete_locally(parties, next, data);
  const Status all = agree(parties.group, local);  // 3
  if (!all.ok()) {
    const bool agreed = !local.ok() || all.code() == Code::peer_failed;
    return agreed ? retract(parties, next.version, all) : CommitResult{CommitOutcome::unknown, all};
  }
  parties.run_page.rehearse(KillPoint::agreed, next.version, parties.iteration);
  // 4. A failure here does not undo v; the next commit would find its slot not open, so it is told.
  Status opened = open_slot(parties.device, parties.slots, next.version + 1);
  return {CommitOutcome::committed, opened};
}

}  // namespace perdure
