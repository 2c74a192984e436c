// SPDX-License-Identifier: BSD-3-Clause
//
// The drain of a job whose ranks are threads: what is on the level after it, whatever was late,
// full, cut short or planted. Killed at every call that changes something: drain_kill_test.cpp.
#include "levels/drain.hpp"
#include "levels/lease.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "levels/format_bytes.hpp"
#include "levels/node_file_format.hpp"
#include "levels/testing/drained_job.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds enough{60'000};

// Drains one version from all nodes; its images are there.
void drain(const DrainedJob& job, VersionId id, std::uint32_t nodes, std::uint32_t keep = 2) {
  for (std::uint32_t node = nodes; node-- > 0;) {
    DrainRequest request = job.request(node);
    request.keep = keep;
    NodeDrain drain(request);
    EXPECT_TRUE(drain.start(id));
    const Status stopped = drain.stop(enough);
    EXPECT_TRUE(stopped.ok()) << stopped.message();
    EXPECT_TRUE(drain.state().failure.ok()) << drain.state().failure.message();
    EXPECT_EQ(drain.state().finished, id);
    EXPECT_EQ(drain.state().completed, node == 0 ? std::optional(id) : std::nullopt);
  }
}

std::vector<Manifest> versions_on(const DrainedJob& job) {
  auto found = find_versions(job.place(), job.record().job_id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  for (const std::string& problem : found.value().problems) ADD_FAILURE() << problem;
  return found.take().manifests;
}

std::vector<std::uint64_t> numbers_on(const DrainedJob& job) {
  std::vector<std::uint64_t> numbers;
  for (const Manifest& manifest : versions_on(job)) numbers.push_back(manifest.id.version);
  return numbers;
}

std::string version_path(const DrainedJob& job, VersionId id) {
  return job.place() + "/" + job_id_text(job.record().job_id) + "/" + version_name(id);
}

std::string bytes_at(const std::string& path, std::uint64_t offset, std::uint64_t count) {
  std::string bytes(count, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

// Changes one byte.
void flip(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
  ASSERT_TRUE(file.good());
}

// Whether a byte of a sealed file of one chunk is nothing but padding.
bool has_no_meaning(std::uint64_t offset) {
  if (offset < sealed_header_offset) return offset >= sizeof(std::uint64_t);
  return offset >= sealed_header_offset + sizeof(SealedHeaderFormat) &&
         offset < sealed_payload_offset;
}

using Numbers = std::vector<std::uint64_t>;

TEST(Drain, a_version_of_several_nodes_comes_back_as_it_was) {
  DrainedJob job({0, 1, 0, 1}, 1'200'000);  // images of more than one write
  job.run(2);
  job.make_images(2, 0);
  drain(job, job.id_of(2), 2);
  const auto found = versions_on(job);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(job.wrong_in(found[0]), "");
  EXPECT_EQ(found[0].job.job_id, job.record().job_id);
  const auto file = read_node_file(LevelDirectory::open(found[0].directory).take(), 1);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file.value().images.size(), 2U);
  for (const NodeImage& image : file.value().images) {  // as it is beside the pool
    const std::string name = level_file_name(SealedKind::image, image.rank, 0);
    const std::string beside = bytes_at(job.pool(1) + "/" + name, 0, image.bytes);
    EXPECT_EQ(beside.size(), image.bytes);
    EXPECT_TRUE(bytes_at(found[0].directory + "/node-00001", image.offset, image.bytes) == beside);
  }
}

TEST(Drain, waits_for_images_that_are_still_being_made) {
  DrainedJob job({0, 0});
  job.run(1);
  job.make_image(0, 1, 0);
  NodeDrain drain(job.request(0));
  ASSERT_TRUE(drain.start(job.id_of(1)));
  EXPECT_FALSE(drain.start({1, 2}));
  EXPECT_EQ(drain.state().finished, std::nullopt);
  EXPECT_EQ(drain.state().skipped, 1U);
  job.make_image(1, 1, 1);
  EXPECT_TRUE(drain.stop(enough).ok());
  EXPECT_EQ(numbers_on(job), Numbers{1});
}

TEST(Drain, an_image_that_never_comes_is_told_and_the_next_version_is_drained) {
  DrainedJob job({0, 0});
  job.run(2);
  job.make_image(0, 1, 0);
  DrainRequest request = job.request(0);
  request.image_patience = milliseconds(1);
  NodeDrain drain(request);
  ASSERT_TRUE(drain.start(job.id_of(1)));
  while (drain.state().failed == 0) std::this_thread::yield();
  EXPECT_NE(drain.state().failure.message().find("rank 1 has no image"), std::string::npos)
      << drain.state().failure.message();
  job.make_images(2, 1);
  while (!drain.start(job.id_of(2))) std::this_thread::yield();
  EXPECT_TRUE(drain.stop(enough).ok());
  EXPECT_EQ(numbers_on(job), Numbers{2});
}

TEST(Drain, without_the_file_of_every_node_there_is_no_manifest) {
  DrainedJob job({0, 1});
  job.run(1);
  job.make_images(1, 0);
  DrainRequest request = job.request(0);
  request.manifest_patience = milliseconds(1);
  NodeDrain drain(request);
  ASSERT_TRUE(drain.start(job.id_of(1)));
  EXPECT_TRUE(drain.stop(enough).ok());
  EXPECT_EQ(drain.state().finished, job.id_of(1));
  EXPECT_EQ(drain.state().completed, std::nullopt);
  EXPECT_NE(drain.state().failure.message().find("1 ranks are missing"), std::string::npos)
      << drain.state().failure.message();
  EXPECT_EQ(numbers_on(job), Numbers{});
}

TEST(Drain, the_newest_versions_stay_and_what_is_not_ours_stays_too) {
  DrainedJob job({0, 1});
  job.run(1);
  job.make_images(1, 0);
  drain(job, job.id_of(1), 2);
  const std::string first = version_path(job, job.id_of(1));
  const std::string kept = first + "/notes";
  std::ofstream(kept) << "mine";
  const std::string other = job.place() + "/" + std::string(32, 'a') + "/version-1.1";
  fs::create_directories(other);
  std::ofstream(other + "/manifest") << "another job's";
  const std::string newer = job.place() + "/" + job_id_text(job.record().job_id) + "/version-9.9";
  fs::create_directory(newer);
  for (std::uint64_t version = 2; version <= 4; ++version) {
    job.run(1);
    job.make_images(version, version % 2);
    drain(job, job.id_of(version), 2);
  }
  EXPECT_EQ(numbers_on(job), (Numbers{4, 3}));
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_FALSE(fs::exists(first + "/manifest"));
  EXPECT_FALSE(fs::exists(first + "/node-00000"));
  EXPECT_FALSE(fs::exists(version_path(job, job.id_of(2))));
  EXPECT_TRUE(fs::exists(other + "/manifest"));
  EXPECT_TRUE(fs::exists(newer));
}

TEST(Drain, abandoned_versions_are_no_longer_found_and_newer_ones_are) {
  DrainedJob job({0});
  job.run(3);
  const VersionId last = job.id_of(3);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    if (version == 3) {  // as if its drain was under way
      ASSERT_TRUE(
          abandon_versions(job.place(), job.record().job_id, job.id_of(1), last.incarnation).ok());
    }
    job.make_images(version, 0);
    drain(job, job.id_of(version), 1, 9);
  }
  EXPECT_EQ(numbers_on(job), Numbers{1});
  job.run(1, [](Pool& pool) { ASSERT_TRUE(pool.restore(1).ok()); });
  job.make_images(4, 0);
  drain(job, job.id_of(4), 1, 9);
  EXPECT_GT(job.id_of(4).incarnation, last.incarnation);
  EXPECT_EQ(numbers_on(job), (Numbers{4, 1}));
}

TEST(Drain, every_incarnation_that_is_there_is_known_whole_or_not) {
  DrainedJob job({0, 1});
  job.run(1);
  job.make_images(1, 0);
  drain(job, job.id_of(1), 2);
  const JobId id = job.record().job_id;
  const auto incarnation_max = [&] {
    return find_versions(job.place(), id).value().incarnation_max;
  };
  EXPECT_EQ(incarnation_max(), job.id_of(1).incarnation);
  ASSERT_TRUE(make_version(job.place(), id, {5, 2}).ok());  // without a manifest
  EXPECT_EQ(incarnation_max(), 5U);
  ASSERT_TRUE(abandon_versions(job.place(), id, {1, 1}, 6).ok());
  EXPECT_EQ(incarnation_max(), 6U);
  EXPECT_EQ(numbers_on(job), Numbers{1});
}

TEST(Drain, the_job_is_found_by_its_name_and_that_of_another_is_refused) {
  DrainedJob job({0});
  job.run(1);
  const JobRecord record = job.record();
  const auto noted = [&] { return newest_lease(job.place()).value()->job.job_id; };
  EXPECT_FALSE(newest_lease(job.place()).value().has_value());
  EXPECT_TRUE(find_versions(job.place(), std::nullopt).value().manifests.empty());
  ASSERT_TRUE(note_job(job.place(), record).ok());
  EXPECT_EQ(noted(), record.job_id);
  job.make_images(1, 0);
  drain(job, job.id_of(1), 1);
  EXPECT_EQ(find_versions(job.place(), std::nullopt).value().manifests.size(), 1U);
  JobRecord older = record;
  older.job_id = {{7, 8}};
  older.created_ns -= 1;
  ASSERT_TRUE(note_job(job.place(), older).ok());
  EXPECT_EQ(noted(), record.job_id);
  JobRecord newer = older;
  newer.created_ns += 2;
  ASSERT_TRUE(note_job(job.place(), newer).ok());
  EXPECT_EQ(noted(), newer.job_id);
  EXPECT_TRUE(find_versions(job.place(), std::nullopt).value().manifests.empty());
  EXPECT_EQ(numbers_on(job), Numbers{1});
  newer.job_name = "other";
  EXPECT_EQ(note_job(job.place(), newer).code(), Code::foreign);
}

TEST(Drain, every_damaged_byte_of_a_node_file_or_manifest_is_found) {
  DrainedJob job({0, 0});
  job.run(1);
  job.make_images(1, 0);
  drain(job, job.id_of(1), 1);
  const auto manifest = versions_on(job).at(0);
  const std::string node = manifest.directory + "/node-00000";
  const auto file = read_node_file(LevelDirectory::open(manifest.directory).take(), 0).take();
  std::vector<std::uint64_t> offsets;
  const auto add_sealed = [&offsets](std::uint64_t begin, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < sealed_payload_offset; ++at) {
      if (!has_no_meaning(at)) offsets.push_back(begin + at);
    }
    // Of an image the payload ends with padding, and its table is of one chunk.
    for (const std::uint64_t at : {sealed_payload_offset, (sealed_payload_offset + bytes) / 2,
                                   bytes - sizeof(std::uint64_t) - 1, bytes - 1}) {
      offsets.push_back(begin + at);
    }
  };
  add_sealed(0, sealed_bytes(file.images.size() * sizeof(NodeImageFormat)));
  for (const NodeImage& image : file.images) add_sealed(image.offset, image.bytes);
  for (const std::uint64_t offset : offsets) {
    flip(node, offset);
    EXPECT_NE(job.wrong_in(manifest), "") << offset;
    flip(node, offset);
  }
  EXPECT_EQ(job.wrong_in(manifest), "");
  const std::string path = manifest.directory + "/manifest";
  for (std::uint64_t offset = 0; offset < fs::file_size(path); ++offset) {
    flip(path, offset);
    const auto found = find_versions(job.place(), job.record().job_id).take();
    const std::size_t harmless = has_no_meaning(offset) ? 1 : 0;
    EXPECT_EQ(found.manifests.size(), harmless) << offset;
    EXPECT_EQ(found.problems.size(), 1 - harmless) << offset;
    flip(path, offset);
  }
  fs::resize_file(node, file.bytes - 1);
  EXPECT_NE(job.wrong_in(manifest), "");
}

