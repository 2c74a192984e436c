// SPDX-License-Identifier: BSD-3-Clause
//
// Growing job: an object and a pair on a device that crashes, which get other sizes and places
// between persistence points, and the plain bytes that they should hold.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "ipv/object_set.hpp"
#include "model_job.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"

namespace perdure {

struct GrowingShape {
  Tier tier = PERDURE_IPV_COPY;  // of the object
  std::uint64_t misaligned = 0;  // it begins so many bytes after a page's beginning
  unsigned lag = 1;
  bool helper = false;
  bool verify = false;
  std::uint32_t keep = 1;
};

// What a version holds.
struct GrowingVersion {
  std::vector<std::uint8_t> object;
  std::vector<std::uint8_t> pair;
  std::uint64_t step = 0;
  bool operator==(const GrowingVersion&) const = default;
};

// How an object gets another size.
enum class Growth {
  in_place,       // where it lies
  elsewhere,      // in other memory, before the one of now goes
  after_free,     // in other memory, when the one of before was freed
  after_realloc,  // in other memory, or where it lies, when realloc() had the one of before
};

class GrowingJob {
 public:
  GrowingJob(const GrowingShape& shape, std::unique_ptr<CrashDevice> device);
  ~GrowingJob();
  GrowingJob(const GrowingJob&) = delete;
  GrowingJob& operator=(const GrowingJob&) = delete;

  static constexpr std::uint64_t bytes_max = 40'000;  // of an object, or an array of the pair

  // With the sizes that the pool has, or else those of `fresh`; what it then holds is in `now`.
  Result<std::uint64_t> start(const GrowingVersion& fresh);
  void store(ByteRange range, Random& random);
  Status resize(std::uint64_t bytes, Growth how, Random& random);
  void free_object();
  // After a persistence point, before iterate().
  Status resize_pair(std::uint64_t bytes, Random& random);
  void iterate_pair();
  Result<std::uint64_t> persist();

  ObjectSet& set() { return *on_.set; }
  CrashDevice& device() { return *on_.device; }
  std::byte* object_memory() { return areas_[area_] + shape_.misaligned; }
  bool is_gone() const { return gone_; }

  GrowingVersion now;
  std::string wrong;  // the first load that differed

 private:
  void end_object(Going how);
  std::span<std::uint8_t> array(unsigned place) const {
    return {reinterpret_cast<std::uint8_t*>(pair_[place]), now.pair.size()};
  }
  void complain(const char* what, std::uint64_t at);

  GrowingShape shape_;
  ObjectsOnDevice on_;
  std::vector<std::byte*> areas_;  // two for the object, then two times two for the pair
  unsigned area_ = 0;              // of the object
  bool gone_ = false;              // its memory was freed
  std::byte* pair_[2] = {};
  unsigned alive_ = 0;
  std::uint64_t step_ = 0;
};

// A device that holds an empty pool, or the image.
std::unique_ptr<CrashDevice> growing_device(const GrowingShape& shape,
                                            std::span<const std::byte> image = {});

struct GrowingRecovery {
  Status status;
  std::uint64_t version = 0;
  GrowingVersion contents;
};
// What a restart of the image would find, without the runtime.
GrowingRecovery recover_growing(const GrowingShape& shape, std::span<const std::byte> image);

GrowingVersion random_growing(std::uint64_t object_bytes, std::uint64_t pair_bytes, Random& random);

}  // namespace perdure
