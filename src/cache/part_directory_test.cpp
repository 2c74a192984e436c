// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of a node: made, joined, left, left behind and recovered; and what is no part, or
// another file's, refused with the remedy and nothing lost.
#include "cache/part_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "base/checksum.hpp"
#include "cache/part_files.hpp"
#include "cache/part_run_note.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

// A cached file and the directory of its parts.
class Node {
 public:
  explicit Node(Bytes bytes = Bytes(100001, 7)) : expected(std::move(bytes)) {
    write_file(file(), expected);
    reopen();
  }
  std::string file() const { return scratch / "file"; }
  std::string parts() const { return scratch / "parts"; }
  std::string part_file() const { return part_file_path(parts(), file()); }
  void reopen() { backing.emplace(must(BackingFile::open(file(), access))); }
  PartRequest request(std::uint32_t nodes = 1) const {
    PartRequest request;
    request.directory = parts();
    request.identity.path = file();
    request.identity.file_device = backing->device();
    request.identity.file_inode = backing->inode();
    request.identity.layout = make_layout(LayoutKind::cyclic, nodes, 65536, expected.size());
    request.file_bytes = expected.size();
    return request;
  }
  Result<OpenPart> make(std::uint32_t nodes = 1) const {
    PERDURE_TRY(recover_leftover_part(parts(), file(), *backing, std::nullopt));
    return make_part(request(nodes), *backing);
  }
  // A part with a write that the file lacks, of a process that died.
  void leave_behind(Acknowledge when = Acknowledge::sync) {
    OpenPart open = must(make());
    std::fill_n(expected.begin() + 5000, 100, 9);
    must(open.part->write(5000, expected.data() + 5000, 100, when));
    must(leave_part(std::move(open), true));
  }

  Result<WriteBackTally> recover(std::optional<std::uint64_t> version = std::nullopt) const {
    RecoverOptions options;
    options.version = version;
    return recover_parts({{parts(), part_file()}}, options);
  }

  static constexpr auto access = BackingFile::Access::read_write;
  TemporaryDirectory scratch;
  Bytes expected;
  std::optional<BackingFile> backing;
};

bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

TEST(PartDirectory, a_part_lives_as_long_as_a_process_uses_it) {
  const Node node;
  OpenPart first = must(node.make());
  EXPECT_FALSE(first.joined);
  OpenPart second = must(join_part(node.parts(), node.file()));
  OpenPart third = must(node.make());
  EXPECT_TRUE(third.joined);
  EXPECT_EQ(must(list_parts(node.parts())).at(0).in_use, true);
  must(leave_part(std::move(first), false));
  must(leave_part(std::move(third), false));
  EXPECT_TRUE(exists(node.part_file()));
  must(leave_part(std::move(second), false));
  EXPECT_TRUE(std::filesystem::is_empty(node.parts()));
  EXPECT_EQ(join_part(node.parts(), node.file()).status().code(), Code::not_found);
}

// A process that is killed while it removes a part leaves the note that the launcher looks for.
TEST(PartDirectory, a_part_is_noted_for_the_launcher_until_it_is_gone) {
  const TemporaryDirectory run;
  const TemporaryDirectory scratch;
  ASSERT_EQ(::setenv("PERDURE_RUN_DIR", run.path().c_str(), 1), 0);
  std::filesystem::create_directory(scratch / "parts");
  std::filesystem::create_directory_symlink(scratch / "parts", scratch / "link");
  const std::string part = scratch / "link/0123456789abcdef.part";
  std::filesystem::create_directory(part);  // can't be removed as a file
  note_part_for_run(part, scratch / "file");
  EXPECT_FALSE(remove_part_files(part).ok());
  EXPECT_FALSE(std::filesystem::is_empty(run.path()));
  std::filesystem::remove(part);
  must(remove_part_files(part));
  EXPECT_TRUE(std::filesystem::is_empty(run.path()));
  ::unsetenv("PERDURE_RUN_DIR");
}

