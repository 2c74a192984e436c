// Several threads store at once what nobody announced, to an object whose copies change roles.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "model_job.hpp"

namespace perdure {
namespace {

constexpr std::size_t threads = 4;
constexpr int epochs = 40;

// Every store counts, whichever thread is the first and lets the address be stored to.
TEST(IpvThreads, a_store_behind_the_switch_is_not_overwritten_by_old_contents) {
  for (const Tier tier : {PERDURE_IPV_VERSION, PERDURE_IPV_FUSED}) {
    ModelShape shape;
    shape.bytes = 1 << 20;
    shape.tier = tier;
    ModelJob job(shape, model_device(shape));
    ModelVersion fresh;
    fresh.bytes.resize(shape.bytes);
    ASSERT_TRUE(job.start(fresh).ok());
    std::barrier<> begin(threads + 1);
    std::barrier<> end(threads + 1);
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        for (int epoch = 1; epoch <= epochs; ++epoch) {
          begin.arrive_and_wait();
          // From the end: what is copied last is what a late copy would overwrite.
          for (std::size_t i = shape.bytes - 1 - t; i > 4096; i -= 4096) {
            job.address()[i] = static_cast<std::uint8_t>(epoch + static_cast<int>(t));
          }
          end.arrive_and_wait();
        }
      });
    }
    int overwritten = 0;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      begin.arrive_and_wait();
      end.arrive_and_wait();
      for (std::size_t t = 0; t < threads; ++t) {
        for (std::size_t i = shape.bytes - 1 - t; i > 4096; i -= 4096) {
          const auto expected = static_cast<std::uint8_t>(epoch + static_cast<int>(t));
          overwritten += job.address()[i] == expected ? 0 : 1;
        }
      }
      EXPECT_TRUE(job.persist().ok());
    }
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(overwritten, 0) << tier_name(tier);
  }
}

}  // namespace
}  // namespace perdure
