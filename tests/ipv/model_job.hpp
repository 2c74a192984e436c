// SPDX-License-Identifier: BSD-3-Clause
//
// Model job: an object on a device in memory, and beside it the plain bytes that it should hold.
// Every load of the program is compared with them.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "ipv/object_set.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"

namespace perdure {

using Random = std::mt19937_64;
inline std::uint64_t below(Random& random, std::uint64_t bound) {
  return random() % bound;
}

// What the environment says of a random test.
std::uint64_t number_from(const char* variable, std::uint64_t otherwise);

// A pool on a device, and its objects.
struct ObjectsOnDevice {
  ObjectsOnDevice(std::unique_ptr<CrashDevice> on, const IpvOptions& options);
  SoloGroup group;
  CrashDevice* device;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<ObjectSet> set;
};

struct ModelShape {
  std::uint64_t bytes = 9000;
  std::uint64_t misaligned = 0;  // bytes after a page's beginning
  bool shared_end = false;       // its last page may hold other memory
  Tier tier = PERDURE_IPV_AUTO;
  unsigned lag = 1;
  bool helper = false;
  bool guard = true;
  bool move_views = true;
  bool verify = false;
  std::uint32_t keep = 1;
};

// What a version holds.
struct ModelVersion {
  std::vector<std::uint8_t> bytes;
  std::uint64_t step = 0;
  bool operator==(const ModelVersion&) const = default;
};

// Offsets in the object. `other`: what else the nest says that it may touch; it does not.
struct ModelBox {
  std::uint64_t first;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> strides;
  ByteRange other;
};

class ModelJob {
 public:
  ModelJob(const ModelShape& shape, std::unique_ptr<CrashDevice> device);
  ~ModelJob();
  ModelJob(const ModelJob&) = delete;
  ModelJob& operator=(const ModelJob&) = delete;

  // Restarts; what it then holds is in `now`.
  Result<std::uint64_t> start(const ModelVersion& fresh);
  InPlaceObject& object() { return *on_.set->list().all().front(); }
  ObjectSet& set() { return *on_.set; }
  CrashDevice& device() { return *on_.device; }
  Pool& pool() { return *on_.pool; }
  volatile std::uint8_t* address() { return reinterpret_cast<volatile std::uint8_t*>(address_); }

  // A nest that overwrites the box.
  void nest(const ModelBox& box, Random& random);
  // Stores that no box announces; `hook`: by perdure_ipv_plain().
  void store(ByteRange range, bool hook, Random& random);
  void compare(ByteRange range);
  Result<std::uint64_t> persist();

  ModelVersion now;   // what the object and the scalar hold
  std::string wrong;  // the first load that differed
  std::uint64_t loads = 0;
  std::uint64_t boxes = 0;  // that were taken

 private:
  void overwrite(ByteRange row, ptrdiff_t load, Random& random);
  void check(std::uint64_t offset, std::uint8_t found, const char* what);

  ModelShape shape_;
  ObjectsOnDevice on_;
  std::byte* mapped_ = nullptr;
  std::uint64_t mapped_bytes_;
  std::byte* address_;
  std::uint64_t step_ = 0;
};

// A device that holds an empty pool, or the image.
std::unique_ptr<CrashDevice> model_device(const ModelShape& shape,
                                          std::span<const std::byte> image = {});

// What a restart of the image would find, without the runtime; the version and its contents.
struct ModelRecovery {
  Status status;
  std::uint64_t version = 0;
  ModelVersion contents;
};
ModelRecovery recover_model(const ModelShape& shape, std::span<const std::byte> image);

}  // namespace perdure
