// SPDX-License-Identifier: BSD-3-Clause
//
// What slots mean and which version all ranks go back to, against a list of what was done.
//
// Two ranks run every sequence of commits, restores and deletions up to a length, one durable store
// at a time, in every order that the agreements allow. Whatever has happened, a crash then and
// there must lead both back to what the list says; and so must a crash of that recovery.
#include "pool/judgement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>
#include <string>

namespace perdure {
namespace {

using Ring = std::vector<StateWord>;

SlotView whole(const StateWord& word) {
  SlotView view;
  view.state = word;
  if (word.state != SlotState::complete) return view;
  view.body = Catalogue{};
  view.body->version = word.version;
  view.body->parent = parent_of(word);
  return view;
}

std::vector<SlotView> views_of(const Ring& ring) {
  std::vector<SlotView> views;
  for (const StateWord& word : ring) views.push_back(whole(word));
  return views;
}

Ring new_ring(std::uint32_t slots) {
  Ring ring{{SlotState::complete, 0, 0}, {SlotState::open, 1, 0}};
  for (std::uint32_t slot = 2; slot < slots; ++slot) ring.push_back({SlotState::unused, slot, 0});
  return ring;
}

void put(Ring& ring, const StateWord& word) {
  ring[word.version % ring.size()] = word;
}

// What two ranks have done, and what is on their media.
struct Job {
  enum class Step { idle, complete, open_next, restore, erase };
  std::array<Ring, 2> rings;
  Step step = Step::idle;
  std::array<bool, 2> done{};    // this step, on this rank
  std::uint64_t target = 0;      // of restore and erase
  std::uint64_t head = 0;        // acknowledged
  std::uint64_t next = 1;        // number of the next version
  std::set<std::uint64_t> kept;  // versions that all have and nobody deleted

  // For the set of jobs that were seen.
  std::vector<std::uint64_t> key() const {
    std::vector<std::uint64_t> words;
    for (const Ring& ring : rings) {
      for (const StateWord& word : ring) words.push_back(encode_state(word));
    }
    words.insert(words.end(), {static_cast<std::uint64_t>(step), done[0] ? 1U : 0U,
                               done[1] ? 1U : 0U, target, head, next});
    words.insert(words.end(), kept.begin(), kept.end());
    return words;
  }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(rings[0].size()); }
};

// The store that `rank` still has to do in the step.
StateWord store_of(const Job& job) {
  switch (job.step) {
    case Job::Step::complete:
      return state_of(SlotState::complete, job.next, job.head);
    case Job::Step::open_next:
      return state_of(SlotState::open, job.next, job.head);
    case Job::Step::restore:
      return state_of(SlotState::open, job.next, job.target);
    case Job::Step::erase:
    case Job::Step::idle:
      break;
  }
  return {SlotState::deleted, job.target, job.rings[0][job.target % job.slots()].back};
}

void end_step(Job& job) {
  job.done = {};
  const Job::Step ended = job.step;
  job.step = Job::Step::idle;
  if (ended == Job::Step::complete) {
    job.kept.insert(job.next);
    job.head = job.next++;
    job.step = Job::Step::open_next;
  } else if (ended == Job::Step::open_next) {
    if (job.next >= job.slots()) job.kept.erase(job.next - job.slots());
  } else if (ended == Job::Step::restore) {
    job.head = job.target;
  } else if (ended == Job::Step::erase) {
    job.kept.erase(job.target);
  }
}

// All jobs that are one store, or one call, further.
std::vector<Job> successors(const Job& job) {
  std::vector<Job> all;
  const auto begin = [&](Job::Step step, std::uint64_t target) {
    Job further = job;
    further.step = step;
    further.target = target;
    all.push_back(further);
  };
  if (job.step == Job::Step::idle) {
    begin(Job::Step::complete, 0);
    for (const std::uint64_t version : job.kept) {
      begin(Job::Step::restore, version);
      if (version != job.head) begin(Job::Step::erase, version);
    }
    return all;
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    if (job.done[rank]) continue;
    Job further = job;
    put(further.rings[rank], store_of(job));
    further.done[rank] = true;
    if (further.done[0] && further.done[1]) end_step(further);
    all.push_back(further);
  }
  return all;
}

struct Recovery {
  Result<Choice> choice = Status(Code::not_found, "");
  std::array<Judgement, 2> judged;
};

Recovery recover(const std::array<std::vector<SlotView>, 2>& views, bool allow_older) {
  Recovery recovery;
  Positions positions;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    recovery.judged[rank] = judge_slots(views[rank]);
    positions.add(Positions(recovery.judged[rank]));
  }
  const auto slots = static_cast<std::uint32_t>(views[0].size());
  VersionSet lacking;
  for (const Judgement& judged : recovery.judged) {
    const VersionSet its = lacking_versions(judged, positions, slots);
    lacking = {its.base, lacking.bits | its.bits};
  }
  recovery.choice = choose(positions, lacking, slots, allow_older);
  for (const Judgement& judged : recovery.judged) {
    if (!recovery.choice.ok()) break;
    const Status held = check_choice(judged, recovery.choice.value());
    if (!held.ok()) recovery.choice = held;
  }
  return recovery;
}

