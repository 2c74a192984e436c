#include "pmem/parallel.hpp"
#include <algorithm>
#include "base/checksum.hpp"
namespace perdure {
ParallelWriter::ParallelWriter(Device& device, unsigned) : device_(device) {}
Status ParallelWriter::copy(std::uint64_t offset, const void* source, std::size_t count) {
  device_.copy(offset, source, count);
  return Status::success();
}
Status ParallelWriter::flush(std::uint64_t offset, std::size_t count) {
  device_.flush(offset, count);
  return Status::success();
}
Status ParallelWriter::copy_with_checksums(std::uint64_t offset, const void* source,
                                           std::size_t count, std::size_t block_bytes,
                                           std::uint64_t* block_crcs) {
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t at = 0; at < count; at += block_bytes) {
    const std::size_t n = std::min(block_bytes, count - at);
    *block_crcs++ = crc64(from + at, n);
    device_.copy(offset + at, from + at, n);
  }
  return Status::success();
}
}  // namespace perdure
