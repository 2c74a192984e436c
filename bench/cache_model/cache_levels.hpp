// SPDX-License-Identifier: BSD-3-Clause
//
// Cache levels: a first and a last level of a processor's cache, and, where it is asked for, DRAM
// as a cache in front of the memory of files, which is the pool's. Pure.
//
// Lines that the first level lacks are looked for in the last one. A dirty line that a level puts
// out soils the next level; if that lacks the line, it is written to the memory. So the file's
// memory sees the lines that the last cache in front of it lacks, and the dirty ones that it puts
// out. A flush cleans a line in all levels, and a store past the caches goes through DRAM in front,
// which keeps the line: what these two write is the device's count. A clean line that is flushed
// writes nothing, so the device has counted one then that was put out before.
//
// Threads: one at a time. Failure: none.
#pragma once

#include <cstdint>
#include <optional>

#include "line_cache.hpp"
#include "page_map.hpp"

namespace perdure::cache_model {

struct Shape {
  std::uint64_t size_bytes = 0;
  std::uint64_t ways = 0;
};

// Lines that were touched, and not found in the first and in the last level.
struct Counts {
  std::uint64_t lines = 0;
  std::uint64_t first_misses = 0;
  std::uint64_t last_misses = 0;
};

// Lines that the memory of files gave, dirty ones that were put out to it, and clean ones that were
// flushed: put_out - flushed_clean were written beside those that were flushed.
struct FileLines {
  std::uint64_t loaded = 0;
  std::uint64_t put_out = 0;
  std::uint64_t flushed_clean = 0;
};

class CacheLevels {
 public:
  CacheLevels(const Shape& first, const Shape& last, const std::optional<Shape>& front)
      : first_(first.size_bytes, first.ways), last_(last.size_bytes, last.ways) {
    if (front) front_.emplace(front->size_bytes, front->ways);
  }

  void touch(std::uint64_t line, bool store, Counts& counts) {
    ++counts.lines;
    const LineCache::Touched in_first = first_.touch(line, store);
    if (in_first.put_out != LineCache::empty && !last_.soil(in_first.put_out)) {
      write_back(in_first.put_out);
    }
    if (in_first.hit) return;
    ++counts.first_misses;
    const LineCache::Touched in_last = last_.touch(line, false);
    if (in_last.put_out != LineCache::empty) write_back(in_last.put_out);
    if (in_last.hit) return;
    ++counts.last_misses;
    if (is_of_a_file(line)) load(line);
  }

  void store_past(std::uint64_t line) {
    evict_from_processor(line);
    if (!front_ || !is_of_a_file(line)) return;
    (void)touch_front(line, false);
    (void)front_->clean(line);
  }

  void flush(std::uint64_t line, bool evicts) {
    bool dirty = first_.clean(line);
    dirty |= last_.clean(line);
    if (front_) dirty |= front_->clean(line);
    if (!dirty && is_of_a_file(line)) ++file_lines_.flushed_clean;
    if (evicts) evict_from_processor(line);
  }

  const FileLines& file_lines() const { return file_lines_; }
  void count_file_lines_anew() { file_lines_ = {}; }

 private:
  static bool is_of_a_file(std::uint64_t line) { return PageMap::is_of_a_file(line << line_shift); }

  void evict_from_processor(std::uint64_t line) {
    first_.evict(line);
    last_.evict(line);
  }

  void load(std::uint64_t line) {
    if (touch_front(line, false)) return;
    ++file_lines_.loaded;
  }

  // A whole line: the memory need not be read for it.
  void write_back(std::uint64_t line) {
    if (!is_of_a_file(line)) return;
    if (!front_) {
      ++file_lines_.put_out;
    } else {
      (void)touch_front(line, true);
    }
  }

  // False: it was not there.
  bool touch_front(std::uint64_t line, bool store) {
    if (!front_) return false;
    const LineCache::Touched touched = front_->touch(line, store);
    if (touched.put_out != LineCache::empty) ++file_lines_.put_out;
    return touched.hit;
  }

  LineCache first_;
  LineCache last_;
  std::optional<LineCache> front_;
  FileLines file_lines_;
};

}  // namespace perdure::cache_model