// As another user may, who can read a sticky directory. The test's own time limit ends a wait.
TEST(PartDirectory, that_somebody_else_has_locked_keeps_nobody_waiting) {
  Node node;
  std::filesystem::create_directory(node.parts());
  const FileHandle stranger(::open(node.parts().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(stranger.fd(), LOCK_EX), 0);
  node.leave_behind();
  EXPECT_EQ(must(list_parts(node.parts())).size(), 1U);
  EXPECT_GT(must(node.recover()).bytes, 0U);
  must(leave_part(must(node.make()), false));
  EXPECT_TRUE(std::filesystem::is_empty(node.parts()));
}

TEST(PartDirectory, has_a_lock_for_its_user_only_which_goes_with_the_holder) {
  const TemporaryDirectory scratch;
  const std::string parts = scratch / "parts";
  const std::string lock = parts + "/lock-" + std::to_string(::geteuid());
  struct stat found{};
  {
    const LockedDirectory held = must(lock_part_directory(parts, true));
    ASSERT_EQ(::stat(lock.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0600U);
  }
  EXPECT_FALSE(exists(lock));
  LockedDirectory held = must(lock_part_directory(parts, true));
  held.remove_lock();
  const LockedDirectory next = must(lock_part_directory(parts, false));
  held = must(lock_part_directory(scratch / "others", true));  // the first one ends
  EXPECT_TRUE(exists(lock)) << "the lock of the next holder was taken away";
}

TEST(PartDirectory, a_part_of_several_nodes_is_not_joined_by_others) {
  const Node node;
  const OpenPart open = must(node.make(2));
  const Status status = node.make(1).status();
  EXPECT_EQ(status.code(), Code::busy);
  EXPECT_TRUE(says(status, "perdure_cache=off")) << status.message();
}

TEST(PartDirectory, what_was_left_behind_is_recovered_before_the_next_part_is_made) {
  Node node;
  node.leave_behind();
  EXPECT_NE(read_file(node.file()), node.expected);
  const FoundPart found = must(list_parts(node.parts())).at(0);
  EXPECT_EQ(found.path, node.file());
  EXPECT_EQ(found.nodes, 1U);
  EXPECT_EQ(found.size_bytes, node.expected.size());
  EXPECT_GE(found.unsaved_bytes, 100U);
  EXPECT_TRUE(found.same_boot && !found.in_use && found.fault.ok());
  const OpenPart next = must(node.make());
  EXPECT_FALSE(next.joined);
  EXPECT_EQ(read_file(node.file()), node.expected);
  EXPECT_EQ(next.part->unsaved_bytes(true), 0U);
}

TEST(PartDirectory, recovers_on_demand_but_not_what_is_in_use) {
  Node node;
  node.leave_behind();
  {
    const OpenPart open = must(node.make(2));
    EXPECT_EQ(node.recover().status().code(), Code::busy);
    EXPECT_EQ(discard_part(node.parts(), node.part_file()).code(), Code::busy);
    must(open.part->write(8192, Bytes(10, 3).data(), 10, Acknowledge::durable));
    std::fill_n(node.expected.begin() + 8192, 10, 3);
  }
  EXPECT_GT(must(node.recover()).bytes, 0U);
  EXPECT_EQ(read_file(node.file()), node.expected);
  EXPECT_TRUE(std::filesystem::is_empty(node.parts()));
  EXPECT_EQ(node.recover().status().code(), Code::not_found);
}

// Changes the header of a part, and makes its checksum right again if `whole`.
void change_header(const std::string& file, bool whole,
                   const std::function<void(PartHeaderFormat&)>& change) {
  const FileHandle handle(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  PartHeaderFormat header;
  ASSERT_EQ(::pread(handle.fd(), &header, sizeof header, 0), ssize_t{sizeof header});
  change(header);
  if (whole) header.checksum = crc64(&header, offsetof(PartHeaderFormat, checksum));
  ASSERT_EQ(::pwrite(handle.fd(), &header, sizeof header, 0), ssize_t{sizeof header});
}

// The part is refused with this code by all who could use it; it stays, is listed with its fault,
// and discard removes it.
void expect_refused(const Node& node, Code code, const std::string& words) {
  const Bytes before = read_file(node.file());
  const Status made = node.make().status();
  EXPECT_EQ(made.code(), code) << made.message();
  EXPECT_TRUE(says(made, words)) << made.message();
  EXPECT_TRUE(says(made, "perdure cache discard")) << made.message();
  EXPECT_EQ(node.recover().status().code(), code);
  EXPECT_TRUE(exists(node.part_file()));
  if (code != Code::foreign) {
    EXPECT_EQ(must(list_parts(node.parts())).at(0).fault.code(), code);
  }
  EXPECT_EQ(read_file(node.file()), before);
  must(discard_part(node.parts(), node.part_file()));
  EXPECT_FALSE(exists(node.part_file()));
  EXPECT_FALSE(must(node.make()).joined);
}

TEST(PartDirectory, a_truncated_part_is_refused) {
  for (const off_t bytes : {8L, 4000L, 4248L, 20000L}) {
    Node node;
    node.leave_behind();
    ASSERT_EQ(::truncate(node.part_file().c_str(), bytes), 0);
    expect_refused(node, Code::damaged, "");
  }
}

TEST(PartDirectory, a_header_with_any_bit_flipped_is_refused) {
  std::mt19937_64 random(test_seed());
  for (int flips = 0; flips < 40; ++flips) {
    Node node(Bytes(9000, 7));
    node.leave_behind();
    const std::size_t at = flips < 20 ? random() % 144 : random() % sizeof(PartHeaderFormat);
    change_header(node.part_file(), false, [&](PartHeaderFormat& header) {
      reinterpret_cast<unsigned char*>(&header)[at] ^=
          static_cast<unsigned char>(1U << (random() % 8));
    });
    expect_refused(node, Code::damaged, "");
  }
}

TEST(PartDirectory, a_header_that_is_whole_but_can_not_be_right_is_refused) {
  const std::function<void(PartHeaderFormat&)> changes[] = {
      [](PartHeaderFormat& h) { h.block_bytes = 3000; },
      [](PartHeaderFormat& h) { h.block_bytes = std::uint64_t{1} << 63U; },
      [](PartHeaderFormat& h) { h.blocks = ~std::uint64_t{0} / 64; },
      [](PartHeaderFormat& h) { h.journal_entries = ~std::uint64_t{0} / 64; },
      [](PartHeaderFormat& h) { h.nodes = 0; },
      [](PartHeaderFormat& h) { h.node = 1; },
      [](PartHeaderFormat& h) { h.layout = 7; },
      [](PartHeaderFormat& h) { h.table_offset += 4096; },
      [](PartHeaderFormat& h) { h.journal_entries = journal_entries_max + 1; },
      [](PartHeaderFormat& h) { std::memset(h.path, 'a', sizeof h.path); },
      [](PartHeaderFormat& h) { std::memset(h.pool, 'a', sizeof h.pool); }};
  for (const auto& change : changes) {
    Node node;
    node.leave_behind();
    change_header(node.part_file(), true, change);
    expect_refused(node, Code::damaged, "");
  }
}

TEST(PartDirectory, a_newer_format_is_refused_as_such) {
  Node node;
  node.leave_behind();
  change_header(node.part_file(), true, [](PartHeaderFormat& h) { ++h.format_version; });
  expect_refused(node, Code::newer_format, "format " + std::to_string(part_format_version + 1));
  change_header(node.part_file(), true, [](PartHeaderFormat& h) { h.format_version = 1; });
  expect_refused(node, Code::unsupported, "format 1");
}

TEST(PartDirectory, a_part_is_not_written_into_another_file_of_its_path) {
  Node node;
  node.leave_behind();
  std::filesystem::rename(node.file(), node.scratch / "old");
  write_file(node.file(), Bytes(50, 1));
  node.reopen();
  node.expected = Bytes(50, 1);
  expect_refused(node, Code::foreign, "was replaced by another file");
}

TEST(PartDirectory, a_part_whose_file_is_gone_stays) {
  Node node;
  node.leave_behind();
  std::filesystem::rename(node.file(), node.scratch / "away");
  EXPECT_FALSE(node.recover().ok());
  EXPECT_TRUE(exists(node.part_file()));
  std::filesystem::rename(node.scratch / "away", node.file());
  EXPECT_EQ(node.recover().status().code(), Code::foreign);
  RecoverOptions options;
  options.to = node.file();
  (void)must(recover_parts({{node.parts(), node.part_file()}}, options));
  EXPECT_EQ(read_file(node.file()), node.expected);
}

TEST(PartDirectory, a_part_that_was_never_finished_is_made_anew) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{50000}}) {
    const Node node;
    std::filesystem::create_directory(node.parts());
    write_file(node.part_file(), Bytes(bytes, 0));
    EXPECT_EQ(must(list_parts(node.parts())).at(0).fault.code(), Code::damaged);
    EXPECT_FALSE(must(node.make()).joined);
  }
}

