// SPDX-License-Identifier: BSD-3-Clause
//
// Which level a start takes its version from: of every small world, and of random larger ones, what
// is chosen is the newest of all that count, as these are listed one by one here.
// ctest: NAME levels_plan_test
#include "levels/choice.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t versions = 3;
constexpr std::uint32_t lineages = 3;

// A version of a lineage.
struct Made {
  std::uint32_t lineage = 0;
  std::uint64_t version = 0;
  bool operator==(const Made&) const = default;
};

VersionId id_of(const Made& made) {
  return {10 * (made.lineage + 1), made.version};
}
JobId job_id() {
  return {{7, 7}};
}
// The first one is that of the job.
JobId lineage_id(std::uint32_t lineage) {
  return lineage == 0 ? job_id() : JobId{{7, 100 + lineage}};
}

struct Drained {
  std::array<std::uint32_t, lineages> made = {};  // bit v: version v
  std::optional<std::uint32_t> newest;            // lineage of the newest lease
};

struct World {
  // What lineages 1 and 2 were made from.
  std::array<Made, lineages> origin = {};
  std::uint32_t ranks = 2;
  bool nodes_know = true;
  // By lineage and version: ranks whose image, and whose guard, some node has.
  std::array<std::array<std::uint32_t, versions + 1>, lineages> images = {};
  std::array<std::array<std::uint32_t, versions + 1>, lineages> guards = {};
  std::optional<Made> files;  // that ranks' files hold
  bool restored = false;
  std::vector<Drained> drains;

  // What `lineage` was made from, oldest first.
  std::vector<Made> ancestors(std::uint32_t lineage) const {
    if (lineage == 0) return {};
    std::vector<Made> all = ancestors(origin[lineage].lineage);
    all.push_back(origin[lineage]);
    return all;
  }
  bool is_in_history(const Made& made, std::uint32_t lineage) const {
    if (made.lineage == lineage) return true;
    const auto all = ancestors(lineage);
    return std::ranges::any_of(all, [&made](const Made& each) {
      return each.lineage == made.lineage && made.version <= each.version;
    });
  }
  bool exists(const Made& made) const {
    return made.version > (made.lineage == 0 ? 0 : origin[made.lineage].version);
  }
  std::vector<Made> all_made() const {
    std::vector<Made> all;
    for (std::uint32_t lineage = 0; lineage < lineages; ++lineage) {
      for (std::uint64_t version = 1; version <= versions; ++version) {
        if (exists({lineage, version})) all.push_back({lineage, version});
      }
    }
    return all;
  }
  // Whoever made something last.
  std::uint32_t lineage_of_nodes() const {
    std::uint32_t newest = files ? files->lineage : 0;
    for (const Made& made : all_made()) {
      if ((images[made.lineage][made.version] | guards[made.lineage][made.version]) != 0) {
        newest = std::max(newest, made.lineage);
      }
    }
    return newest;
  }
  // Ranks guard each other's images in pairs.
  bool images_give(const Made& made) const {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const bool own = (images[made.lineage][made.version] >> rank & 1) != 0;
      const bool guarded = (guards[made.lineage][made.version] >> (rank ^ 1U) & 1) != 0;
      if (!own && !guarded) return false;
    }
    return true;
  }
  bool pool_counts() const { return nodes_know && files && files->lineage == lineage_of_nodes(); }
};

FoundVersions versions_of(const World& world, const Drained& drained, std::uint32_t lineage) {
  FoundVersions found;
  for (const Made& each : world.ancestors(lineage)) {
    found.ancestors.push_back({lineage_id(each.lineage), id_of(each)});
  }
  for (const Made& made : world.all_made()) {
    if ((drained.made[made.lineage] >> made.version & 1) == 0) continue;
    if (!world.is_in_history(made, lineage)) continue;
    Manifest manifest;
    manifest.job.job_id = job_id();
    manifest.job.lineage = lineage_id(made.lineage);
    manifest.id = id_of(made);
    found.manifests.insert(found.manifests.begin(), manifest);
  }
  std::ranges::sort(found.manifests,
                    [](const auto& one, const auto& other) { return other.id < one.id; });
  return found;
}

