// SPDX-License-Identifier: BSD-3-Clause
//
// Leases and lineages: who may drain to a level, and whose versions a run sees and removes.
// ctest: LABELS truth
#include "levels/lease.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/checksum.hpp"
#include "levels/drain_offer.hpp"
#include "levels/lease_format.hpp"
#include "levels/manifest.hpp"
#include "levels/testing/drained_job.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

JobRecord job_of(std::uint64_t lineage = 0) {
  JobRecord job{{{11, 12}}, "test", 2, 13, {}, {}};
  if (lineage != 0) job.lineage = {{lineage, lineage}};
  return job;
}

// Of the header of a sealed file.
bool is_padding(std::uint64_t at) {
  const std::uint64_t header_end = sealed_header_offset + sizeof(SealedHeaderFormat);
  return (at >= sizeof(std::uint64_t) && at < sealed_header_offset) ||
         (at >= header_end && at < sealed_payload_offset);
}

class Leases : public testing::Test {
 protected:
  std::unique_ptr<Lease> take(std::uint64_t above, milliseconds patience = seconds(60)) {
    auto lease = Lease::take(place_, job_of(), above, patience, [this](const Status& why) {
      fenced_ = why.message().find("taken over") != std::string::npos;
    });
    EXPECT_TRUE(lease.ok()) << lease.status().message();
    return lease.ok() ? lease.take() : nullptr;
  }
  LeaseRecord newest() const { return newest_lease(place_).value().value(); }
  // In a process that holds it and is ended by `signal`; SIGSTOP leaves it, and returns its id.
  pid_t held_by_process(int signal, milliseconds patience) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto lease = Lease::take(place_, job_of(), 0, patience, [](const Status&) {});
      ::kill(::getpid(), lease.ok() ? signal : SIGTERM);
      for (;;) ::pause();
    }
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    EXPECT_TRUE(signal == SIGSTOP ? WIFSTOPPED(status) : WTERMSIG(status) == signal);
    return child;
  }

  perdure_test::TemporaryDirectory directory_;
  std::string place_ = directory_ / "pool";
  std::atomic<bool> fenced_ = false;
};

TEST_F(Leases, a_level_that_a_living_run_holds_is_refused_and_the_run_is_named) {
  const auto lease = take(0, seconds(2));
  const Status refused = wait_until_gone(place_, newest());
  EXPECT_EQ(refused.code(), Code::busy);
  for (const std::string& part :
       {std::string("job 'test'"), std::string("on host "), "process " + std::to_string(::getpid()),
        std::string("since 20"), std::string("another drain")}) {
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  }
}

TEST_F(Leases, a_level_that_was_given_back_or_whose_holder_was_killed_is_free_at_once) {
  take(0)->give_back(seconds(10));
  EXPECT_TRUE(wait_until_gone(place_, newest()).ok());
  EXPECT_FALSE(newest().held);
  fs::remove_all(place_);
  held_by_process(SIGKILL, seconds(3600));
  EXPECT_TRUE(newest().held);
  EXPECT_TRUE(wait_until_gone(place_, newest()).ok());
}

TEST_F(Leases, a_holder_that_is_silent_loses_the_level_and_is_told_when_it_goes_on) {
  const pid_t silent = held_by_process(SIGSTOP, seconds(1));
  EXPECT_TRUE(wait_until_gone(place_, newest()).ok());
  const auto lease = take(newest().number);
  EXPECT_EQ(check_lease(place_, 1).code(), Code::busy);
  EXPECT_TRUE(check_lease(place_, 2).ok());
  ::kill(silent, SIGKILL);
  ::waitpid(silent, nullptr, 0);
  EXPECT_EQ(newest().number, 2U);
}

TEST_F(Leases, a_run_that_is_fenced_off_says_so_once_and_leaves_the_newer_lease_alone) {
  const auto first = take(0, seconds(1));
  const auto second = take(1);
  for (int i = 0; i < 600 && !fenced_; ++i) std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(fenced_);
  first->give_back(seconds(10));
  EXPECT_EQ(newest().number, 2U);
  EXPECT_TRUE(newest().held);
}

TEST_F(Leases, of_many_runs_that_take_a_level_at_a_time_one_gets_it) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Lease>> held(6);
    std::vector<std::thread> runs;
    for (auto& mine : held) {
      runs.emplace_back([&] {
        auto lease = Lease::take(place_, job_of(), round, seconds(60), [](const Status&) {});
        if (lease.ok()) mine = lease.take();
        EXPECT_TRUE(lease.ok() || lease.status().code() == Code::busy) << lease.status().message();
      });
    }
    for (std::thread& run : runs) run.join();
    EXPECT_EQ(std::ranges::count_if(held, [](const auto& one) { return one != nullptr; }), 1);
  }
}

TEST_F(Leases, a_lease_that_is_damaged_is_no_leave_to_drain) {
  {
    const auto lease = take(0);
  }
  std::fstream file(place_ + "/lease-1", std::ios::in | std::ios::out | std::ios::binary);
  for (std::uint64_t at = 0; at < sealed_bytes(sizeof(LeaseFormat)); ++at) {
    if (is_padding(at)) continue;
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.peek());
    const auto put = [&](int value) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(value));
      file.flush();
    };
    put(byte ^ 1);
    EXPECT_FALSE(newest_lease(place_).ok()) << at;
    put(byte);
  }
  EXPECT_TRUE(newest_lease(place_).ok());
}

