// Chunk writer: gives a level file its payload in pieces of any size, from beginning to end.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "levels/level_file.hpp"
#include "levels/level_file_format.hpp"

namespace perdure {

class ChunkWriter {
 public:
  // Of a file after begin(payload_bytes).
  ChunkWriter(LevelFile& file, std::uint64_t payload_bytes)
      : file_(file), payload_bytes_(payload_bytes) {}

  std::uint64_t offset() const { return offset_ + chunk_.size(); }
  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto room = level_chunk_bytes - chunk_.size();
      const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), room));
      chunk_.insert(chunk_.end(), piece.begin(), piece.end());
      bytes = bytes.subspan(piece.size());
      if (chunk_.size() == level_chunk_bytes || offset() == payload_bytes_) flush();
    }
  }

 private:
  void flush() {
    file_.write(offset_, chunk_);
    offset_ += chunk_.size();
    chunk_.clear();
  }
  LevelFile& file_;
  std::uint64_t payload_bytes_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> chunk_;
};

}  // namespace perdure
