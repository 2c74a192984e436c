// SPDX-License-Identifier: BSD-3-Clause
//
// Files that stand aside, seen by several processes: nobody's access overlaps the making of a part,
// nobody overlooks one, and what dead processes, other programs or nobody left in the table's place
// harms no file.
#include "cache/aside_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

// A child, which must be forked before this process joins the table: a number is one process's.
// It does something, says so, and then waits until it is killed or let go.
class Child {
 public:
  explicit Child(const std::function<void()>& act, const std::function<void()>& at_last = [] {}) {
    int said[2];
    int go[2];
    if (::pipe(said) != 0 || ::pipe(go) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(go[1]);
      act();
      char byte = 0;
      if (::write(said[1], &byte, 1) != 1) ::_exit(1);
      (void)!::read(go[0], &byte, 1);
      at_last();
      AsideTable::leave_all();
      ::_exit(0);
    }
    ::close(said[1]);
    ::close(go[0]);
    go_ = FileHandle(go[1]);
    char byte = 1;
    if (::read(said[0], &byte, 1) != 1) ADD_FAILURE() << "the child failed";
    ::close(said[0]);
  }
  ~Child() { end(SIGKILL); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() { end(SIGKILL); }
  void let_go_on() { go_ = FileHandle(); }
  void let_go() {
    go_ = FileHandle();
    end(0);
  }

 private:
  void end(int signal) {
    if (pid_ == 0) return;
    if (signal != 0) ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  FileHandle go_;
  pid_t pid_ = 0;
};

class Aside : public testing::Test {
 protected:
  Aside() {
    write_file(file(), Bytes(10000, 7));
    backing_.emplace(must(BackingFile::open(file(), BackingFile::Access::read_write)));
  }
  ~Aside() override { AsideTable::leave_all(); }

  std::string file() const { return scratch_ / "file"; }
  std::string parts() const { return scratch_ / "parts"; }
  std::string table_file() const { return parts() + "/aside"; }
  PartRequest request() const {
    PartRequest request;
    request.directory = parts();
    request.identity.path = file();
    request.identity.file_device = backing_->device();
    request.identity.file_inode = backing_->inode();
    request.identity.layout = make_layout(LayoutKind::cyclic, 1, 65536, 0);
    return request;
  }
  std::shared_ptr<AsideTable> table() const { return must(AsideTable::of(parts())); }
  std::optional<AsideEntry> enter() const {
    return must(table()->enter(backing_->device(), backing_->inode(), part_file_name(file())));
  }
  // As a process does that begins to make a part, and stops there.
  void begin_making() const {
    static auto locked = must(lock_part_directory(parts(), true));
    static auto making =
        must(AsideMaking::begin(must(AsideTable::find(locked)),
                                {backing_->device(), backing_->inode(), file(), false, 30000}));
  }
  const BackingFile& backing() const { return *backing_; }

 private:
  TemporaryDirectory scratch_;
  std::optional<BackingFile> backing_;
};

TEST_F(Aside, an_access_aside_is_told_of_the_part) {
  auto entry = enter();
  ASSERT_TRUE(entry);
  ASSERT_TRUE(entry->begin());
  entry->end();
  OpenPart part = must(make_part(request(), backing()));
  EXPECT_FALSE(entry->begin());
  auto joined = must(follow_part(request(), backing(), *entry));
  ASSERT_TRUE(joined);
  EXPECT_TRUE(joined->joined);
  must(leave_part(std::move(*joined), false));
  must(leave_part(std::move(part), false));
  EXPECT_FALSE(must(follow_part(request(), backing(), *entry)));
  EXPECT_TRUE(entry->begin());
  entry->end();
}

TEST_F(Aside, a_file_with_a_part_does_not_begin_aside) {
  OpenPart part = must(make_part(request(), backing()));
  EXPECT_FALSE(enter());
  must(leave_part(std::move(part), false));
  EXPECT_TRUE(enter());
}

TEST_F(Aside, a_part_waits_for_the_accesses_of_all_processes) {
  static std::optional<AsideEntry> entry;
  Child busy(
      [&] {
        entry.emplace(std::move(*enter()));
        if (!entry->begin()) ::_exit(1);
      },
      [&] {
        must(backing().write(10000, "late", 4));
        entry->end();
      });
  std::atomic<bool> made = false;
  OpenPart part;
  std::thread maker([&] {
    part = must(make_part(request(), backing()));
    made = true;
  });
  ::usleep(100000);
  EXPECT_FALSE(made);  // can only fail if the part did not wait
  busy.let_go_on();
  maker.join();
  busy.let_go();
  EXPECT_EQ(part.part->size_bytes(), 10004U);
  must(leave_part(std::move(part), false));
}

// cache.A2: between the maker's look at the entries and the name of its part.
TEST_F(Aside, a_file_does_not_begin_aside_while_a_part_is_made) {
  const std::string begun = parts() + "/begun";
  Child maker([&] { (void)table(); },
              [&] {
                begin_making();
                std::ofstream(begun).put('1');
                ::pause();
              });
  (void)table();
  maker.let_go_on();
  while (!std::filesystem::exists(begun)) ::usleep(1000);
  std::atomic<bool> entered = false;
  std::thread opening([&] {
    EXPECT_TRUE(enter());
    entered = true;
  });
  ::usleep(50000);
  EXPECT_FALSE(entered);  // can only fail if it did not wait
  maker.kill();
  opening.join();
}

TEST_F(Aside, a_part_that_need_not_be_is_not_waited_for) {
  Child busy([&] {
    static auto entry = enter();
    if (!entry || !entry->begin()) ::_exit(1);
  });
  auto own = enter();
  PartRequest hasty = request();
  hasty.wait_ms = 20;
  EXPECT_EQ(make_part(hasty, backing()).status().code(), Code::busy);
  EXPECT_FALSE(own->begin());
  EXPECT_FALSE(must(follow_part(request(), backing(), *own)));
  EXPECT_TRUE(own->begin());
  own->end();
}

TEST_F(Aside, a_process_that_died_in_an_access_is_not_waited_for) {
  Child busy([&] {
    static auto entry = enter();
    if (!entry || !entry->begin()) ::_exit(1);
  });
  auto own = enter();
  busy.kill();
  OpenPart part = must(make_part(request(), backing()));
  EXPECT_FALSE(own->begin());
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, a_maker_that_died_leaves_the_file_aside) {
  Child first([&] { (void)table(); },
              [&] {
                begin_making();
                ::raise(SIGKILL);
              });
  auto entry = enter();
  first.let_go();
  EXPECT_FALSE(entry->begin());
  EXPECT_FALSE(must(follow_part(request(), backing(), *entry)));
  EXPECT_TRUE(entry->begin());
  entry->end();
  // `making` is odd still.
  EXPECT_TRUE(must(table()->enter(1, 2, "none")));
  OpenPart part = must(make_part(request(), backing()));
  EXPECT_FALSE(entry->begin());
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, a_process_that_died_with_the_lock_of_the_directory_only_is_harmless) {
  auto entry = enter();
  Child locker([&] { static auto locked = must(lock_part_directory(parts(), true)); });
  EXPECT_TRUE(entry->begin());
  entry->end();
  locker.kill();
  OpenPart part = must(make_part(request(), backing()));
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, what_a_dead_maker_wrote_to_its_part_is_read_aside) {
  Child maker([&] { (void)table(); },
              [&] {
                static auto part = must(make_part(request(), backing()));
                must(part.part->write(5000, "kept", 4, Acknowledge::sync));
                ::raise(SIGKILL);
              });
  auto entry = enter();
  maker.let_go();
  EXPECT_FALSE(entry->begin());
  EXPECT_FALSE(must(follow_part(request(), backing(), *entry)));
  ASSERT_TRUE(entry->begin());
  char seen[4];
  must(backing().read(5000, seen, 4));
  entry->end();
  EXPECT_EQ(std::string(seen, 4), "kept");
}

TEST_F(Aside, a_part_unborn_is_none) {
  Child maker([&] { (void)table(); },
              [&] {
                begin_making();
                ::raise(SIGKILL);
              });
  auto entry = enter();
  maker.let_go();
  std::ofstream(part_file_path(parts(), file())).put('\0');
  ASSERT_EQ(::chmod(part_file_path(parts(), file()).c_str(), 0600), 0);
  EXPECT_FALSE(must(follow_part(request(), backing(), *entry)));
  EXPECT_TRUE(entry->begin());
  entry->end();
}

TEST_F(Aside, the_part_is_as_large_as_the_file_is_then) {
  auto entry = enter();
  PartRequest early = request();
  early.file_bytes = 10000;
  ASSERT_TRUE(entry->begin());
  must(backing().write(20000, "grown", 5));
  entry->end();
  OpenPart part = must(make_part(early, backing()));
  EXPECT_EQ(part.part->size_bytes(), 20005U);
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, a_part_of_several_nodes_is_refused_while_others_have_the_file_aside) {
  Child other([&] {
    static auto entry = enter();
    if (!entry) ::_exit(1);
  });
  PartRequest several = request();
  several.identity.layout = make_layout(LayoutKind::cyclic, 2, 65536, 10000);
  EXPECT_EQ(make_part(several, backing()).status().code(), Code::busy);
  other.kill();
  OpenPart part = must(make_part(several, backing()));
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, another_file_under_the_same_path_is_none) {
  auto entry = enter();
  ASSERT_EQ(::unlink(file().c_str()), 0);
  write_file(file(), Bytes(5, 1));
  const auto second = must(BackingFile::open(file(), BackingFile::Access::read_write));
  PartRequest other = request();
  other.identity.file_inode = second.inode();
  OpenPart part = must(make_part(other, second));
  EXPECT_TRUE(entry->begin());
  entry->end();
  EXPECT_FALSE(must(follow_part(request(), backing(), *entry)));
  must(leave_part(std::move(part), false));
}

TEST_F(Aside, a_process_has_so_many_files_aside) {
  std::vector<AsideEntry> entries;
  for (std::uint32_t i = 0; i < aside_entries; ++i) {
    auto entry = must(table()->enter(1, i, "none"));
    ASSERT_TRUE(entry) << i;
    entries.push_back(std::move(*entry));
  }
  EXPECT_FALSE(must(table()->enter(1, 1000, "none")));
  entries.pop_back();
  EXPECT_TRUE(must(table()->enter(1, 1000, "none")));
}

TEST_F(Aside, each_entry_has_a_shared_pointer_of_its_own) {
  auto first = enter();
  auto second = must(table()->enter(1, 2, "none"));
  std::uint64_t* const pointer = table()->pointer(first->number());
  *pointer = 5;
  EXPECT_EQ(*table()->pointer(second->number()), 0U);
  EXPECT_EQ(table()->pointer(owners_max * aside_entries), nullptr);
  Child other([&] {
    // Of its own mapping: this process's was inherited, and is the same memory.
    if (*must(AsideTable::of(parts()))->pointer(first->number()) != 5) ::_exit(1);
  });
}

TEST_F(Aside, the_last_process_removes_the_table) {
  Child other([&] {
    if (!enter()) ::_exit(1);
  });
  EXPECT_TRUE(enter());
  AsideTable::leave_all();
  EXPECT_TRUE(std::filesystem::exists(table_file()));
  other.let_go();
  EXPECT_FALSE(std::filesystem::exists(table_file()));
}

TEST_F(Aside, what_nobody_uses_is_made_anew) {
  Child killed([&] {
    static auto entry = enter();
    begin_making();
  });
  killed.kill();
  EXPECT_TRUE(std::filesystem::exists(table_file()));
  ASSERT_EQ(::truncate(table_file().c_str(), 100), 0);
  EXPECT_TRUE(enter());
  AsideTable::leave_all();
  ASSERT_EQ(::mkdir(parts().c_str(), 0700) == 0 || errno == EEXIST, true);
  std::ofstream(table_file()) << "something else";
  ASSERT_EQ(::chmod(table_file().c_str(), 0600), 0);
  EXPECT_TRUE(enter());
}

TEST_F(Aside, a_list_of_the_parts_removes_what_nobody_uses) {
  Child killed([&] { (void)table(); });
  EXPECT_TRUE(must(list_parts(parts())).empty());
  EXPECT_TRUE(std::filesystem::exists(table_file()));
  killed.kill();
  EXPECT_TRUE(must(list_parts(parts())).empty());
  EXPECT_FALSE(std::filesystem::exists(table_file()));
}

// Of one that some other program uses.
TEST_F(Aside, a_table_that_is_none_is_refused_in_use) {
  ASSERT_EQ(::mkdir(parts().c_str(), 0700), 0);
  std::ofstream(table_file()) << "something else";
  ASSERT_EQ(::chmod(table_file().c_str(), 0600), 0);
  const FileHandle user(::open(table_file().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(user.fd(), LOCK_SH), 0);
  for (const std::size_t bytes : {std::size_t{14}, aside_file_bytes, aside_file_bytes / 2}) {
    ASSERT_EQ(::truncate(table_file().c_str(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(AsideTable::of(parts()).status().code(), Code::damaged) << bytes;
    EXPECT_EQ(make_part(request(), backing()).status().code(), Code::damaged) << bytes;
  }
}

TEST_F(Aside, a_link_in_the_place_of_the_table_is_not_followed) {
  ASSERT_EQ(::mkdir(parts().c_str(), 0700), 0);
  const std::string victim = parts() + "/victim";
  write_file(victim, Bytes(100, 3));
  ASSERT_EQ(::symlink(victim.c_str(), table_file().c_str()), 0);
  EXPECT_EQ(AsideTable::of(parts()).status().code(), Code::foreign);
  EXPECT_EQ(make_part(request(), backing()).status().code(), Code::foreign);
  EXPECT_EQ(std::filesystem::file_size(victim), 100U);
}

TEST_F(Aside, a_table_that_was_removed_is_made_again) {
  auto before = enter();
  must(before->table().check());
  ASSERT_EQ(::unlink(table_file().c_str()), 0);
  EXPECT_EQ(before->table().check().code(), Code::wrong_state);
  EXPECT_TRUE(enter());
  EXPECT_TRUE(std::filesystem::exists(table_file()));
}

}  // namespace
}  // namespace perdure