Census census_of(const World& world) {
  Census census;
  census.job.job_id = job_id();
  census.job.ranks = world.ranks;
  for (std::uint32_t rank = 0; rank < world.ranks; ++rank) {
    census.nodes.push_back(rank);
    census.hosts.emplace_back("node");
    if (!world.files) continue;
    PoolFileFact file;
    file.rank = file.at = rank;
    file.job = job_id();
    file.head = id_of(*world.files);
    file.lineage = lineage_id(world.files->lineage);
    census.files.push_back(file);
  }
  for (const Made& made : world.all_made()) {
    for (std::uint32_t rank = 0; rank < world.ranks; ++rank) {
      LevelFileFact fact{{SealedKind::image, rank, 0}, job_id(), id_of(made), 100, rank};
      fact.lineage = lineage_id(made.lineage);
      if ((world.images[made.lineage][made.version] >> rank & 1) != 0) {
        census.levels.push_back(fact);
      }
      if ((world.guards[made.lineage][made.version] >> rank & 1) == 0) continue;
      fact.name.kind = SealedKind::guard;
      fact.guard.members = {rank & ~1U, rank | 1U};
      fact.guard.rows = 1;
      fact.guard.image_bytes = {100, 100};
      fact.guard.image_checksums = {1, 1};
      census.levels.push_back(fact);
    }
  }
  for (std::uint32_t lineage = 0; lineage < lineages; ++lineage) {
    census.histories.push_back({lineage_id(lineage), versions_of(world, {}, lineage).ancestors});
  }
  return census;
}

std::vector<DrainHolds> drains_of(const World& world) {
  std::vector<DrainHolds> drains;
  for (const Drained& drained : world.drains) {
    DrainHolds& holds = drains.emplace_back();
    holds.own = versions_of(world, drained, world.lineage_of_nodes());
    holds.any = std::ranges::any_of(drained.made, [](auto bits) { return bits != 0; });
    if (!drained.newest) continue;
    holds.newest = LeaseRecord{};
    holds.newest->job.job_id = job_id();
    holds.newest->job.lineage = lineage_id(*drained.newest);
    holds.of_newest = versions_of(world, drained, *drained.newest);
  }
  return drains;
}

struct Expected {
  RestartLevel level = RestartLevel::none;
  VersionId id;
  void take(RestartLevel from, VersionId offered) {
    if (!(id < offered)) return;
    level = from;
    id = offered;
  }
};

// Each version that counts is offered, in the order in which equal ones are taken.
Expected expected_of(const World& world) {
  Expected best;
  if (world.pool_counts()) best.take(RestartLevel::pool, id_of(*world.files));
  if (world.pool_counts() && world.restored) return best;
  const std::uint32_t own = world.lineage_of_nodes();
  for (const Made& made : world.all_made()) {
    if (world.nodes_know && world.is_in_history(made, own) && world.images_give(made)) {
      best.take(RestartLevel::nodes, id_of(made));
    }
  }
  const VersionId held = best.id;
  for (const Drained& drained : world.drains) {
    for (const Made& made : world.all_made()) {
      if ((drained.made[made.lineage] >> made.version & 1) == 0) continue;
      bool counts = world.nodes_know && world.is_in_history(made, own);
      if (drained.newest && world.is_in_history(made, *drained.newest)) {
        // Whoever made that lineage must have had what the nodes have, or they have none.
        bool knew = !world.nodes_know || held.version == 0;
        for (const Made& each : world.ancestors(*drained.newest)) {
          knew = knew || (each.lineage == own && held <= id_of(each));
        }
        counts = counts || knew;
      }
      if (counts) best.take(RestartLevel::drain, id_of(made));
    }
  }
  return best;
}