// What recovery may choose: the list's answer.
std::set<std::uint64_t> allowed(const Job& job) {
  if (job.step == Job::Step::restore && (job.done[0] || job.done[1])) return {job.head, job.target};
  return {job.head};
}

// Settles on one rank, as recover.cpp does: the successor first, then the rest.
void apply(Ring& ring, const Choice& choice) {
  const auto views = views_of(ring);
  put(ring, state_of(SlotState::open, choice.next, choice.version));
  for (std::uint32_t slot = 0; slot < ring.size(); ++slot) {
    if (const auto word = word_without_version(views, slot, choice)) ring[slot] = *word;
  }
}

std::string text(const Job& job) {
  std::string text = "step " + std::to_string(static_cast<int>(job.step)) + " target " +
                     std::to_string(job.target) + " head " + std::to_string(job.head);
  for (const Ring& ring : job.rings) {
    text += " |";
    for (const StateWord& word : ring) {
      text += " " + std::to_string(static_cast<int>(word.state)) + ":" +
              std::to_string(word.version) + "<" + std::to_string(parent_of(word));
    }
  }
  return text;
}

class EveryJob {
 public:
  explicit EveryJob(std::uint32_t slots, std::uint64_t versions) : versions_(versions) {
    Job first;
    first.rings = {new_ring(slots), new_ring(slots)};
    first.kept = {0};
    todo_.push_back(first);
  }

  template <typename Function>
  std::size_t for_each(const Function& function) {
    while (!todo_.empty()) {
      const Job job = todo_.back();
      todo_.pop_back();
      if (job.next > versions_ || !seen_.insert(job.key()).second) continue;
      function(job);
      for (const Job& further : successors(job)) todo_.push_back(further);
    }
    return seen_.size();
  }
  void add(const Job& job) { todo_.push_back(job); }

 private:
  std::uint64_t versions_;
  std::vector<Job> todo_;
  std::set<std::vector<std::uint64_t>> seen_;
};

// Crashes `job` and goes on with what is left.
void crash(const Job& job, EveryJob& jobs) {
  const Recovery recovery = recover({views_of(job.rings[0]), views_of(job.rings[1])}, false);
  ASSERT_TRUE(recovery.choice.ok()) << recovery.choice.status().message() << "\n" << text(job);
  const Choice& choice = recovery.choice.value();
  ASSERT_TRUE(allowed(job).contains(choice.version)) << choice.version << " of " << text(job);
  ASSERT_FALSE(choice.weak || choice.fell_back);
  // No number that was ever committed is given again.
  ASSERT_GE(choice.next, job.next) << text(job);
  for (const std::uint64_t version : job.kept) {
    const bool going = job.step == Job::Step::erase && version == job.target;
    const bool oldest = version + job.slots() <= choice.next;
    ASSERT_TRUE(going || oldest || !choice.lacking.contains(version))
        << version << " of " << text(job);
  }
  for (std::uint64_t version = 0; version < choice.next; ++version) {
    ASSERT_TRUE(job.kept.contains(version) || choice.lacking.contains(version))
        << version << " of " << text(job);
  }
  Job recovered = job;
  apply(recovered.rings[0], choice);
  const auto again = recover({views_of(recovered.rings[0]), views_of(recovered.rings[1])}, false);
  ASSERT_TRUE(again.choice.ok()) << again.choice.status().message() << "\n" << text(recovered);
  ASSERT_EQ(again.choice.value().version, choice.version) << text(recovered);
  ASSERT_EQ(again.choice.value().next, choice.next) << text(recovered);
  apply(recovered.rings[1], choice);
  recovered.step = Job::Step::idle;
  recovered.done = {};
  recovered.target = 0;
  recovered.head = choice.version;
  recovered.next = choice.next;
  std::erase_if(recovered.kept, [&](std::uint64_t v) { return choice.lacking.contains(v); });
  ASSERT_EQ(recovered.rings[0], recovered.rings[1]) << text(recovered);
  jobs.add(recovered);
}

class OfRings : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Slots, OfRings, testing::Values(2, 3, 4));

TEST_P(OfRings, two_ranks_go_back_to_what_was_done_after_a_crash_at_any_store) {
  EveryJob jobs(GetParam(), 8);
  const std::size_t count = jobs.for_each([&](const Job& job) {
    if (!testing::Test::HasFatalFailure()) crash(job, jobs);
  });
  EXPECT_GT(count, 80U);
  RecordProperty("jobs", static_cast<int>(count));
}