TEST(PartDirectory, what_was_made_in_another_boot_keeps_only_what_was_durable) {
  for (const Acknowledge when : {Acknowledge::sync, Acknowledge::durable}) {
    Node node;
    const Bytes before = node.expected;
    node.leave_behind(when);
    change_header(node.part_file(), true, [](PartHeaderFormat& h) { ++h.boot[0]; });
    EXPECT_FALSE(must(list_parts(node.parts())).at(0).same_boot);
    (void)must(node.recover());
    EXPECT_EQ(read_file(node.file()), when == Acknowledge::durable ? node.expected : before);
  }
}

// A part of a file that is committed with pool 1, which was at version 5 when it was made.
PartRequest pool_request(const Node& node, std::uint64_t job = 1, std::uint64_t version = 5) {
  PartRequest request = node.request();
  request.identity.pool_job[0] = job;
  request.identity.pool = node.parts();
  request.restored = PoolVersion{{job, 0}, version, 0, 0};
  return request;
}

TEST(PartDirectory, a_file_of_a_group_goes_back_to_the_version_of_its_pool_and_no_other) {
  const Node node;
  const auto recover = [&](std::optional<PoolVersion> version) {
    return recover_leftover_part(node.parts(), node.file(), *node.backing, version);
  };
  OpenPart open = must(make_part(pool_request(node), *node.backing));
  must(open.part->write(5000, Bytes(9000, 9).data(), 9000, Acknowledge::sync));
  (void)must(open.part->write_back(0, true));
  must(leave_part(std::move(open), true));
  EXPECT_NE(read_file(node.file()), node.expected);
  const Status alone = recover(std::nullopt);
  EXPECT_EQ(alone.code(), Code::wrong_state);
  EXPECT_TRUE(says(alone, "open it with perdure_cache_pool of that pool")) << alone.message();
  EXPECT_EQ(recover(PoolVersion{{2, 0}, 5, 0, 0}).code(), Code::wrong_state);
  for (const std::uint64_t version : {4U, 6U}) {
    const Status other = recover(PoolVersion{{1, 0}, version, 0, 0});
    EXPECT_EQ(other.code(), Code::wrong_state);
    EXPECT_TRUE(says(other, "first commit after a restart")) << other.message();
  }
  must(recover(PoolVersion{{1, 0}, 5, 0, 0}));
  EXPECT_EQ(read_file(node.file()), node.expected);
  EXPECT_FALSE(exists(node.part_file()));
  EXPECT_FALSE(exists(node.part_file() + ".undo"));
}

