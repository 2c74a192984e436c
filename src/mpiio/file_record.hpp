// SPDX-License-Identifier: BSD-3-Clause
//
// File record: what one rank did with one MPI file, counted and timed by classes of accesses.
//
//   An access belongs to the class of its direction, its kind (collective, nonblocking, scattered
//   in memory or in the file), whether it begins where the last one of its direction ended, and the
//   power of two that its bytes reach. Bytes are those asked for.
//   Which blocks were touched is known of accesses that have a place; what went through a shared
//   pointer is counted as bytes only.
//
// The lines are JSON, which Python reads: python/perdure/cache/record.py. Only file_record.cpp
// includes what makes it, as that takes a compiler seconds for each MPI. Threads: any. No MPI.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpiio/access_name.hpp"
#include "mpiio/file_view.hpp"

namespace perdure {

// A set of blocks of a file.
class BlockSet {
 public:
  // Whether it was not in the set.
  bool add(std::uint64_t block);
  // Pairs of first and count, in order.
  std::vector<std::pair<std::size_t, std::size_t>> runs() const;

 private:
  std::vector<bool> has_;
};

// Calls that don't transfer bytes.
enum class OtherCall : std::uint8_t { open, close, sync, set_size, preallocate, set_view, end };

struct CallTally {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ns = 0;
};

// What a process did with a cached file that is closed, as the cache counted it.
struct CacheCounts {
  std::string file;
  int rank = 0;
  std::uint32_t nodes = 1;
  double open_s = 0;
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t remote_bytes = 0;
  std::uint64_t filled_bytes = 0;
  std::uint64_t passed_bytes = 0;
  std::uint64_t evicted_bytes = 0;
  bool aside = false;
  std::uint64_t aside_accesses = 0;
  std::uint64_t aside_bytes = 0;
  std::uint64_t written_back_bytes = 0;
  std::optional<std::string> error;  // of the close
};

// The run of a rank whose files are recorded.
struct RecordedRun {
  double run_s = 0;
  int rank = 0;
  int ranks = 1;
  std::string node;
  std::uint64_t counting_ns = 0;  // in the time of every call
};

std::string line_of(const CacheCounts& counts);
std::string line_of(const RecordedRun& run);

class FileRecord {
 public:
  static constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;

  // What is known when the file is opened.
  struct Opened {
    std::string path;
    std::string node;
    int rank = 0;
    int ranks = 1;
    bool read_only = false;
    bool delete_on_close = false;
    std::uint64_t size_bytes = 0;
    std::uint64_t began_ns = 0;
  };
  explicit FileRecord(Opened opened) : opened_(std::move(opened)) {}

  // `at` is the position in the view, in bytes; negative: unknown.
  void count_access(const Access& access, bool memory_contiguous, std::int64_t at,
                    std::int64_t bytes, std::uint64_t ns);
  // The rest of the time of a split access.
  void count_split_end(std::uint64_t ns);
  void count_other(OtherCall call, std::uint64_t ns);
  void set_view(FileView view);
  std::int64_t etype_bytes() const { return view_.etype_bytes; }

  // What the cache counted is added to the record's line.
  void add_cache_counts(CacheCounts counts);
  std::string line(std::uint64_t size_bytes, double open_s) const;
  const Opened& opened() const { return opened_; }

 private:
  // Directions, then flags, then the power of two: a key sorts as the line shows it.
  using ClassKey = std::array<std::uint8_t, 6>;
  void touch(const Access& access, std::int64_t at, std::int64_t bytes);
  void touch_block(bool write, std::uint64_t block, std::uint64_t begin, std::uint64_t end);

  Opened opened_;
  FileView view_;
  mutable std::mutex mutex_;
  std::map<ClassKey, CallTally> classes_;
  ClassKey last_class_{};
  std::array<std::int64_t, 2> last_end_{};  // by direction
  std::array<CallTally, static_cast<std::size_t>(OtherCall::end)> others_;
  BlockSet touched_;
  BlockSet written_;
  BlockSet fetched_;  // that a cache would have to read before their first access
  std::uint64_t unplaced_bytes_ = 0;
  std::optional<CacheCounts> cache_counts_;
};

}  // namespace perdure