// Nobody knows of the job, and what its newest run went on from is gone.
bool is_refused(const World& world) {
  return !world.nodes_know && std::ranges::any_of(world.drains, [&](const Drained& drained) {
    return drained.newest && *drained.newest != 0 &&
           versions_of(world, drained, *drained.newest).manifests.empty() &&
           std::ranges::any_of(drained.made, [](auto bits) { return bits != 0; });
  });
}

std::string text_of(const World& world) {
  std::string text = "lineage 1 from " + std::to_string(world.origin[1].version) + ", 2 from " +
                     std::to_string(world.origin[2].version) + " of " +
                     std::to_string(world.origin[2].lineage) +
                     (world.nodes_know ? "" : ", nodes don't know");
  if (world.files) {
    text += ", files hold " + std::to_string(world.files->version) + " of " +
            std::to_string(world.files->lineage) + (world.restored ? " (restored)" : "");
  }
  for (const Made& made : world.all_made()) {
    const auto name = std::to_string(made.version) + " of " + std::to_string(made.lineage);
    const std::uint32_t images = world.images[made.lineage][made.version];
    const std::uint32_t guards = world.guards[made.lineage][made.version];
    if (images != 0) text += ", images " + std::to_string(images) + " of " + name;
    if (guards != 0) text += ", guards " + std::to_string(guards) + " of " + name;
    for (const Drained& drained : world.drains) {
      if ((drained.made[made.lineage] >> made.version & 1) != 0) text += ", drained " + name;
    }
  }
  for (const Drained& drained : world.drains) {
    if (drained.newest) text += ", lease of lineage " + std::to_string(*drained.newest);
  }
  return text;
}

void expect_right_choice(const World& world) {
  const Census census = census_of(world);
  const auto drains = drains_of(world);
  Holdings holdings{world.nodes_know ? &census : nullptr, {}, drains};
  if (world.pool_counts()) holdings.pool = {id_of(*world.files), world.restored};
  const auto choice = choose_level(holdings);
  if (is_refused(world)) {
    ASSERT_EQ(choice.status().code(), Code::not_found) << text_of(world);
    return;
  }
  ASSERT_TRUE(choice.ok()) << text_of(world);
  const Expected expected = expected_of(world);
  ASSERT_EQ(choice.value().level, expected.level) << text_of(world);
  ASSERT_TRUE(choice.value().id == expected.id) << text_of(world);
  if (expected.level == RestartLevel::nodes) {
    ASSERT_TRUE(choice.value().images && choice.value().images->id == expected.id);
  }
}

// Calls `with` for each subset of versions 1 to 3 as images on both ranks, of lineages 0 and 1.
template <typename With>
void for_all_images(World& world, const With& with) {
  for (std::uint32_t subset = 0; subset < 64; ++subset) {
    for (std::uint64_t version = 1; version <= versions; ++version) {
      for (std::uint32_t lineage = 0; lineage < 2; ++lineage) {
        const bool has = (subset >> (2 * (version - 1) + lineage) & 1) != 0;
        world.images[lineage][version] = has && world.exists({lineage, version}) ? 3 : 0;
      }
    }
    with();
  }
}

template <typename With>
void for_all_drains(World& world, const With& with) {
  for (std::uint32_t subset = 0; subset < 64; ++subset) {
    for (const int newest : {-1, 0, 1}) {
      Drained drained;
      drained.made = {(subset & 7) << 1U, (subset >> 3) << 1U, 0};
      if (newest >= 0) drained.newest = static_cast<std::uint32_t>(newest);
      world.drains = {drained};
      with();
    }
  }
}

