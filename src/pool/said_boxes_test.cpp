// SPDX-License-Identifier: BSD-3-Clause
//
// What versions note of where an array lies in a global one, when arrays go, come back, and go back
// to other versions.
#include <gtest/gtest.h>

#include <utility>

#include "pool/box_note.hpp"
#include "pool/testing/pool_fixture.hpp"

namespace perdure {
namespace {

class Boxes : public PoolTest {
 protected:
  VersionedArray* open_array() {
    ArrayOptions options;
    options.of_program = true;  // it may get another size
    VersionedArray* const opened = array("u", shape(ArrayMode::copy), options);
    EXPECT_NE(opened, nullptr) << status_.message();
    return opened;
  }
  // Array u, open; version 1 has it at 5.
  void begin() {
    geometry_.slots = 4;
    open();
    u_ = open_array();
    ASSERT_TRUE(pool_->restart().ok());
    say(5);
    commit();
  }
  void say(std::uint64_t first) {
    const Status said = pool_->set_box(*u_, {{2000}, {first}});
    ASSERT_TRUE(said.ok()) << said.message();
  }
  void commit() {
    const auto committed = pool_->commit();
    ASSERT_TRUE(committed.ok()) << committed.status().message();
  }
  void close(bool erase) { ASSERT_TRUE(pool_->close_array(std::exchange(u_, {}), erase).ok()); }
  void close_in_a_version_that_fails() {
    medium_->failing_fence = medium_->counters().fence_calls + 1;
    ASSERT_TRUE(pool_->commit_begin().ok());
    close(false);
    ASSERT_FALSE(pool_->commit_wait().ok());
    medium_->failing_fence = 0;
  }
  // The newest version's; 0: none.
  std::uint64_t noted() {
    crash();
    open();
    const GlobalBoxes boxes = boxes_of(pool_->chosen());
    return boxes.empty() ? 0 : boxes.begin()->second.first[0];
  }

  VersionedArray* u_ = nullptr;
};

TEST_F(Boxes, of_an_array_that_is_erased_are_not_those_of_the_next_one_of_its_name) {
  begin();
  close(true);
  u_ = open_array();
  commit();
  EXPECT_EQ(noted(), 0U);
}

TEST_F(Boxes, of_an_array_that_is_erased_stay_with_the_versions_that_have_it) {
  begin();
  say(9);
  commit();
  close(true);
  commit();
  ASSERT_TRUE(pool_->restore(1).ok());
  commit();
  EXPECT_EQ(noted(), 5U);
}

TEST_F(Boxes, that_no_version_has_go_when_the_array_is_closed) {
  begin();
  say(9);
  close(false);
  commit();
  EXPECT_EQ(noted(), 5U);
}

TEST_F(Boxes, come_back_when_an_array_is_closed_that_had_got_another_size) {
  begin();
  ASSERT_TRUE(pool_->resize_array(*u_, {500}, nullptr).ok());
  close(false);
  commit();
  EXPECT_EQ(noted(), 5U);
}

TEST_F(Boxes, of_a_version_under_way_are_its_array_s_that_is_closed_meanwhile) {
  begin();
  say(9);
  ASSERT_TRUE(pool_->commit_begin().ok());
  say(12);
  close(false);
  ASSERT_TRUE(pool_->commit_wait().ok());
  commit();
  EXPECT_EQ(noted(), 9U);
}

TEST_F(Boxes, of_a_version_that_fails_go_with_its_array_that_is_closed_meanwhile) {
  begin();
  say(9);
  close_in_a_version_that_fails();
  commit();
  EXPECT_EQ(noted(), 5U);
}

TEST_F(Boxes, of_an_array_that_was_erased_do_not_come_back_with_another_that_fails) {
  begin();
  close(true);
  u_ = open_array();
  close_in_a_version_that_fails();
  u_ = open_array();
  commit();
  EXPECT_EQ(noted(), 0U);
}

TEST_F(Boxes, of_a_version_that_fails_stay_with_an_array_that_stays) {
  begin();
  say(9);
  EXPECT_FALSE(pool_->commit(Status(Code::io_error, "refused")).ok());
  commit();
  EXPECT_EQ(noted(), 9U);
}

}  // namespace
}  // namespace perdure