// Of a lineage: its own versions, and what came before them.
class Lineages : public testing::Test {
 protected:
  // An empty version: what it holds does not matter here.
  void make(std::uint64_t lineage, VersionId id) {
    const JobRecord job = job_of(lineage);
    const auto directory = make_version(job_place_, lineage_of(job), id).take();
    for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
      const std::byte zeros[64] = {};
      DrainedImage image;
      image.seal = {{SealedKind::image, job, rank, id, sizeof zeros}, {crc64(zeros, sizeof zeros)}};
      image.read = [](std::uint64_t, std::span<std::byte> out) {
        std::ranges::fill(out, std::byte{0});
        return Status::success();
      };
      ASSERT_TRUE(write_node_file(directory, job, id, {&image, 1}, [](std::uint64_t) {
                    return Status::success();
                  }).ok());
    }
    ASSERT_TRUE(ManifestWriter(job_place_, job, id).try_write().value());
  }
  std::vector<std::uint64_t> found(std::uint64_t lineage) const {
    std::vector<std::uint64_t> numbers;
    const FoundVersions versions = find_versions(job_place_, lineage_of(job_of(lineage))).take();
    for (const Manifest& each : versions.manifests) numbers.push_back(each.id.version);
    return numbers;
  }
  DrainOffer offer(std::uint64_t newest, std::uint64_t own, VersionId held) const {
    LeaseRecord record;
    record.job = job_of(newest);
    const JobLineage nodes{record.job.job_id, lineage_of(job_of(own))};
    return offer_of(look_into_drain(job_place_, record, nodes).take(), nodes, held).take();
  }
  // Lineage 7 was made from version 8 of the first, 9 from version 12 of lineage 7.
  void make_three() {
    for (const std::uint64_t version : {4U, 8U, 12U}) make(0, {1, version});
    ASSERT_TRUE(write_ancestors(job_place_, job_of(7), {{lineage_of(job_of(0)), {1, 8}}}).ok());
    for (const std::uint64_t version : {12U, 16U}) make(7, {2, version});
    ASSERT_TRUE(write_ancestors(job_place_, job_of(9),
                                {{lineage_of(job_of(0)), {1, 8}}, {lineage_of(job_of(7)), {2, 12}}})
                    .ok());
  }

  using Numbers = std::vector<std::uint64_t>;
  perdure_test::TemporaryDirectory directory_;
  std::string job_place_ = directory_ / "pool";
};

TEST_F(Lineages, a_run_sees_its_own_versions_and_those_that_they_were_made_from) {
  make_three();
  EXPECT_EQ(found(0), (Numbers{12, 8, 4}));
  EXPECT_EQ(found(7), (Numbers{16, 12, 8, 4}));
  EXPECT_EQ(found(9), (Numbers{12, 8, 4}));
  make(0, {1, 16});  // by a run that was fenced off while it wrote
  EXPECT_EQ(found(7), (Numbers{16, 12, 8, 4}));
  EXPECT_EQ(found(0), (Numbers{16, 12, 8, 4}));
}

TEST_F(Lineages, a_run_removes_versions_of_its_own_history_only) {
  make_three();
  ASSERT_TRUE(remove_old_versions(job_place_, lineage_of(job_of(7)), 1).ok());
  EXPECT_EQ(found(7), Numbers{16});
  EXPECT_EQ(found(0), Numbers{12});
  make(9, {3, 16});
  ASSERT_TRUE(remove_old_versions(job_place_, lineage_of(job_of(9)), 1).ok());
  EXPECT_EQ(found(9), Numbers{16});
  EXPECT_EQ(found(7), Numbers{16});
  EXPECT_EQ(found(0), Numbers{12});
}

TEST_F(Lineages, a_lineage_whose_versions_are_all_older_goes_with_the_last_of_them) {
  make(0, {1, 4});
  ASSERT_TRUE(write_ancestors(job_place_, job_of(7), {{lineage_of(job_of(0)), {1, 4}}}).ok());
  make(7, {2, 8});
  ASSERT_TRUE(remove_old_versions(job_place_, lineage_of(job_of(7)), 1).ok());
  EXPECT_FALSE(fs::exists(lineage_path(job_place_, lineage_of(job_of(0)))));
  EXPECT_EQ(found(7), Numbers{8});
}

TEST_F(Lineages, nodes_with_versions_beyond_a_fork_keep_them_and_others_take_what_is_newer) {
  make_three();
  const auto newest_of = [](const DrainOffer& offer) {
    return offer.versions.manifests.empty() ? 0 : offer.versions.manifests.front().id.version;
  };
  const DrainOffer beyond = offer(7, 0, {1, 13});
  EXPECT_EQ(newest_of(beyond), 12U);
  ASSERT_TRUE(beyond.fork.has_value());
  EXPECT_EQ(beyond.fork->version, 16U);
  EXPECT_EQ(beyond.forked_from.version, 8U);
  for (const VersionId held : {VersionId{1, 8}, VersionId{1, 5}, VersionId{}}) {
    EXPECT_EQ(newest_of(offer(7, 0, held)), 16U);
    EXPECT_FALSE(offer(7, 0, held).fork.has_value());
  }
  EXPECT_EQ(newest_of(offer(0, 7, {2, 14})), 16U);  // the lease of a run that knows nothing of it
  EXPECT_EQ(newest_of(offer(7, 7, {2, 14})), 16U);
}

}  // namespace
}  // namespace perdure
