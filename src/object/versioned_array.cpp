#include "object/versioned_array.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/checksum.hpp"
#include "pmem/media_guard.hpp"

namespace perdure {
namespace {

// Anonymous memory, touched once here so that no commit pays for page faults.
Result<std::byte*> map_buffer(std::uint64_t size_bytes) {
  void* mapped = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return errno_status("allocating a buffer of " + std::to_string(size_bytes) + " bytes", errno);
  }
  ::madvise(mapped, size_bytes, MADV_HUGEPAGE);  // a hint; refused on some kernels
  std::memset(mapped, 0, size_bytes);
  return static_cast<std::byte*>(mapped);
}

Status unreadable(const std::string& name, std::uint64_t byte) {
  return {Code::damaged, "array '" + name + "': byte " + std::to_string(byte) +
                             " can't be read: the medium is damaged there, or the file was cut"};
}

Status block_damaged(const std::string& name, std::uint64_t begin, std::uint64_t count) {
  return {Code::damaged, "array '" + name + "': bytes " + std::to_string(begin) + " to " +
                             std::to_string(begin + count - 1) +
                             " do not match their checksum; the medium was damaged"};
}

}  // namespace

Status verify_and_copy(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                       std::byte* copy_to, std::vector<std::uint64_t>* table) {
  const std::byte* from = device.base() + entry.half_offset[entry.half];
  if (!entry.shape.checksums) {
    if (copy_to == nullptr) return Status::success();
    if (auto bad = first_unreadable(from, entry.size_bytes)) return unreadable(entry.name, *bad);
    std::memcpy(copy_to, from, entry.size_bytes);
    return Status::success();
  }
  std::vector<std::uint64_t> own(block_count(entry.size_bytes, block_bytes));
  std::vector<std::uint64_t>& expected = table == nullptr ? own : *table;
  const std::byte* on_media = device.base() + entry.table_offset[entry.half];
  if (first_unreadable(on_media, 8 * expected.size())) {
    return {Code::damaged, "array '" + entry.name + "': its table of checksums can't be read"};
  }
  std::memcpy(expected.data(), on_media, 8 * expected.size());
  if (crc64(expected.data(), 8 * expected.size()) != entry.table_checksum) {
    return {Code::damaged, "array '" + entry.name + "': its table of checksums is damaged"};
  }
  for (std::uint64_t block = 0; block < expected.size(); ++block) {
    const std::uint64_t begin = block * block_bytes;
    const std::uint64_t count = std::min(block_bytes, entry.size_bytes - begin);
    if (auto bad = first_unreadable(from + begin, count)) {
      return unreadable(entry.name, begin + *bad);
    }
    if (crc64(from + begin, count) != expected[block])
      return block_damaged(entry.name, begin, count);
    if (copy_to != nullptr) std::memcpy(copy_to + begin, from + begin, count);
  }
  return Status::success();
}

VersionedArray::VersionedArray(Device& device, ParallelWriter& writer, const ArrayEntry& entry,
                               std::uint64_t block_bytes, const ArrayOptions& options)
    : device_(device),
      writer_(writer),
      entry_(entry),
      block_bytes_(block_bytes),
      buffer_(static_cast<std::byte*>(options.buffer)),
      marks_(options.marks) {}

VersionedArray::~VersionedArray() {
  tracker_.reset();
  if (owns_buffer_) ::munmap(buffer_, entry_.size_bytes);
}

Result<std::unique_ptr<VersionedArray>> VersionedArray::create(Device& device,
                                                               ParallelWriter& writer,
                                                               const ArrayEntry& entry,
                                                               std::uint64_t block_bytes,
                                                               const ArrayOptions& options) {
  std::unique_ptr<VersionedArray> array(
      new VersionedArray(device, writer, entry, block_bytes, options));
  if (array->mode() != ArrayMode::twin) PERDURE_TRY(array->allocate_buffer());
  if (entry.shape.checksums) {
    for (auto& table : array->tables_) table.resize(array->blocks());
  }
  if (array->mode() == ArrayMode::log) {
    array->changed_.resize(array->blocks());
    for (auto& stale : array->stale_) stale.resize(array->blocks(), 1);
  }
  return array;
}

