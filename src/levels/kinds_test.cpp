// SPDX-License-Identifier: BSD-3-Clause
//
// Every kind of level keeps what level_directory.hpp says, and gives a drained version back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "levels/lease.hpp"
#include "levels/level_directory.hpp"
#include "levels/node_file.hpp"
#include "levels/other_ranks.hpp"
#include "levels/testing/drained_job.hpp"
#include "pool/image_format.hpp"

namespace perdure {
namespace {

using Names = std::vector<std::string>;

FillLevelFile filled_with(const std::string& text) {
  return [text](LevelWriter& file) {
    const auto bytes = std::as_bytes(std::span(text));
    const std::size_t half = bytes.size() / 2;
    PERDURE_TRY(file.append(bytes.first(half)));
    return file.append(bytes.subspan(half));
  };
}

class Kinds : public testing::TestWithParam<const LevelKind*> {
 protected:
  std::string place() const { return std::string(GetParam()->prefix()) + base_.path(); }
  LevelDirectory made(const std::string& below) const {
    return LevelDirectory::make_below(place() + "/level", below).take();
  }

 private:
  perdure_test::TemporaryDirectory base_{perdure_test::on_disk()};
};

TEST_P(Kinds, a_directory_is_not_there_before_it_is_made_and_stays_while_it_has_files) {
  EXPECT_EQ(LevelDirectory::open(place() + "/level").status().code(), Code::not_found);
  const LevelDirectory folder = made("pool/line");
  EXPECT_EQ(folder.path(), place() + "/level/pool/line");
  EXPECT_EQ(made("pool/").path(), place() + "/level/pool");
  EXPECT_TRUE(LevelDirectory::exists(folder.path()).value());
  EXPECT_EQ(LevelDirectory::open(place() + "/level/pool").value().names().value(), Names{"line"});
  ASSERT_TRUE(folder.publish_file("a", filled_with("1")).ok());
  EXPECT_FALSE(LevelDirectory::remove_folder(folder.path()));
  ASSERT_TRUE(folder.remove_file("a").ok());
  EXPECT_TRUE(folder.remove_file("a").ok());
  EXPECT_TRUE(LevelDirectory::remove_folder(folder.path()));
  EXPECT_EQ(LevelDirectory::open(folder.path()).status().code(), Code::not_found);
}

TEST_P(Kinds, what_was_published_is_whole_and_not_replaced) {
  const LevelDirectory folder = made("pool");
  EXPECT_EQ(folder.read_file("b", 10).status().code(), Code::not_found);
  ASSERT_TRUE(folder.publish_file("b", filled_with("first")).ok());
  EXPECT_EQ(folder.publish_file("b", filled_with("second")).code(), Code::wrong_state);
  EXPECT_EQ(folder.read_file("b", 5).value(), "first");
  EXPECT_EQ(folder.read_file("b", 4).status().code(), Code::damaged);
  ASSERT_TRUE(folder.replace_file("b", "third").ok());
  ASSERT_TRUE(folder.replace_file("a", "").ok());
  EXPECT_EQ(folder.read_file("b", 10).value(), "third");
  EXPECT_EQ(folder.names().value(), (Names{"a", "b"}));
  EXPECT_TRUE(folder.sync().ok());
}

TEST_P(Kinds, what_could_not_be_filled_leaves_nothing) {
  const LevelDirectory folder = made("pool");
  const auto failing = [](LevelWriter& file) {
    PERDURE_TRY(filled_with("half")(file));
    return Status(Code::io_error, "no more");
  };
  EXPECT_EQ(folder.publish_file("a", failing).code(), Code::io_error);
  EXPECT_EQ(folder.names().value(), Names{});
}

TEST_P(Kinds, a_range_is_read_from_what_was_there_when_it_was_opened) {
  const LevelDirectory folder = made("pool");
  std::string text(3'000'000, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  ASSERT_TRUE(folder.publish_file("a", filled_with(text)).ok());
  const auto file = folder.open_file("a").take();
  ASSERT_TRUE(folder.replace_file("a", "other").ok());
  EXPECT_EQ(file->size_bytes().value(), text.size());
  std::string part(1000, '\0');
  ASSERT_TRUE(file->read(2'999'000, std::as_writable_bytes(std::span(part))).ok());
  EXPECT_EQ(part, text.substr(2'999'000));
  EXPECT_EQ(file->read(2'999'001, std::as_writable_bytes(std::span(part))).code(), Code::damaged);
}

TEST_P(Kinds, of_several_that_publish_one_name_one_succeeds) {
  const LevelDirectory folder = made("pool");
  for (int round = 0; round < 20; ++round) {
    const std::string name = std::to_string(round);
    std::atomic<int> published{0};
    std::vector<std::thread> writers;
    for (char writer = 'a'; writer < 'e'; ++writer) {
      writers.emplace_back([&, writer] {
        const Status status = folder.publish_file(name, filled_with(std::string(100, writer)));
        if (status.ok()) ++published;
        EXPECT_TRUE(status.ok() || status.code() == Code::wrong_state) << status.message();
      });
    }
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(published, 1);
    const std::string text = folder.read_file(name, 100).value();
    EXPECT_EQ(text, std::string(100, text.front()));
  }
}

TEST_P(Kinds, a_drained_version_comes_back_and_older_ones_go) {
  DrainedJob job({0, 1, 0}, 200'000);
  job.set_level(place() + "/level");
  job.run(3);
  for (const std::uint64_t version : {1U, 2U, 3U}) {
    job.make_images(version, 0);
    for (const std::uint32_t node : {1U, 0U}) {
      NodeDrain drain(job.request(node));
      ASSERT_TRUE(drain.start(job.id_of(version)));
      const Status stopped = drain.stop(std::chrono::seconds(60));
      ASSERT_TRUE(stopped.ok()) << stopped.message();
      ASSERT_TRUE(drain.state().failure.ok()) << drain.state().failure.message();
    }
  }
  const auto found = find_versions(job.place(), job.record().job_id).take();
  EXPECT_EQ(found.problems, Names{});
  ASSERT_EQ(found.manifests.size(), 2U);
  EXPECT_EQ(found.manifests.front().id.version, 3U);
  for (const Manifest& manifest : found.manifests) EXPECT_EQ(job.wrong_in(manifest), "");
}

// What another number of ranks reads of a drained version.
TEST_P(Kinds, old_ranks_are_read_from_a_drained_version_and_not_if_that_is_damaged) {
  DrainedJob job({0, 1});
  job.set_level(place() + "/level");
  job.run(1);
  job.make_images(1, 0);
  for (const std::uint32_t node : {1U, 0U}) {
    NodeDrain drain(job.request(node));
    ASSERT_TRUE(drain.start(job.id_of(1)));
    ASSERT_TRUE(drain.stop(std::chrono::seconds(60)).ok());
  }
  const Manifest manifest = find_versions(job.place(), job.record().job_id).take().manifests.at(0);
  const auto old = old_version_of(manifest);
  ASSERT_TRUE(old.ok()) << old.status().message();
  ASSERT_EQ(old.value().catalogues.size(), job.ranks());
  for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) {
    const ArrayEntry& entry = *old.value().catalogues[rank].arrays.begin();
    auto array = old.value().open_array(rank, entry);
    ASSERT_TRUE(array.ok()) << array.status().message();
    std::vector<std::int64_t> words(job.elements_of(rank));
    auto* const to = reinterpret_cast<std::byte*>(words.data());
    const Status read = array.value().read(0, 8 * words.size(), to);
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_EQ(words, std::vector<std::int64_t>(words.size(), DrainedJob::value(rank, 1)));
  }
  // A bit of the size of blocks, which no checksum but the chunk's covers.
  const LevelDirectory folder = LevelDirectory::open(manifest.directory).take();
  const NodeImage image = read_node_file(folder, 0).value().images.at(0);
  std::string bytes = folder.read_file(node_file_name(0), 100'000'000).take();
  bytes[image.offset + sealed_payload_offset + offsetof(ImageHeadFormat, block_bytes)] ^= 8;
  ASSERT_TRUE(folder.replace_file(node_file_name(0), bytes).ok());
  EXPECT_EQ(old_version_of(manifest).status().code(), Code::damaged);
}

TEST_P(Kinds, a_lease_is_one_runs_and_its_number_grows) {
  DrainedJob job({0});
  job.run(1);
  const std::string there = place() + "/level/pool";
  const auto take = [&](std::uint64_t above) {
    return Lease::take(there, job.record(), above, std::chrono::seconds(30), [](const Status&) {});
  };
  auto lease = take(0);
  ASSERT_TRUE(lease.ok()) << lease.status().message();
  EXPECT_EQ(take(0).status().code(), Code::busy);
  EXPECT_EQ(newest_lease(there).value()->number, 1U);
  EXPECT_TRUE(check_lease(there, 1).ok());
  lease.value()->give_back(std::chrono::seconds(60));
  EXPECT_FALSE(newest_lease(there).value()->held);
  EXPECT_EQ(take(1).value()->number(), 2U);
  EXPECT_EQ(check_lease(there, 1).code(), Code::busy);
}

INSTANTIATE_TEST_SUITE_P(All, Kinds, testing::ValuesIn(level_kinds().begin(), level_kinds().end()));

}  // namespace
}  // namespace perdure