TEST(Choice, is_right_in_every_world_of_two_ranks_three_versions_two_runs_and_a_drain) {
  for (const std::uint64_t from : {1U, 2U}) {
    World world;
    world.origin = {Made{}, Made{0, from}, Made{0, versions}};  // lineage 2 has no version
    std::vector<std::optional<Made>> files = {std::nullopt};
    for (const Made& made : world.all_made()) files.emplace_back(made);
    for (const bool restored : {false, true}) {
      for (const auto& held : files) {
        if (restored && !held) continue;
        world.files = held;
        world.restored = restored;
        for_all_images(world, [&] { for_all_drains(world, [&] { expect_right_choice(world); }); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Choice, is_right_where_no_node_knows_of_the_job) {
  World world;
  world.nodes_know = false;
  for (const std::uint64_t from : {1U, 2U}) {
    world.origin = {Made{}, Made{0, from}, Made{0, versions}};
    for_all_drains(world, [&] { expect_right_choice(world); });
  }
}

Drained random_drain(std::mt19937_64& random) {
  Drained drained;
  for (std::uint32_t& bits : drained.made) bits = static_cast<std::uint32_t>(random() % 16) & 14U;
  const auto newest = static_cast<std::uint32_t>(random() % (lineages + 1));
  if (newest < lineages) drained.newest = newest;
  return drained;
}

World random_world(std::mt19937_64& random) {
  World world;
  world.ranks = 2 * (1 + static_cast<std::uint32_t>(random() % 2));
  world.origin[1] = {0, 1 + random() % versions};
  world.origin[2] = {static_cast<std::uint32_t>(random() % 2), 1 + random() % versions};
  if (!world.exists(world.origin[2])) world.origin[2].version = versions;
  if (!world.exists(world.origin[2])) world.origin[2].lineage = 0;
  world.nodes_know = random() % 8 != 0;
  const auto all = world.all_made();
  if (random() % 2 == 0) world.files = all[random() % all.size()];
  world.restored = random() % 8 == 0;
  const std::uint32_t every = (1U << world.ranks) - 1;
  for (const Made& made : all) {
    for (auto* kept : {&world.images, &world.guards}) {
      if (random() % 3 == 0) continue;
      (*kept)[made.lineage][made.version] = static_cast<std::uint32_t>(random() | random()) & every;
    }
  }
  for (std::uint64_t i = random() % 3; i > 0; --i) world.drains.push_back(random_drain(random));
  return world;
}

TEST(Choice, is_right_in_random_worlds_of_three_runs_with_guards_and_two_drains) {
  std::mt19937_64 random(test_seed());
  for (int i = 0; i < 100'000 && !testing::Test::HasFatalFailure(); ++i) {
    expect_right_choice(random_world(random));
  }
}

// levels.A1.
TEST(Choice, is_an_image_in_a_later_incarnation_where_some_rank_is_ahead_of_the_pool) {
  World world;
  world.files = Made{0, 2};
  Census census = census_of(world);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    census.levels.push_back(
        {{SealedKind::image, rank, 0}, job_id(), {15, 2}, 100, rank, {}, job_id()});
  }
  const PoolHolds pool{{10, 2}};
  EXPECT_EQ(choose_level({&census, pool, {}}).value().level, RestartLevel::pool);
  census.files[1].head = {10, 3};
  EXPECT_EQ(choose_level({&census, pool, {}}).value().level, RestartLevel::nodes);
}

// levels.A6.
TEST(Choice, names_the_run_that_went_on_without_the_nodes) {
  World world;
  world.origin = {Made{}, Made{0, 1}, Made{}};
  world.files = Made{0, 2};
  world.drains.push_back({{0b10, 0b100, 0}, 1});
  const Census census = census_of(world);
  const auto drains = drains_of(world);
  const auto choice = choose_level({&census, PoolHolds{id_of(*world.files)}, drains}).take();
  EXPECT_EQ(choice.level, RestartLevel::pool);
  ASSERT_EQ(choice.forks.size(), 1U);
  EXPECT_EQ(choice.forks[0].second.fork->version, 2U);
  EXPECT_EQ(choice.forks[0].second.forked_from.version, 1U);
}

}  // namespace
}  // namespace perdure