Status VersionedArray::allocate_buffer() {
  if (buffer_ == nullptr) {
    auto mapped = map_buffer(entry_.size_bytes);
    if (!mapped.ok()) return mapped.status();
    buffer_ = mapped.value();
    owns_buffer_ = true;
  }
  if (mode() != ArrayMode::log || marks_) return Status::success();
  if (!owns_buffer_) {
    return {Code::invalid_argument, "array '" + name() +
                                        "': page protection needs a buffer of Perdure's own; pass "
                                        "no buffer, or use PERDURE_MARKS"};
  }
  auto tracker = PageTracker::create(buffer_, entry_.size_bytes, block_bytes_);
  if (!tracker.ok()) return tracker.status();
  tracker_ = tracker.take();
  return Status::success();
}

std::uint64_t VersionedArray::blocks() const {
  return block_count(entry_.size_bytes, block_bytes_);
}

std::byte* VersionedArray::half_address(std::uint32_t half) const {
  return device_.base() + entry_.half_offset[half];
}

std::byte* VersionedArray::working() {
  return mode() == ArrayMode::twin ? half_address(working_half()) : buffer_;
}

const std::byte* VersionedArray::consistent() const {
  return mode() == ArrayMode::twin ? half_address(entry_.half) : buffer_;
}

Status VersionedArray::start_empty() {
  if (buffer_ != nullptr) {
    std::memset(buffer_, 0, entry_.size_bytes);
  } else {
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::memset(half_address(half), 0, entry_.size_bytes);
    }
  }
  for (auto& stale : stale_) std::fill(stale.begin(), stale.end(), std::uint8_t{1});
  return tracker_ ? tracker_->watch() : Status::success();
}

Status VersionedArray::start_restored(const ArrayEntry& entry) {
  entry_ = entry;
  PERDURE_TRY(verify_and_copy(device_, entry_, block_bytes_, buffer_, &tables_[entry_.half]));
  if (mode() != ArrayMode::log) return Status::success();
  std::fill(changed_.begin(), changed_.end(), std::uint8_t{0});
  std::fill(stale_[entry_.half].begin(), stale_[entry_.half].end(), std::uint8_t{0});
  std::fill(stale_[working_half()].begin(), stale_[working_half()].end(), std::uint8_t{1});
  return tracker_ ? tracker_->watch() : Status::success();
}

Status VersionedArray::mark(std::uint64_t first_byte, std::uint64_t count_bytes) {
  if (!marks_) {
    return {Code::wrong_state, "array '" + name() + "' was not opened with PERDURE_MARKS"};
  }
  if (count_bytes == 0) return Status::success();
  const std::uint64_t last = (first_byte + count_bytes - 1) / block_bytes_;
  for (std::uint64_t block = first_byte / block_bytes_; block <= last; ++block) changed_[block] = 1;
  return Status::success();
}

Status VersionedArray::write(std::uint64_t first_byte, std::uint64_t count_bytes,
                             const void* source) {
  if (mode() != ArrayMode::twin) {
    return {Code::wrong_state, "perdure_write is for twin arrays; '" + name() + "' is in " +
                                   mode_name(mode()) + " mode"};
  }
  device_.copy(entry_.half_offset[working_half()] + first_byte, source, count_bytes);
  // One range is remembered: rows that follow each other make it grow. Others are flushed again by
  // save(), which costs time and nothing else.
  if (first_byte == streamed_end_) {
    streamed_end_ += count_bytes;
  } else if (count_bytes > streamed_end_ - streamed_begin_) {
    streamed_begin_ = first_byte;
    streamed_end_ = first_byte + count_bytes;
  }
  return Status::success();
}