TEST(PartDirectory, a_file_of_a_group_keeps_what_was_prepared_for_the_version_that_came_of_it) {
  Node node;
  OpenPart open = must(make_part(pool_request(node), *node.backing));
  std::fill_n(node.expected.begin() + 5000, 9000, 9);
  must(open.part->write(5000, Bytes(9000, 9).data(), 9000, Acknowledge::sync));
  must(open.part->persist());
  must(open.part->set_prepared(6));
  must(leave_part(std::move(open), true));  // it did not come to set_base_version(6)
  must(recover_leftover_part(node.parts(), node.file(), *node.backing,
                             PoolVersion{{1, 0}, 6, 0, 0}));
  EXPECT_EQ(read_file(node.file()), node.expected);
}

TEST(PartDirectory, a_file_that_is_open_in_one_group_is_not_joined_with_another_or_none) {
  const Node node;
  OpenPart open = must(make_part(pool_request(node), *node.backing));
  for (const PartRequest& request : {node.request(), pool_request(node, 2)}) {
    const Status other = make_part(request, *node.backing).status();
    EXPECT_EQ(other.code(), Code::busy);
    EXPECT_TRUE(says(other, "perdure_cache_pool")) << other.message();
  }
  must(leave_part(std::move(must(make_part(pool_request(node), *node.backing))), false));
  must(leave_part(std::move(open), false));
}

TEST(PartDirectory, recovery_of_a_file_of_a_group_takes_the_version_it_is_given_or_what_is_there) {
  for (const bool as_it_is : {false, true}) {
    Node node;
    OpenPart open = must(make_part(pool_request(node), *node.backing));
    must(open.part->write(5000, Bytes(9000, 9).data(), 9000, Acknowledge::sync));
    must(leave_part(std::move(open), true));
    const auto version = as_it_is ? std::nullopt : std::optional<std::uint64_t>(5);
    (void)must(node.recover(version));
    if (as_it_is) std::fill_n(node.expected.begin() + 5000, 9000, 9);
    EXPECT_EQ(read_file(node.file()), node.expected);
  }
}