// One or two slots that can't be read: an error, or the same answer; never another one, and with
// PERDURE_ALLOW_OLDER never a version that is not whole on both.
TEST_P(OfRings, damage_is_an_error_or_does_not_matter) {
  EveryJob jobs(GetParam(), GetParam() + 2);
  std::uint64_t errors = 0;
  std::uint64_t older = 0;
  jobs.for_each([&](const Job& job) {
    const std::array<std::vector<SlotView>, 2> good = {views_of(job.rings[0]),
                                                       views_of(job.rings[1])};
    const Choice right = recover(good, false).choice.value();
    for (std::uint32_t damaged = 1; damaged < 1U << (2 * GetParam()); ++damaged) {
      if (std::popcount(damaged) > 2) continue;
      for (const bool word : {true, false}) {
        auto views = good;
        for (std::uint32_t i = 0; i < 2 * GetParam(); ++i) {
          if ((damaged >> i & 1) == 0) continue;
          SlotView& view = views[i / GetParam()][i % GetParam()];
          if (word) view.state.reset();
          view.body.reset();
        }
        const auto choice = recover(views, false).choice;
        errors += choice.ok() ? 0U : 1U;
        if (choice.ok()) {
          ASSERT_EQ(choice.value().version, right.version) << damaged << " of " << text(job);
          ASSERT_EQ(choice.value().next, right.next) << damaged << " of " << text(job);
        }
        const auto fallen = recover(views, true).choice;
        if (!fallen.ok() || !fallen.value().fell_back) continue;
        ++older;
        const std::uint64_t version = fallen.value().version;
        for (const auto& slots : views) {
          const SlotView& view = slots[version % GetParam()];
          ASSERT_TRUE(view.body && view.body->version == version);
        }
        ASSERT_NE(fallen.value().next % GetParam(), version % GetParam());
        ASSERT_GE(fallen.value().next, version + 1);
      }
    }
  });
  EXPECT_GT(errors, 100U);
  EXPECT_GT(older, 100U);
}

Catalogue unchecked(std::uint64_t version) {
  Catalogue body;
  body.version = version;
  body.parent = version - 1;
  ArrayEntry entry;
  entry.shape.checksums = false;
  body.arrays.insert(entry);
  return body;
}

// commit.cpp, pool.I5. Rank 0 has committed 9 and begun 10; rank 1 has not opened the slot of 10
// yet, where 10 - N stands; then 9 is damaged on rank 1.
TEST_P(OfRings, what_others_may_have_stored_over_is_believed_only_if_it_can_be_verified) {
  const std::uint32_t slots = GetParam();
  for (const bool checksums : {true, false}) {
    std::array<std::vector<SlotView>, 2> views;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      Ring ring(slots);
      for (std::uint64_t version = 10 - slots; version < 10; ++version) {
        put(ring, state_of(SlotState::complete, version, version - 1));
      }
      if (rank == 0) put(ring, state_of(SlotState::open, 10, 9));
      views[rank] = views_of(ring);
      for (SlotView& view : views[rank]) {
        if (view.body && !checksums) view.body = unchecked(view.body->version);
      }
    }
    SlotView& oldest = views[0][10 % slots];  // rank 0's own body of it is still there
    oldest.body = views[1][10 % slots].body;
    for (std::uint64_t gone = 9; gone > 10 - slots; --gone) {
      views[1][gone % slots].body.reset();
      const auto choice = recover(views, true).choice;
      const std::uint64_t left = gone - 1;
      const bool weak = left == 10 - slots;
      ASSERT_EQ(choice.ok(), checksums || !weak) << choice.status().message();
      if (!choice.ok()) continue;
      EXPECT_EQ(choice.value().version, left);
      EXPECT_EQ(choice.value().weak, weak);
      EXPECT_EQ(choice.value().next, weak ? 11U : 10U);
    }
  }
}

TEST(Judgement, of_a_restore_that_one_rank_has_forgotten_is_damage) {
  Ring restored = new_ring(4);
  for (std::uint64_t v = 1; v <= 3; ++v) put(restored, state_of(SlotState::complete, v, v - 1));
  put(restored, state_of(SlotState::open, 4, 3));
  const Ring before = restored;
  put(restored, state_of(SlotState::complete, 4, 2));  // so all had OPEN(4, 2)
  const auto choice = recover({views_of(restored), views_of(before)}, false).choice;
  EXPECT_EQ(choice.status().code(), Code::damaged);
}

TEST(Judgement, of_a_stale_file_is_damage_although_both_hold_the_older_version) {
  Ring old = new_ring(4);
  put(old, state_of(SlotState::complete, 1, 0));
  put(old, state_of(SlotState::open, 2, 1));
  Ring now = old;
  put(now, state_of(SlotState::complete, 2, 1));
  put(now, state_of(SlotState::open, 3, 2));
  EXPECT_EQ(recover({views_of(now), views_of(old)}, false).choice.status().code(), Code::damaged);
  const auto fallen = recover({views_of(now), views_of(old)}, true).choice;
  ASSERT_TRUE(fallen.ok());
  EXPECT_EQ(fallen.value().version, 1U);
  EXPECT_FALSE(fallen.value().weak);
}

}  // namespace
}  // namespace perdure