// A node file whose list is replaced, sealed as it should be.
class PlantedList {
 public:
  PlantedList() {
    job_.run(1);
    job_.make_images(1, 0);
    drain(job_, job_.id_of(1), 1);
    directory_ = std::make_unique<LevelDirectory>(
        LevelDirectory::open(versions_on(job_).at(0).directory).take());
    whole_ = read_node_file(*directory_, 0).take();
    for (const NodeImage& image : whole_.images) {
      list_.push_back({image.rank, 0, image.offset, image.bytes, image.checksum});
    }
  }
  const std::vector<NodeImageFormat>& list() const { return list_; }
  Result<NodeFile> plant(std::string_view payload) const {
    const std::string bytes = sealed({SealedKind::node, whole_.job, 0, whole_.id}, payload);
    std::fstream file(directory_->path_of("node-00000"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    return read_node_file(*directory_, 0);
  }
  Result<NodeFile> plant(const std::vector<NodeImageFormat>& list) const {
    return plant({reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]});
  }
  bool reads(const NodeFile& file, std::size_t image) const {
    return read_node_image(
               *directory_, file, file.images[image], [](auto&) { return Status::success(); },
               [](auto, auto) {})
        .ok();
  }
  std::uint64_t file_bytes() const { return whole_.bytes; }

 private:
  DrainedJob job_{{0, 0}};
  std::unique_ptr<LevelDirectory> directory_;
  NodeFile whole_;
  std::vector<NodeImageFormat> list_;
};

TEST(Drain, a_list_with_wrong_numbers_is_refused) {
  const PlantedList planted;
  const auto is_read = [&planted](void (*change)(std::vector<NodeImageFormat>&)) {
    auto list = planted.list();
    change(list);
    const auto file = planted.plant(list);
    return file.ok() && planted.reads(file.value(), 0) && planted.reads(file.value(), 1);
  };
  using List = std::vector<NodeImageFormat>;
  EXPECT_TRUE(is_read([](List&) {}));
  EXPECT_FALSE(is_read([](List& list) { list[1].rank = 0; }));
  EXPECT_FALSE(is_read([](List& list) { list[1].rank = 2; }));
  EXPECT_FALSE(is_read([](List& list) { std::swap(list[0].rank, list[1].rank); }));
  EXPECT_FALSE(is_read([](List& list) { list[0].offset = 0; }));
  EXPECT_FALSE(is_read([](List& list) { list[0].offset += 8; }));
  EXPECT_FALSE(is_read([](List& list) { list[1].offset = list[0].offset; }));
  EXPECT_FALSE(is_read([](List& list) { list[1].offset = ~node_align_bytes + 1; }));
  EXPECT_FALSE(is_read([](List& list) { list[0].bytes -= 8; }));
  EXPECT_FALSE(is_read([](List& list) { list[1].bytes -= 8; }));
  EXPECT_FALSE(is_read([](List& list) { list[1].bytes = UINT64_MAX; }));
  EXPECT_FALSE(is_read([](List& list) { list[0].checksum ^= 1; }));
  EXPECT_FALSE(is_read([](List& list) { list.pop_back(); }));
  EXPECT_FALSE(is_read([](List& list) { list.clear(); }));
  EXPECT_FALSE(is_read([](List& list) { list.push_back(list[1]); }));
}

TEST(Drain, a_list_of_random_bytes_never_leads_out_of_its_file) {
  const PlantedList planted;
  std::mt19937_64 random(test_seed());
  const auto& list = planted.list();
  const std::string whole(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string payload = whole;
    if (i % 4 == 0) {
      payload.resize(random() % payload.size());
    } else {
      payload[random() % payload.size()] ^= static_cast<char>(1 + random() % 255);
    }
    const auto file = planted.plant(payload);
    if (!file.ok()) {
      ++refused;
      continue;
    }
    for (std::size_t image = 0; image < file.value().images.size(); ++image) {
      const NodeImage& read = file.value().images[image];
      EXPECT_LE(read.offset + read.bytes, planted.file_bytes());
      (void)planted.reads(file.value(), image);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Drain, image_files_that_changed_or_were_made_anew_since_are_read_again) {
  DrainedJob job({0, 0});
  job.run(4);
  NodeDrain drain(job.request(0));
  const auto drained = [&](std::uint64_t version, std::uint32_t slot) {
    job.make_images(version, slot);
    return drain.start(job.id_of(version)) && drain.wait(enough).ok() &&
           drain.state().finished == job.id_of(version);
  };
  EXPECT_TRUE(drained(2, 0));
  EXPECT_TRUE(drained(3, 0));  // in the same files
  for (const char* image : {"/image-00000.0", "/image-00001.0"}) fs::remove(job.pool(0) + image);
  EXPECT_TRUE(drained(4, 0));  // in others of the same names
  EXPECT_TRUE(drain.state().failure.ok()) << drain.state().failure.message();
  EXPECT_EQ(numbers_on(job), (Numbers{4, 3}));
  for (const Manifest& manifest : versions_on(job)) EXPECT_EQ(job.wrong_in(manifest), "");
}

TEST(Drain, a_damaged_image_is_not_drained) {
  // In its beginning, in a chunk that is written from where it lies, and in the rest.
  for (const std::uint64_t chunk : {0U, 9U, 10U}) {
    DrainedJob job({0}, 1'330'000);  // an image of more than 10 chunks
    job.run(1);
    job.make_images(1, 0);
    flip(job.pool(0) + "/image-00000.0",
         sealed_payload_offset + chunk * sealed_chunk_bytes + 20'000);
    NodeDrain drain(job.request(0));
    ASSERT_TRUE(drain.start(job.id_of(1)));
    EXPECT_TRUE(drain.stop(enough).ok());
    EXPECT_EQ(drain.state().failure.code(), Code::damaged) << drain.state().failure.message();
    EXPECT_EQ(drain.state().finished, std::nullopt);
    EXPECT_EQ(numbers_on(job), Numbers{});
  }
}

TEST(Drain, a_damaged_node_file_is_made_anew_and_a_whole_one_is_left) {
  DrainedJob job({0, 1});
  job.run(1);
  job.make_images(1, 0);
  const VersionId id = job.id_of(1);
  NodeDrain(job.request(1)).start(id);
  const std::string node = version_path(job, id) + "/node-00001";
  ASSERT_TRUE(fs::exists(node));
  flip(node, sealed_header_offset);
  drain(job, id, 2);
  EXPECT_EQ(job.wrong_in(versions_on(job).at(0)), "");
  const auto before = fs::last_write_time(node);
  drain(job, id, 2);
  EXPECT_EQ(fs::last_write_time(node), before);
}

// Whoever asks waits until it is opened, as a writer does that is stuck in the kernel.
class ShutToken final : public IoToken {
 public:
  void acquire(IoKind) override {
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void release() override {}
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_until_asked() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return waiting_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool waiting_ = false;
};

TEST(Drain, a_writer_that_is_stuck_is_left_alone_and_does_no_harm_later) {
  DrainedJob job({0});
  job.run(1);
  job.make_images(1, 0);
  const auto token = std::make_shared<ShutToken>();
  {
    DrainRequest request = job.request(0);
    request.token = token;
    NodeDrain stuck(request);
    ASSERT_TRUE(stuck.start(job.id_of(1)));
    token->wait_until_asked();
    const Status stopped = stuck.stop(milliseconds(1));
    EXPECT_EQ(stopped.code(), Code::busy);
    EXPECT_NE(stopped.message().find("version 1 "), std::string::npos) << stopped.message();
    EXPECT_NE(stopped.message().find("stuck"), std::string::npos) << stopped.message();
  }
  drain(job, job.id_of(1), 1);
  token->open();
  while (token.use_count() > 1) std::this_thread::yield();  // the thread has ended
  EXPECT_EQ(job.wrong_in(versions_on(job).at(0)), "");
}

TEST(Drain, a_removed_directory_and_one_that_cannot_be_made_are_told) {
  DrainedJob job({0});
  job.run(1);
  job.make_images(1, 0);
  DrainRequest request = job.request(0);
  std::ofstream(job.base() + "/file") << "not a directory";
  request.place = job.base() + "/file/pool";
  NodeDrain drain(request);
  ASSERT_TRUE(drain.start(job.id_of(1)));
  EXPECT_TRUE(drain.stop(enough).ok());
  EXPECT_NE(drain.state().failure.message().find(job.base() + "/file"), std::string::npos)
      << drain.state().failure.message();
  request = job.request(0);
  request.pool = job.base() + "/gone";
  NodeDrain other(request);
  ASSERT_TRUE(other.start(job.id_of(1)));
  EXPECT_TRUE(other.stop(enough).ok());
  EXPECT_EQ(other.state().failure.code(), Code::not_found);
}

}  // namespace
}  // namespace perdure
