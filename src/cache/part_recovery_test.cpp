// SPDX-License-Identifier: BSD-3-Clause
//
// A file that somebody else changed after its job had died: noticed, whichever way it was changed,
// and left alone, until a user says what counts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <optional>

#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"
#include "cache/testing/scratch_part.hpp"
#include "parts/part_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 65536;

// The kernel's clock of files counts in ticks.
void pass_tick() {
  ::usleep(30000);
}

// A cached file of a job that died, with a part on each of `nodes` nodes.
class Victim {
 public:
  explicit Victim(std::uint32_t nodes = 1, Acknowledge when = Acknowledge::sync) : nodes_(nodes) {
    write_file(file(), before);
    const auto backing = must(BackingFile::open(file(), BackingFile::Access::read_write));
    std::vector<OpenPart> open;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      open.push_back(must(make_part(request(node, backing), backing)));
    }
    for (std::uint64_t at = 5000; at < before.size(); at += 40000) {
      const std::uint32_t node = place_of(request(0, backing).identity.layout, at).node;
      std::fill_n(written.begin() + static_cast<std::ptrdiff_t>(at), 100, 9);
      must(open[node].part->write(at, &written[at], 100, when));
    }
    for (OpenPart& part : open) must(leave_part(std::move(part), true));
    pass_tick();
  }

  std::string file() const { return scratch / "file"; }
  std::string parts(std::uint32_t node = 0) const {
    return scratch / ("parts" + std::to_string(node));
  }
  PartPlace place(std::uint32_t node = 0) const {
    return {parts(node), part_file_path(parts(node), file())};
  }
  std::vector<PartPlace> places() const {
    std::vector<PartPlace> all;
    for (std::uint32_t node = 0; node < nodes_; ++node) all.push_back(place(node));
    return all;
  }
  Status open_again() const {
    const auto backing = must(BackingFile::open(file(), BackingFile::Access::read_write));
    return recover_leftover_part(parts(), file(), backing, std::nullopt);
  }
  bool is_left(std::uint32_t node = 0) const { return std::filesystem::exists(place(node).file); }
  // All of the part that is not a hole.
  Bytes part_bytes() const {
    Bytes bytes(std::size_t{8} << 20);
    const FileHandle part(::open(place().file.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = ::pread(part.fd(), bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  void change_state(const std::function<void(PartStateFormat&)>& change,
                    std::uint32_t node = 0) const {
    const FileHandle part(::open(place(node).file.c_str(), O_RDWR | O_CLOEXEC));
    PartHeaderFormat header;
    ASSERT_EQ(::pread(part.fd(), &header, sizeof header, 0), ssize_t{sizeof header});
    PartStateFormat state;
    const auto at = static_cast<off_t>(header.state_offset);
    ASSERT_EQ(::pread(part.fd(), &state, sizeof state, at), ssize_t{sizeof state});
    change(state);
    ASSERT_EQ(::pwrite(part.fd(), &state, sizeof state, at), ssize_t{sizeof state});
  }

  TemporaryDirectory scratch;
  const Bytes before = Bytes(200001, 7);
  Bytes written = before;

 private:
  PartRequest request(std::uint32_t node, const BackingFile& backing) const {
    PartRequest request;
    request.directory = parts(node);
    request.identity.path = file();
    request.identity.file_device = backing.device();
    request.identity.file_inode = backing.inode();
    request.identity.node = node;
    request.identity.instance[0] = 77;
    request.identity.layout = make_layout(LayoutKind::cyclic, nodes_, block_bytes, before.size());
    request.file_bytes = before.size();
    return request;
  }

  std::uint32_t nodes_;
};

RecoverOptions to_file(const std::string& to) {
  RecoverOptions options;
  options.to = to;
  return options;
}

RecoverOptions overwriting() {
  RecoverOptions options;
  options.overwrite = true;
  return options;
}

void write_at(const std::string& path, off_t at, const Bytes& bytes) {
  const FileHandle file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(file.fd(), bytes.data(), bytes.size(), at),
            static_cast<ssize_t>(bytes.size()));
}

// As `cp -p` and rsync do.
void set_modified(const std::string& path, const timespec& time) {
  const timespec times[] = {{0, UTIME_OMIT}, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

struct Change {
  const char* name;
  void (*make)(const Victim&);
};

constexpr std::array<Change, 7> changes = {{
    {"one byte", [](const Victim& v) { write_at(v.file(), 150000, Bytes(1, 1)); }},
    {"a byte that the part has too",
     [](const Victim& v) { write_at(v.file(), 5000, Bytes(1, 1)); }},
    {"cut",
     [](const Victim& v) {
       must(Status(::truncate(v.file().c_str(), 100) == 0 ? Status::success()
                                                          : errno_status("truncate", errno)));
     }},
    {"longer", [](const Victim& v) { write_at(v.file(), 200001, Bytes(1, 7)); }},
    {"copied over", [](const Victim& v) { write_file(v.file(), Bytes(200001, 8)); }},
    {"copied over with the same bytes", [](const Victim& v) { write_file(v.file(), v.before); }},
    {"one byte, and the time of modification set back",
     [](const Victim& v) {
       struct stat was{};
       ASSERT_EQ(::stat(v.file().c_str(), &was), 0);
       write_at(v.file(), 150000, Bytes(1, 1));
       set_modified(v.file(), was.st_mtim);
     }},
}};

TEST(PartRecovery, a_file_that_nobody_changed_is_recovered) {
  for (const Acknowledge when : {Acknowledge::sync, Acknowledge::durable}) {
    const Victim victim(1, when);
    EXPECT_FALSE(must(list_parts(victim.parts())).at(0).file_changed);
    must(victim.open_again());
    EXPECT_EQ(read_file(victim.file()), victim.written);
    EXPECT_FALSE(victim.is_left());
  }
}

TEST(PartRecovery, a_changed_file_and_its_part_are_both_kept_and_the_open_says_so) {
  for (const Change& change : changes) {
    const Victim victim;
    change.make(victim);
    const Bytes changed = read_file(victim.file());
    const Bytes part = victim.part_bytes();
    EXPECT_TRUE(must(list_parts(victim.parts())).at(0).file_changed) << change.name;
    for (const Status& refused :
         {victim.open_again(), recover_parts(victim.places(), {}).status()}) {
      EXPECT_EQ(refused.code(), Code::foreign) << change.name;
      for (const char* words : {"was changed at 20", "last change was at 20", "--to FILE",
                                "--keep-file", "--overwrite-file"}) {
        EXPECT_TRUE(says(refused, words)) << change.name << ": " << refused.message();
        EXPECT_LT(refused.message().find(words), 240U);  // Open MPI cuts at 255
      }
    }
    EXPECT_EQ(read_file(victim.file()), changed) << change.name;
    EXPECT_EQ(victim.part_bytes() == part, true) << change.name;
  }
}

TEST(PartRecovery, the_part_wins_where_the_user_says_so) {
  for (const Change& change : changes) {
    const Victim victim;
    change.make(victim);
    Bytes expected = read_file(victim.file());
    if (expected.size() < victim.written.size()) expected.resize(165100);  // the last dirty byte
    (void)must(recover_parts(victim.places(), overwriting()));
    const Bytes got = read_file(victim.file());
    for (std::uint64_t at = 5000; at < 200000; at += 40000) {
      EXPECT_TRUE(std::equal(&victim.written[at], &victim.written[at + 100], &got[at]));
    }
    EXPECT_FALSE(victim.is_left());
  }
}

TEST(PartRecovery, what_the_job_had_goes_to_another_file_and_the_cached_one_stays) {
  const Victim victim;
  ASSERT_EQ(::chmod(victim.file().c_str(), 0640), 0);  // the time of change alone
  const std::string other = victim.scratch / "other";
  (void)must(recover_parts(victim.places(), to_file(other)));
  EXPECT_EQ(read_file(other), victim.written);
  EXPECT_EQ(read_file(victim.file()), victim.before);
  struct stat made{};
  ASSERT_EQ(::stat(other.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0640U);
  EXPECT_FALSE(victim.is_left());
}

TEST(PartRecovery, blocks_that_are_here_win_over_the_changed_file_in_the_copy) {
  const Victim victim;  // the first three blocks are present, the last is not
  write_file(victim.file(), Bytes(200001, 8));
  const std::string other = victim.scratch / "other";
  (void)must(recover_parts(victim.places(), to_file(other)));
  Bytes expected = victim.written;
  std::fill(expected.begin() + 3 * block_bytes, expected.end(), 8);
  EXPECT_EQ(read_file(other), expected);
  EXPECT_EQ(read_file(victim.file()), Bytes(200001, 8));
}

TEST(PartRecovery, a_copy_overwrites_no_file_and_the_part_stays_when_it_fails) {
  const Victim victim;
  const std::string other = victim.scratch / "other";
  write_file(other, Bytes(10, 1));
  const Status refused = recover_parts(victim.places(), to_file(other)).status();
  EXPECT_EQ(refused.code(), Code::wrong_state);
  EXPECT_TRUE(says(refused, "is another file than")) << refused.message();
  EXPECT_EQ(read_file(other), Bytes(10, 1));
  EXPECT_FALSE(recover_parts(victim.places(), to_file(victim.scratch / "no/such")).ok());
  EXPECT_TRUE(victim.is_left());
  must(victim.open_again());  // nor does it look like a change
  EXPECT_EQ(read_file(victim.file()), victim.written);
}

TEST(PartRecovery, a_renamed_file_is_recovered_under_its_new_name) {
  const Victim victim;
  const std::string moved = victim.scratch / "moved";
  std::filesystem::rename(victim.file(), moved);
  EXPECT_FALSE(recover_parts(victim.places(), {}).ok());
  EXPECT_TRUE(victim.is_left());
  (void)must(recover_parts(victim.places(), to_file(moved)));
  EXPECT_EQ(read_file(moved), victim.written);
  EXPECT_FALSE(victim.is_left());
}

TEST(PartRecovery, a_renamed_file_that_was_changed_is_left_alone) {
  const Victim victim;
  const std::string moved = victim.scratch / "moved";
  std::filesystem::rename(victim.file(), moved);
  write_at(moved, 150000, Bytes(1, 1));
  const Bytes changed = read_file(moved);
  EXPECT_EQ(recover_parts(victim.places(), to_file(moved)).status().code(), Code::foreign);
  EXPECT_EQ(read_file(moved), changed);
  EXPECT_TRUE(victim.is_left());
}

TEST(PartRecovery, a_file_that_is_gone_is_not_made_up_from_a_part_that_lacks_some_of_it) {
  const Victim victim;
  std::filesystem::remove(victim.file());
  const std::string other = victim.scratch / "other";
  const Status refused = recover_parts(victim.places(), to_file(other)).status();
  EXPECT_TRUE(says(refused, "not all of")) << refused.message();
  EXPECT_FALSE(std::filesystem::exists(other));
  EXPECT_TRUE(victim.is_left());
}

TEST(PartRecovery, parts_of_several_nodes_are_recovered_together) {
  const Victim victim(2);
  (void)must(recover_parts(victim.places(), {}));
  EXPECT_EQ(read_file(victim.file()), victim.written);
  EXPECT_FALSE(victim.is_left(0) || victim.is_left(1));
}

TEST(PartRecovery, one_node_s_part_alone_leaves_the_others_a_changed_file) {
  const Victim victim(2);
  (void)must(recover_parts({victim.place(1)}, {}));
  pass_tick();
  const Status refused = recover_parts({victim.place(0)}, {}).status();
  EXPECT_EQ(refused.code(), Code::foreign);
  EXPECT_TRUE(says(refused, "Other nodes may have changed it")) << refused.message();
  (void)must(recover_parts({victim.place(0)}, overwriting()));
  EXPECT_EQ(read_file(victim.file()), victim.written);
}

TEST(PartRecovery, a_changed_file_of_several_nodes_is_left_alone) {
  const Victim victim(2);
  write_at(victim.file(), 150000, Bytes(1, 1));
  EXPECT_EQ(recover_parts(victim.places(), {}).status().code(), Code::foreign);
  EXPECT_TRUE(victim.is_left(0) && victim.is_left(1));
  (void)must(recover_parts(victim.places(), to_file(victim.scratch / "other")));
  EXPECT_EQ(read_file(victim.scratch / "other").size(), victim.written.size());
}

TEST(PartRecovery, a_copy_needs_the_parts_of_all_nodes) {
  const Victim victim(2);
  const Status refused =
      recover_parts({victim.place(1)}, to_file(victim.scratch / "other")).status();
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_TRUE(says(refused, "the directories of all")) << refused.message();
}

// A change of the job's own that was under way: the file's times are near.
void begin_change(PartStateFormat& state) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  state.changing[0] |= 2;
  state.change_begun_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(now.tv_nsec);
}

TEST(PartRecovery, what_times_leave_open_the_bytes_decide) {
  const Victim ours;
  ours.change_state(begin_change);
  write_at(ours.file(), 5000, Bytes(100, 3));  // a dirty grain, as a write-back writes it
  must(ours.open_again());
  EXPECT_EQ(read_file(ours.file()), ours.written);

  const Victim changed;
  changed.change_state(begin_change);
  write_at(changed.file(), 20000, Bytes(100, 3));  // a clean one of a present block
  EXPECT_EQ(changed.open_again().code(), Code::foreign);
}

// Of the second of two nodes: what the first one knows says nothing of it.
TEST(PartRecovery, a_renamed_file_may_have_any_node_s_change_that_was_under_way) {
  const Victim victim(2);
  victim.change_state(begin_change, 1);
  write_at(victim.file(), 85000, Bytes(100, 3));  // a dirty grain of the second node
  pass_tick();
  const std::string moved = victim.scratch / "moved";
  std::filesystem::rename(victim.file(), moved);
  (void)must(recover_parts(victim.places(), to_file(moved)));
  EXPECT_EQ(read_file(moved), victim.written);
}

TEST(PartRecovery, a_renamed_file_that_was_changed_long_after_what_was_under_way_is_left_alone) {
  const Victim victim(2);
  victim.change_state(
      [](PartStateFormat& state) {
        begin_change(state);
        state.change_begun_ns -= 2 * grace_ns;
      },
      1);
  write_at(victim.file(), 85000, Bytes(100, 3));
  pass_tick();
  const std::string moved = victim.scratch / "moved";
  std::filesystem::rename(victim.file(), moved);
  EXPECT_EQ(recover_parts(victim.places(), to_file(moved)).status().code(), Code::foreign);
  EXPECT_TRUE(victim.is_left(0) && victim.is_left(1));
}

TEST(PartRecovery, a_write_that_was_under_way_does_not_contradict_the_file) {
  const Victim victim;
  const Bytes part = victim.part_bytes();
  const auto& header = *reinterpret_cast<const PartHeaderFormat*>(part.data());
  const FileHandle file(::open(victim.place().file.c_str(), O_RDWR | O_CLOEXEC));
  const Bytes torn(3000, 4);
  ASSERT_EQ(::pwrite(file.fd(), torn.data(), torn.size(),
                     static_cast<off_t>(header.block_offset + 20000)),
            static_cast<ssize_t>(torn.size()));
  victim.change_state(begin_change);
  write_at(victim.file(), 5000, Bytes(100, 3));
  EXPECT_EQ(victim.open_again().code(), Code::foreign);
  JournalFormat entry{};
  entry.owner = 1;
  entry.writing_offset = 19000;
  entry.writing_bytes = 9000;
  ASSERT_EQ(::pwrite(file.fd(), &entry, sizeof entry, static_cast<off_t>(header.journal_offset)),
            ssize_t{sizeof entry});
  must(victim.open_again());
}

TEST(PartRecovery, a_grain_that_a_recovery_put_back_does_not_contradict_the_file) {
  const TemporaryDirectory scratch;
  const std::string file = scratch / "file";
  const Bytes before(100000, 7);
  write_file(file, before);
  const auto backing = must(BackingFile::open(file, BackingFile::Access::read_write));
  const PoolVersion version{{1, 0}, 5, 0, 0};
  PartRequest request;
  request.directory = scratch / "parts";
  request.identity.path = file;
  request.identity.file_inode = backing.inode();
  request.identity.layout = make_layout(LayoutKind::cyclic, 1, block_bytes, before.size());
  request.identity.pool_job[0] = 1;
  request.restored = version;
  request.file_bytes = before.size();
  OpenPart open = must(make_part(request, backing));
  must(open.part->write(5000, Bytes(100, 9).data(), 100, Acknowledge::sync));
  (void)must(open.part->write_back(0, true));
  must(leave_part(std::move(open), true));
  {
    // A recovery that is killed before it writes, and another change that has no record.
    const auto part = must(attach_part_file(part_file_path(request.directory, file)));
    part->set_backing(&backing);
    must(part->changes().begin());
    must(part->roll_back(version));
    (void)part->changes().note();
    write_at(file, 90000, Bytes(1, 7));
  }
  must(recover_leftover_part(request.directory, file, backing, version));
  EXPECT_EQ(read_file(file), before);
}

// A change under way excuses nothing that came long after it. Where the job had changed what
// somebody else changes, no byte contradicts it.
TEST(PartRecovery, a_change_long_after_the_last_one_that_was_begun_is_left_to_the_user) {
  const Victim victim;
  victim.change_state([](PartStateFormat& state) {
    begin_change(state);
    state.change_begun_ns -= 2 * grace_ns;
  });
  write_at(victim.file(), 5000, Bytes(1, 1));
  const Bytes changed = read_file(victim.file());
  const Status refused = victim.open_again();
  EXPECT_EQ(refused.code(), Code::foreign);
  EXPECT_TRUE(says(refused, "if that took longer than any before it")) << refused.message();
  EXPECT_EQ(read_file(victim.file()), changed);
  (void)must(recover_parts(victim.places(), overwriting()));
  EXPECT_EQ(read_file(victim.file()), victim.written);
}

// The second page of what it writes can't be read.
[[noreturn]] void die_amid_large_write(const Victim& victim) {
  const OpenPart open = must(join_part(victim.parts(), victim.file()));
  const auto backing = must(BackingFile::open(victim.file(), BackingFile::Access::read_write));
  open.part->set_backing(&backing);
  void* const pages =
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(pages, 4, 8192);
  (void)::mprotect(static_cast<char*>(pages) + 4096, 4096, PROT_NONE);
  ::signal(SIGSEGV, SIG_DFL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  (void)open.part->write(20000, pages, 8192, Acknowledge::sync);
  ::_exit(0);
}

TEST(PartRecovery, a_large_write_that_was_cut_short_does_not_contradict_the_file) {
  const Victim victim;
  const pid_t child = ::fork();
  if (child == 0) die_amid_large_write(victim);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  victim.change_state(begin_change);
  write_at(victim.file(), 5000, Bytes(100, 3));
  must(victim.open_again());
}

}  // namespace
}  // namespace perdure
