// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_record.hpp"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace perdure {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* other_names[] = {"open",     "close",       "sync",
                                       "set_size", "preallocate", "set_view"};

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

Json json_of(const CacheCounts& counts) {
  return {{"file", counts.file},
          {"cached", true},
          {"rank", counts.rank},
          {"nodes", counts.nodes},
          {"open_s", counts.open_s},
          {"reads", counts.reads},
          {"read_bytes", counts.read_bytes},
          {"writes", counts.writes},
          {"written_bytes", counts.written_bytes},
          {"remote_bytes", counts.remote_bytes},
          {"filled_bytes", counts.filled_bytes},
          {"passed_bytes", counts.passed_bytes},
          {"evicted_bytes", counts.evicted_bytes},
          {"aside", counts.aside},
          {"aside_accesses", counts.aside_accesses},
          {"aside_bytes", counts.aside_bytes},
          {"written_back_bytes", counts.written_back_bytes},
          {"error", counts.error.has_value() ? Json(*counts.error) : Json()}};
}

// A file may have any bytes in its name.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string line_of(const CacheCounts& counts) {
  return text_of(json_of(counts));
}

std::string line_of(const RecordedRun& run) {
  return text_of({{"run_s", run.run_s},
                  {"rank", run.rank},
                  {"ranks", run.ranks},
                  {"node", run.node},
                  {"counting_ns", run.counting_ns}});
}

bool BlockSet::add(std::uint64_t block) {
  if (block >= has_.size()) has_.resize(std::max<std::size_t>(block + 1, has_.size() * 2));
  if (has_[block]) return false;
  return has_[block] = true;
}

std::vector<std::pair<std::size_t, std::size_t>> BlockSet::runs() const {
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  for (std::size_t first = 0; first < has_.size(); ++first) {
    if (!has_[first]) continue;
    std::size_t last = first;
    while (last < has_.size() && has_[last]) ++last;
    runs.emplace_back(first, last - first);
    first = last;
  }
  return runs;
}

void FileRecord::count_access(const Access& access, bool memory_contiguous, std::int64_t at,
                              std::int64_t bytes, std::uint64_t ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool write = access.direction == Direction::write;
  const bool placed = at >= 0;
  const bool sequential = !placed || at == last_end_[write];
  if (placed) last_end_[write] = at + bytes;
  const bool scattered = !memory_contiguous || !view_.contiguous;
  const auto power = bytes <= 0 ? 0 : std::bit_width(static_cast<std::uint64_t>(bytes)) - 1;
  last_class_ = {write,     access.collective, access.nonblocking,
                 scattered, sequential,        static_cast<std::uint8_t>(power)};
  CallTally& tally = classes_[last_class_];
  ++tally.calls;
  tally.bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
  tally.ns += ns;
  if (placed) {
    touch(access, at, bytes);
  } else {
    unplaced_bytes_ += static_cast<std::uint64_t>(bytes);
  }
}

void FileRecord::count_split_end(std::uint64_t ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  classes_[last_class_].ns += ns;
}

void FileRecord::count_other(OtherCall call, std::uint64_t ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  CallTally& tally = others_[static_cast<std::size_t>(call)];
  ++tally.calls;
  tally.ns += ns;
}

void FileRecord::set_view(FileView view) {
  const std::lock_guard<std::mutex> lock(mutex_);
  view_ = std::move(view);
  last_end_ = {};
}

void FileRecord::add_cache_counts(CacheCounts counts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cache_counts_ = std::move(counts);
}

void FileRecord::touch(const Access& access, std::int64_t at, std::int64_t bytes) {
  const bool write = access.direction == Direction::write;
  view_.for_each_piece(at, bytes, [&](std::int64_t offset, std::int64_t piece) {
    const auto begin = static_cast<std::uint64_t>(offset);
    const auto end = begin + static_cast<std::uint64_t>(piece);
    for (std::uint64_t block = begin / block_bytes; block * block_bytes < end; ++block) {
      touch_block(write, block, begin, end);
    }
    return true;
  });
}

// A write of all that the file has of a block leaves nothing to fetch.
void FileRecord::touch_block(bool write, std::uint64_t block, std::uint64_t begin,
                             std::uint64_t end) {
  if (write) written_.add(block);
  if (!touched_.add(block)) return;
  const std::uint64_t first = block * block_bytes;
  const std::uint64_t last = std::min(first + block_bytes, opened_.size_bytes);
  const bool covered = write && begin <= first && end >= last;
  if (first < opened_.size_bytes && !covered) fetched_.add(block);
}

std::string FileRecord::line(std::uint64_t size_bytes, double open_s) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Json line;
  line["file"] = opened_.path;
  line["cached"] = false;
  line["rank"] = opened_.rank;
  line["ranks"] = opened_.ranks;
  line["node"] = opened_.node;
  line["open_s"] = open_s;
  line["read_only"] = opened_.read_only;
  line["delete_on_close"] = opened_.delete_on_close;
  line["size_at_open"] = opened_.size_bytes;
  line["size_at_close"] = size_bytes;
  for (std::size_t call = 0; call < others_.size(); ++call) {
    line["calls"][other_names[call]] = {{"calls", others_[call].calls},
                                        {"seconds", seconds(others_[call].ns)}};
  }
  line["accesses"] = Json::array();
  for (const auto& [key, tally] : classes_) {
    line["accesses"].push_back({{"direction", key[0] != 0 ? "write" : "read"},
                                {"collective", key[1] != 0},
                                {"nonblocking", key[2] != 0},
                                {"scattered", key[3] != 0},
                                {"sequential", key[4] != 0},
                                {"size_log2", key[5]},
                                {"calls", tally.calls},
                                {"bytes", tally.bytes},
                                {"seconds", seconds(tally.ns)}});
  }
  line["block_bytes"] = block_bytes;
  line["touched_blocks"] = touched_.runs();
  line["written_blocks"] = written_.runs();
  line["fetched_blocks"] = fetched_.runs();
  line["unplaced_bytes"] = unplaced_bytes_;
  if (cache_counts_.has_value()) line.update(json_of(*cache_counts_));
  return text_of(line);
}

}  // namespace perdure
