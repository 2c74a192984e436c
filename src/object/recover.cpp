#include "object/recover.hpp"

#include <algorithm>
#include <string>

#include "base/agreement.hpp"

namespace perdure {
namespace {

const Offer* find_offer(const Judgement& judgement, std::uint64_t version) {
  const auto same = [version](const Offer& offer) { return offer.version == version; };
  const auto found = std::find_if(judgement.offers.begin(), judgement.offers.end(), same);
  return found == judgement.offers.end() ? nullptr : &*found;
}

std::string offers_text(const Judgement& judgement) {
  std::string text;
  for (const Offer& offer : judgement.offers) {
    text += (text.empty() ? "" : " and ") + std::to_string(offer.version);
  }
  return text;
}

// All ranks must hold R of one run of the job, and nobody may have seen a newer one completed.
Status check_choice(const Judgement& judgement, const Offer* offer, std::uint64_t version,
                    std::uint64_t floor, bool allow_older) {
  if (offer == nullptr) {
    return {Code::damaged, "the ranks agree on version " + std::to_string(version) +
                               " but this one holds " + offers_text(judgement) +
                               ": its file is from another time, or another rank's is damaged"};
  }
  if (floor > version && !allow_older) {
    return {Code::damaged, "some rank lost version " + std::to_string(floor) +
                               ", which all had committed; only version " +
                               std::to_string(version) +
                               " is left: a file is stale or damaged. Open with "
                               "PERDURE_ALLOW_OLDER to go back to it"};
  }
  return Status::success();
}

}  // namespace

Result<Recovered> choose_version(Group& group, const Slots& slots, bool allow_older) {
  const auto views = slots.read_both();
  auto judged = judge_slots(views, allow_older);
  const Judgement mine = judged.ok() ? judged.value() : Judgement{};
  const std::uint64_t newest = judged.ok() ? mine.offers.front().version : 0;
  std::uint64_t first[] = {~newest, mine.floor, mine.damage.empty() ? 0U : 1U};
  PERDURE_TRY(agree_max(group, judged.ok() ? Status::success() : judged.status(), first));

  const std::uint64_t version = ~first[0];  // the minimum of newest
  const Offer* offer = find_offer(mine, version);
  Status local = check_choice(mine, offer, version, first[1], allow_older);
  const std::uint64_t incarnation = offer == nullptr ? 0 : offer->incarnation;
  std::uint64_t second[] = {incarnation, ~incarnation};
  PERDURE_TRY(agree_max(group, local, second));
  if (second[0] != ~second[1]) {
    return Status(Code::damaged, "version " + std::to_string(version) +
                                     " was written by different runs of the job on different "
                                     "ranks: a rank's file was replaced by an older copy");
  }
  Recovered recovered{*views[offer->slot].body, offer->weak, first[2] != 0 || first[1] > version,
                      mine.damage};
  return recovered;
}

Status settle_version(Device& device, Slots& slots, Group& group, const Recovered& recovered) {
  const std::uint64_t version = recovered.catalogue.version;
  if (recovered.fell_back) {
    // Before any slot that could still offer a newer version is given up, R is complete everywhere.
    slots.store_state({SlotState::complete, version});
    PERDURE_TRY(agree(group, device.fence()));
  }
  // No rank goes on before every rank has opened the successor's slot (commit.cpp, I4).
  return agree(group, open_slot(device, slots, version + 1));
}

}  // namespace perdure
