// SPDX-License-Identifier: BSD-3-Clause
// ctest: NAME parts_facts_test
#include "parts/part_facts.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

// Of two nodes, made at version 40 of incarnation 3; what was committed since is of incarnation 7.
PartFact part_of(std::uint32_t node) {
  PartFact part;
  part.path = "/scratch/field";
  part.instance[0] = 11;
  part.node = node;
  part.nodes = 2;
  part.pool_version = 40;
  part.pool_incarnation = 3;
  part.next_incarnation = 7;
  part.noted = 46;
  part.prepared = 46;
  part.in_use = true;
  return part;
}
PoolVersion at(std::uint64_t version, std::uint64_t incarnation) {
  return {{1, 2}, version, incarnation, 99};
}

TEST(PartFacts, a_part_holds_the_version_before_its_changes_and_the_one_that_it_is_ready_for) {
  const PartFact part = part_of(0);
  EXPECT_TRUE(holds_version(part, at(45, 7)));
  EXPECT_TRUE(holds_version(part, at(46, 7)));
  EXPECT_FALSE(holds_version(part, at(44, 7)));
  EXPECT_FALSE(holds_version(part, at(47, 7)));
  EXPECT_TRUE(holds_version(part, at(45, 0))) << "the incarnation is not known";
}

TEST(PartFacts, the_same_number_of_another_history_is_another_version) {
  PartFact part = part_of(0);
  EXPECT_FALSE(holds_version(part, at(45, 8)));
  EXPECT_FALSE(holds_version(part, at(45, 3)));
  part.noted = 41;  // nothing was committed since it was made
  part.prepared = 0;
  EXPECT_TRUE(holds_version(part, at(40, 3)));
  EXPECT_FALSE(holds_version(part, at(40, 7)));
}

// The pool was made of an image and has an incarnation of its own.
TEST(PartFacts, a_fresh_part_holds_an_image_that_was_taken_in_its_life) {
  PartFact part = part_of(0);
  part.noted = 41;
  part.prepared = 0;
  part.in_use = false;
  part.fresh = true;
  const auto holds = [&part](std::uint64_t number, std::uint64_t image) {
    PoolVersion version = at(number, 9);
    version.image_incarnation = image;
    return holds_version(part, version);
  };
  EXPECT_TRUE(holds(40, 5));
  EXPECT_FALSE(holds(40, 0)) << "of no image";
  EXPECT_FALSE(holds(40, 3)) << "of the life before";
  EXPECT_FALSE(holds(40, 7)) << "of what was committed since";
  EXPECT_FALSE(holds(41, 5));
  part.fresh = false;
  EXPECT_FALSE(holds(40, 5)) << "the file may lack what another part had";
}

TEST(PartFacts, one_node_without_its_part_makes_the_version_incomplete) {
  EXPECT_EQ(missing_parts({part_of(0), part_of(1)}, at(45, 7)), "");
  const std::string missing = missing_parts({part_of(1)}, at(45, 7));
  EXPECT_NE(missing.find("/scratch/field"), std::string::npos) << missing;
  EXPECT_NE(missing.find("the part that node 0 of 2 kept"), std::string::npos) << missing;
}

TEST(PartFacts, a_part_of_another_instance_stands_for_none) {
  PartFact other = part_of(0);
  other.instance[0] = 12;
  other.in_use = false;
  EXPECT_NE(missing_parts({part_of(1), other}, at(45, 7)), "");
}

TEST(PartFacts, parts_that_the_file_does_not_need_any_more_may_be_missing) {
  PartFact released = part_of(1);
  released.in_use = false;
  EXPECT_EQ(missing_parts({released}, at(45, 7)), "");
  EXPECT_EQ(missing_parts({part_of(0), released}, at(45, 7)), "") << "it is still there";
}

TEST(PartFacts, a_part_of_an_older_life_is_of_no_interest) {
  EXPECT_EQ(missing_parts({part_of(0)}, at(45, 20)), "");
  EXPECT_EQ(missing_parts({part_of(0)}, at(90, 20)), "");
}

TEST(PartFacts, a_part_of_this_life_that_can_not_go_back_makes_the_version_incomplete) {
  EXPECT_NE(missing_parts({part_of(0), part_of(1)}, at(43, 7)), "");
}

TEST(PartFacts, names_of_parts_and_undo_logs_belong_to_a_pool) {
  EXPECT_TRUE(is_part_name("0123456789abcdef.part"));
  EXPECT_TRUE(is_part_name("0123456789abcdef.part.undo"));
  EXPECT_FALSE(is_part_name("job"));
  EXPECT_FALSE(is_part_name("image-00000.0"));
}

}  // namespace
}  // namespace perdure