TEST(PartDirectory, a_directory_that_is_not_there_holds_nothing) {
  EXPECT_EQ(list_parts("/nowhere/at/all").status().code(), Code::not_found);
  EXPECT_EQ(discard_part("/nowhere/at/all", "x").code(), Code::not_found);
}

// A small file system, where the kernel lets us have one.
class SmallMount {
 public:
  explicit SmallMount(std::string place) : place_(std::move(place)) {
    std::filesystem::create_directory(place_);
    mounted_ = ::mount("none", place_.c_str(), "tmpfs", 0, "size=2m") == 0;
  }
  ~SmallMount() {
    if (mounted_) (void)::umount(place_.c_str());
  }
  SmallMount(const SmallMount&) = delete;
  SmallMount& operator=(const SmallMount&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string place_;
  bool mounted_ = false;
};

// What fits and what does not is in the cached file, whichever it was.
TEST(PartDirectory, a_file_larger_than_its_device_is_cached_as_far_as_it_fits) {
  Node node(Bytes(4U << 20U, 1));
  const SmallMount mount(node.parts());
  if (!mount.mounted()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  PartRequest request = node.request();
  request.identity.pool_job[0] = 1;
  const Status refused = make_part(request, *node.backing).status();
  EXPECT_EQ(refused.code(), Code::no_space);
  EXPECT_TRUE(says(refused, "without perdure_cache_pool")) << refused.message();
  OpenPart open = must(node.make());
  Bytes got(node.expected.size());
  must(open.part->read(0, got.data(), got.size()));
  EXPECT_TRUE(got == node.expected);
  const std::uint64_t through = open.part->through_bytes();
  EXPECT_GT(through, 2U << 20U);
  EXPECT_LT(through, node.expected.size() - (512U << 10U));
  for (std::uint64_t at = 0; at < node.expected.size(); at += 100000) {
    const Bytes fresh(50000, static_cast<unsigned char>(at / 100000 + 2));
    must(open.part->write(at, fresh.data(), fresh.size(), Acknowledge::sync));
    if (node.expected.size() < at + fresh.size()) node.expected.resize(at + fresh.size());
    std::copy(fresh.begin(), fresh.end(), node.expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // Blocks have not taken the room of the journal of those that come later.
  std::vector<OpenPart> late_ones;
  for (int process = 0; process < 30; ++process) {
    OpenPart late = must(node.make());
    must(late.part->write(0, "xyz", 3, Acknowledge::sync));
    late_ones.push_back(std::move(late));
  }
  for (OpenPart& late : late_ones) must(leave_part(std::move(late), false));
  std::copy_n("xyz", 3, node.expected.begin());
  (void)must(open.part->write_back(0, true));
  EXPECT_TRUE(read_file(node.file()) == node.expected);
  EXPECT_EQ(must(list_parts(node.parts())).at(0).through_bytes, open.part->through_bytes());
  must(leave_part(std::move(open), false));
}

TEST(PartDirectory, what_a_device_that_was_filled_by_others_has_no_room_for_passes_through) {
  Node node;
  const SmallMount mount(node.parts());
  if (!mount.mounted()) GTEST_SKIP() << "mounting a small tmpfs needs root";
  OpenPart open = must(node.make());
  must(open.part->write(0, Bytes(3000, 1).data(), 3000, Acknowledge::sync));
  write_file(node.parts() + "/fills", Bytes(4U << 20U, 1));
  const Bytes late(9000, 2);
  must(open.part->write(70000, late.data(), late.size(), Acknowledge::sync));
  must(open.part->write(1000, late.data(), 1000, Acknowledge::sync));
  EXPECT_EQ(read_file(node.file())[70000], 2);
  EXPECT_NE(read_file(node.file())[1000], 2);
  (void)must(open.part->write_back(0, true));
  std::fill_n(node.expected.begin(), 3000, 1);
  std::fill_n(node.expected.begin() + 1000, 1000, 2);
  std::fill_n(node.expected.begin() + 70000, 9000, 2);
  EXPECT_EQ(read_file(node.file()), node.expected);
  must(leave_part(std::move(open), false));
}

}  // namespace
}  // namespace perdure
