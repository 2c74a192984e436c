// SPDX-License-Identifier: BSD-3-Clause
//
// PERDURE_IPV=verify=on: faults of the runtime and of code that announces boxes are planted, and
// the persistence point must name the object, the byte, the version and both values.
// ctest: LABELS truth
#include <gtest/gtest.h>

#include <cstring>

#include "model_job.hpp"

namespace perdure {
namespace {

ModelShape verified(Tier tier, unsigned lag = 1) {
  ModelShape shape;
  shape.bytes = 16384;
  shape.tier = tier;
  shape.lag = lag;
  shape.verify = true;
  return shape;
}

ModelVersion sevens(const ModelShape& shape) {
  ModelVersion fresh;
  fresh.bytes.assign(shape.bytes, 7);
  return fresh;
}

// Rows of 256 bytes, 512 apart: the first half of each 512.
perdure_ipv_box box_of(ModelJob& job) {
  perdure_ipv_box box{};
  box.first = const_cast<std::uint8_t*>(job.address());
  box.dimensions = 2;
  box.counts[0] = 256;
  box.counts[1] = 16;
  box.strides[0] = 1;
  box.strides[1] = 512;
  return box;
}

// A job whose object has been in two versions, so that its copies have changed roles.
void make_versions(ModelJob& job) {
  Random random(1);
  for (int version = 0; version < 2; ++version) {
    job.store({0, 16384}, false, random);
    ASSERT_TRUE(job.persist().ok());
  }
  std::memset(const_cast<std::uint8_t*>(job.address()), 7, 16384);
  ASSERT_TRUE(job.persist().ok());
}

// Runs the nest over box_of(); what the next persistence point, and the one after it, say.
template <typename Nest>
std::string said_after(ModelJob& job, const Nest& nest) {
  const perdure_ipv_box box = box_of(job);
  const auto answer = job.object().box_begin(box);
  EXPECT_NE(answer.how, PERDURE_IPV_NO_BOX);
  nest(answer.load);
  (void)job.object().box_end(box, false);
  const auto said = job.persist();
  EXPECT_EQ(job.persist().ok(), said.ok()) << "only the first persistence point says it";
  return said.ok() ? "" : said.status().message();
}

void expect_words(const std::string& said, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(said.find(word), std::string::npos) << said;
}

class IpvVerify : public testing::TestWithParam<Tier> {};

TEST_P(IpvVerify, a_byte_of_a_saved_copy_that_is_not_the_programs_is_named) {
  const ModelShape shape = verified(GetParam());
  ModelJob job(shape, model_device(shape));
  ASSERT_TRUE(job.start(sevens(shape)).ok());
  ASSERT_TRUE(job.persist().ok());
  const VersionedArray& array = *job.object().array();
  job.device().base()[array.copy_offset(array.working_copy()) + 4321] = std::byte{9};
  const auto said = job.persist();
  ASSERT_FALSE(said.ok());
  expect_words(said.status().message(),
               {"verify: version 1 of object 'u'", "byte 4321", "9 was saved, not 7"});
}

INSTANTIATE_TEST_SUITE_P(Tiers, IpvVerify, testing::Values(PERDURE_IPV_COPY, PERDURE_IPV_STREAM),
                         [](const auto& of) { return tier_name(of.param); });

TEST(IpvVerifyBox, a_nest_that_keeps_to_the_rules_is_right) {
  const ModelShape shape = verified(PERDURE_IPV_STREAM, 0);
  ModelJob job(shape, model_device(shape));
  ASSERT_TRUE(job.start(sevens(shape)).ok());
  make_versions(job);
  const std::string said = said_after(job, [&](ptrdiff_t load) {
    for (std::ptrdiff_t i = 0; i < 16384; ++i) {
      if (i % 512 < 256) job.address()[i] = static_cast<std::uint8_t>(job.address()[i + load] + 1);
    }
  });
  EXPECT_EQ(said, "");
}

TEST(IpvVerifyBox, what_a_nest_left_out_of_its_box_is_named) {
  const ModelShape shape = verified(PERDURE_IPV_STREAM, 0);
  ModelJob job(shape, model_device(shape));
  ASSERT_TRUE(job.start(sevens(shape)).ok());
  make_versions(job);
  const std::string said = said_after(job, [&](ptrdiff_t) {
    for (int i = 0; i < 16384; ++i) {
      if (i % 512 < 256 && i / 8 != 5128 / 8) job.address()[i] = 8;
    }
  });
  expect_words(said, {"on the way to version 4 of object 'u'", "over byte 5128", "did not store",
                      "holds, 7"});
}

TEST(IpvVerifyBox, what_a_nest_stored_outside_of_its_box_is_named) {
  const ModelShape shape = verified(PERDURE_IPV_STREAM, 0);
  ModelJob job(shape, model_device(shape));
  ASSERT_TRUE(job.start(sevens(shape)).ok());
  make_versions(job);
  const std::string said = said_after(job, [&](ptrdiff_t) {
    for (int i = 0; i < 16384; ++i) {
      if (i % 512 < 256) job.address()[i] = 8;
    }
    job.address()[512 + 400] = 9;
  });
  expect_words(said, {"on the way to version 4 of object 'u'", "byte 912 shows 9, not 7"});
}

TEST(IpvVerifyBox, a_number_that_was_read_from_the_new_copy_before_it_was_stored_is_named) {
  const ModelShape shape = verified(PERDURE_IPV_STREAM, 0);
  ModelJob job(shape, model_device(shape));
  ASSERT_TRUE(job.start(sevens(shape)).ok());
  make_versions(job);
  auto* const u = reinterpret_cast<volatile double*>(job.address());
  const std::string said = said_after(job, [&](ptrdiff_t load) {
    const auto* const old = reinterpret_cast<const volatile double*>(job.address() + load);
    for (int i = 0; i < 16384 / 8; ++i) {
      if (i % 64 < 32) u[i] = 0.5 * (i == 130 ? u[i] : old[i]) + 1;
    }
  });
  expect_words(said, {"on the way to version 4 of object 'u'", "over byte 1040", "read there"});
}

}  // namespace
}  // namespace perdure
