// placeholder of the agreed interface
#pragma once
#include <cstdint>
#include "base/status.hpp"
#include "pmem/device.hpp"
namespace perdure {
class ParallelWriter {
 public:
  ParallelWriter(Device& device, unsigned threads);
  Status copy(std::uint64_t offset, const void* source, std::size_t count);
  Status flush(std::uint64_t offset, std::size_t count);
  Status copy_with_checksums(std::uint64_t offset, const void* source, std::size_t count,
                             std::size_t block_bytes, std::uint64_t* block_crcs);

 private:
  Device& device_;
};
}  // namespace perdure