Status VersionedArray::collect_changes() {
  return tracker_ ? tracker_->collect(changed_) : Status::success();
}

Result<std::uint64_t> VersionedArray::save() {
  switch (mode()) {
    case ArrayMode::copy:
      return save_copy();
    case ArrayMode::twin:
      return save_twin();
    case ArrayMode::log:
      return save_log();
  }
  return Status(Code::invalid_argument, "unknown mode");
}

Status VersionedArray::save_blocks(std::uint64_t first_block, std::uint64_t block_total) {
  const std::uint64_t begin = first_block * block_bytes_;
  const std::uint64_t end = std::min((first_block + block_total) * block_bytes_, entry_.size_bytes);
  const std::uint64_t offset = entry_.half_offset[working_half()] + begin;
  if (!entry_.shape.checksums) return writer_.copy(offset, buffer_ + begin, end - begin);
  return writer_.copy_with_checksums(offset, buffer_ + begin, end - begin, block_bytes_,
                                     tables_[working_half()].data() + first_block);
}

Result<std::uint64_t> VersionedArray::save_copy() {
  PERDURE_TRY(save_blocks(0, blocks()));
  store_table();
  return entry_.size_bytes;
}

Result<std::uint64_t> VersionedArray::save_twin() {
  const std::uint64_t offset = entry_.half_offset[working_half()];
  if (streamed_begin_ > 0) PERDURE_TRY(writer_.flush(offset, streamed_begin_));
  if (streamed_end_ < entry_.size_bytes) {
    PERDURE_TRY(writer_.flush(offset + streamed_end_, entry_.size_bytes - streamed_end_));
  }
  if (entry_.shape.checksums) {
    checksum_working_half();
    store_table();
  }
  return entry_.size_bytes - (streamed_end_ - streamed_begin_);
}

Result<std::uint64_t> VersionedArray::save_log() {
  const std::vector<std::uint8_t>& stale = stale_[working_half()];
  std::uint64_t saved_bytes = 0;
  for (std::uint64_t block = 0; block < blocks();) {
    const std::uint64_t begin = block;
    while (block < blocks() && (changed_[block] != 0 || stale[block] != 0)) ++block;
    if (block == begin) {
      ++block;
      continue;
    }
    PERDURE_TRY(save_blocks(begin, block - begin));
    saved_bytes += std::min(block * block_bytes_, entry_.size_bytes) - begin * block_bytes_;
  }
  store_table();
  return saved_bytes;
}

void VersionedArray::checksum_working_half() {
  const std::byte* from = half_address(working_half());
  for (std::uint64_t block = 0; block < blocks(); ++block) {
    const std::uint64_t begin = block * block_bytes_;
    tables_[working_half()][block] =
        crc64(from + begin, std::min(block_bytes_, entry_.size_bytes - begin));
  }
}

void VersionedArray::store_table() {
  if (!entry_.shape.checksums) return;
  const std::vector<std::uint64_t>& table = tables_[working_half()];
  device_.copy(entry_.table_offset[working_half()], table.data(), 8 * table.size());
}

void VersionedArray::update_entry(ArrayEntry& entry) const {
  entry.half = working_half();
  if (!entry_.shape.checksums) return;
  const std::vector<std::uint64_t>& table = tables_[working_half()];
  entry.table_checksum = crc64(table.data(), 8 * table.size());
}

void VersionedArray::commit() {
  if (mode() == ArrayMode::log) {
    std::fill(stale_[working_half()].begin(), stale_[working_half()].end(), std::uint8_t{0});
    for (std::uint64_t block = 0; block < blocks(); ++block) {
      if (changed_[block] != 0) stale_[entry_.half][block] = 1;
    }
    std::fill(changed_.begin(), changed_.end(), std::uint8_t{0});
  }
  update_entry(entry_);
  streamed_begin_ = streamed_end_ = 0;
}

}  // namespace perdure
