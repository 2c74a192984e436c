// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of two nodes that were left behind, and how their ranks bring the file back together.
#include "cache/group_recovery.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/testing/thread_group.hpp"
#include "cache/part_note.hpp"
#include "cache/testing/scratch_part.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t block_bytes = 4096;

PoolVersion at(std::uint64_t version, std::uint64_t incarnation) {
  return {{1, 2}, version, incarnation, incarnation + 1};
}

PartFact must_one(const std::vector<PartFact>& parts) {
  EXPECT_EQ(parts.size(), 1U);
  return parts.empty() ? PartFact{} : parts.front();
}

class GroupRecoveryTest : public testing::Test {
 protected:
  GroupRecoveryTest() {
    write_file(file(), Bytes(2 * block_bytes, 'o'));
    backing_.emplace(must(BackingFile::open(file(), BackingFile::Access::read_write)));
  }
  std::string file() const { return scratch_ / "file"; }
  std::string node(std::uint32_t number) const {
    return scratch_ / ("node" + std::to_string(number));
  }
  bool has_part(std::uint32_t number) const {
    return std::filesystem::exists(part_file_path(node(number), file()));
  }

  // As a crash does: on node `on` the part of node `of`, of two, made at `version`, with a block of
  // `letter` that was written since, and committed with the next version if `committed`.
  void leave(std::uint32_t on, std::uint32_t of, const PoolVersion& version, char letter,
             bool committed, std::uint64_t instance = 1) {
    PartRequest request;
    request.directory = node(on);
    request.file_bytes = 2 * block_bytes;
    if (version.job[0] != 0) request.restored = version;
    PartIdentity& identity = request.identity;
    identity.path = file();
    identity.file_inode = backing_->inode();
    identity.node = of;
    identity.layout = {LayoutKind::cyclic, 2, block_bytes, 0};
    identity.instance[0] = instance;
    std::copy_n(version.job, 2, identity.pool_job);
    identity.pool = pool_of_parts_;
    identity.pool_version = version.version;
    identity.pool_incarnation = version.incarnation;
    identity.next_incarnation = version.next_incarnation;
    OpenPart open = must(make_part(request, *backing_));
    must(open.part->set_in_use(true));
    const Bytes bytes(block_bytes, static_cast<unsigned char>(letter));
    must(open.part->write(of * block_bytes, bytes.data(), bytes.size(), Acknowledge::sync));
    if (prepared_) {
      must(open.part->persist());
      must(open.part->set_prepared(*prepared_));
    }
    if (committed) {
      must(open.part->persist());
      must(open.part->set_base_version(version.version + 1, 0).status());
    }
    drop_part(std::move(open));
  }

  // On both nodes: all was durable for `version` when the pool was marked, and the parts have noted
  // the mark or not.
  void leave_prepared(std::uint64_t version, bool noted) {
    prepared_ = version;
    leave(0, 0, at(version - 1, 3), 'a', noted);
    leave(1, 1, at(version - 1, 3), 'b', noted);
    prepared_.reset();
  }

  // Of two ranks, each on the node of its number.
  Status recover(const PoolVersion& version) {
    ThreadJob job({0, 1});
    Status of_rank[2];
    job.run([&](ThreadGroup& group) {
      const GroupRecovery recovery{true,  {node(group.rank())}, pool(), version,
                                   false, std::nullopt};
      of_rank[group.rank()] = recover_group_file(group, *backing_, recovery);
    });
    EXPECT_EQ(of_rank[0].ok(), of_rank[1].ok());
    return of_rank[0].code() == Code::peer_failed ? of_rank[1] : of_rank[0];
  }
  std::string letters() const {
    const Bytes bytes = read_file(file());
    return {static_cast<char>(bytes.front()), static_cast<char>(bytes.back())};
  }

  std::string pool() const { return scratch_ / "pool"; }
  std::string note() const { return part_note_path(pool(), file()); }

  std::string pool_of_parts_;
  std::optional<std::uint64_t> prepared_;  // what leave() makes the part ready for
  TemporaryDirectory scratch_;
  std::optional<BackingFile> backing_;
};

TEST_F(GroupRecoveryTest, parts_of_all_nodes_go_back_together) {
  leave(0, 0, at(5, 3), 'a', true);
  leave(1, 1, at(5, 3), 'b', true);
  must(recover(at(6, 4)));
  EXPECT_EQ(letters(), "ab");
  EXPECT_FALSE(has_part(0) || has_part(1));
}

TEST_F(GroupRecoveryTest, what_was_not_committed_is_undone) {
  leave(0, 0, at(5, 3), 'a', false);
  leave(1, 1, at(5, 3), 'b', false);
  must(recover(at(5, 3)));
  EXPECT_EQ(letters(), "oo");
}

// The same number, of a life that this one knows nothing of.
TEST_F(GroupRecoveryTest, a_part_of_an_older_life_goes_where_another_node_has_one_of_this) {
  leave(0, 0, at(5, 7), 'a', true);
  leave(1, 1, at(5, 3), 'x', true, 2);
  must(recover(at(6, 8)));
  EXPECT_EQ(letters(), "ao");
  EXPECT_FALSE(has_part(0) || has_part(1));
}

TEST_F(GroupRecoveryTest, without_one_of_this_life_a_user_must_say_what_is_meant) {
  leave(1, 1, at(5, 3), 'x', true);
  const Status refused = recover(at(6, 8));
  EXPECT_EQ(refused.code(), Code::wrong_state);
  EXPECT_NE(refused.message().find("perdure cache discard"), std::string::npos);
  EXPECT_TRUE(has_part(1));
  EXPECT_EQ(letters(), "oo");
}

// As /dev/shm is when its node was started again, and the pool is in persistent memory.
TEST_F(GroupRecoveryTest, a_part_that_was_lost_is_missed) {
  must(Directory::make(pool()).status());
  pool_of_parts_ = pool();
  leave(0, 0, at(5, 3), 'a', true);
  leave(1, 1, at(5, 3), 'b', true);
  ASSERT_TRUE(std::filesystem::exists(note()));
  std::filesystem::remove_all(node(0));
  std::filesystem::remove_all(node(1));
  const Status refused = recover(at(6, 4));
  EXPECT_EQ(refused.code(), Code::not_found);
  EXPECT_NE(refused.message().find("remove " + note()), std::string::npos) << refused.message();
  EXPECT_EQ(letters(), "oo");
  std::filesystem::remove(note());  // the user means it
  must(recover(at(6, 4)));
}

TEST_F(GroupRecoveryTest, a_part_that_is_recovered_or_discarded_leaves_no_note) {
  must(Directory::make(pool()).status());
  pool_of_parts_ = pool();
  for (const bool discarded : {false, true}) {
    leave(0, 0, at(5, 3), 'a', true);
    leave(1, 1, at(5, 3), 'b', true);
    ASSERT_TRUE(std::filesystem::exists(note()));
    for (std::uint32_t on = 0; discarded && on < 2; ++on) {
      must(discard_part(node(on), part_file_path(node(on), file())));
    }
    must(recover(at(6, 4)));
    EXPECT_FALSE(std::filesystem::exists(note()));
  }
}

// parts.F1 of part_facts.hpp: one that was removed would be missed.
// The crash came after the pool's mark of version 6, or before it, and the next life committed
// without having opened the file: version 7 knows nothing of it, nor does a version 6 of that life.
TEST_F(GroupRecoveryTest, a_version_that_was_committed_without_the_file_is_refused) {
  for (const bool noted : {true, false}) {
    for (const PoolVersion& later : {at(7, 4), at(7, 5), at(6, 5)}) {
      leave_prepared(6, noted);
      const Status refused = recover(later);
      EXPECT_EQ(refused.code(), Code::wrong_state) << later.version << ' ' << noted;
      EXPECT_NE(refused.message().find("it was committed without the file"), std::string::npos)
          << refused.message();
      EXPECT_TRUE(has_part(0) && has_part(1));
      EXPECT_EQ(letters(), "oo");
      must(recover(at(6, 4)));  // nothing is lost: where the pool goes back, so does the file
      EXPECT_EQ(letters(), "ab");
      write_file(file(), Bytes(2 * block_bytes, 'o'));
    }
  }
}

TEST_F(GroupRecoveryTest, where_one_node_can_not_write_no_part_is_removed) {
  leave(0, 0, at(5, 3), 'a', true);
  leave(1, 1, at(5, 3), 'b', true);
  std::filesystem::resize_file(part_file_path(node(1), file()) + ".undo", 100);
  EXPECT_FALSE(recover(at(6, 4)).ok());
  EXPECT_TRUE(has_part(0) && has_part(1));
  const auto directory = must(Directory::open(node(0), Trust::own));
  const std::uint64_t job[2] = {1, 2};
  EXPECT_TRUE(must_one(find_group_parts(directory, job, Trust::own)).in_use);
}

void change_a_byte(const std::string& file) {
  ::usleep(30000);  // a tick of the kernel's clock
  const FileHandle handle(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(handle.fd(), "!", 1, 0), 1);
}

TEST_F(GroupRecoveryTest, a_file_that_somebody_else_changed_is_left_alone_by_all_nodes) {
  for (const PoolVersion& version : {at(6, 4), PoolVersion{}}) {
    leave(0, 0, version.job[0] == 0 ? version : at(5, 3), 'a', version.job[0] != 0);
    leave(1, 1, version.job[0] == 0 ? version : at(5, 3), 'b', version.job[0] != 0);
    change_a_byte(file());
    const Status refused = recover(version);
    EXPECT_EQ(refused.code(), Code::foreign) << refused.message();
    EXPECT_EQ(letters(), "!o");
    EXPECT_TRUE(has_part(0) && has_part(1));
    for (const std::uint32_t number : {0U, 1U}) {
      must(discard_part(node(number), part_file_path(node(number), file())));
    }
  }
}

// The record of the node that changed the file last is its stamp, that of the other is older.
TEST_F(GroupRecoveryTest, the_node_that_changed_the_file_last_has_the_last_word) {
  leave(0, 0, PoolVersion{}, 'a', false);
  leave(1, 1, PoolVersion{}, 'b', false);
  ::usleep(30000);
  {
    OpenPart open = must(join_part(node(1), file()));
    open.part->set_backing(&*backing_);
    must(open.part->write_back(0, true).status());
  }
  EXPECT_EQ(letters(), "ob");
  must(recover(PoolVersion{}));
  EXPECT_EQ(letters(), "ab");
  EXPECT_FALSE(has_part(0) || has_part(1));
}

}  // namespace
}  // namespace perdure
