// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_view.hpp"

#include <algorithm>
#include <cstddef>

namespace perdure {

FileView make_view(std::int64_t displacement, std::int64_t etype_bytes,
                   const DatatypeMap& filetype) {
  FileView view;
  view.displacement = displacement;
  view.etype_bytes = etype_bytes;
  view.filetype_bytes = filetype.size_bytes;
  view.filetype_extent = filetype.extent_bytes;
  view.runs = filetype.runs;
  view.starts = filetype.starts;
  view.contiguous = filetype.contiguous;
  const bool is_single = view.runs.size() == 1;
  const std::int64_t stride = is_single ? view.filetype_extent : filetype.stride_bytes;
  if (filetype.run_bytes > 0 && stride >= filetype.run_bytes) {
    view.run_bytes = filetype.run_bytes;
    view.stride_bytes = stride;
  }
  return view;
}

// The first byte at or past `file_size` is looked for among whole repetitions first, by where each
// one ends, then among the runs of the one that crosses.
std::int64_t FileView::data_bytes_before(std::int64_t file_size) const {
  const std::int64_t past = file_size - displacement;
  if (past <= 0 || runs.empty()) return 0;
  if (contiguous) return past;
  std::int64_t reach = 0;  // of the run of one repetition that ends last
  for (const ByteRun& run : runs) reach = std::max(reach, run.offset + run.bytes);
  if (filetype_extent <= 0) return past >= reach ? filetype_bytes : 0;
  const std::int64_t whole = past < reach ? 0 : (past - reach) / filetype_extent + 1;
  const std::int64_t rest = past - whole * filetype_extent;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].offset + runs[i].bytes <= rest) continue;
    const std::int64_t inside = std::max<std::int64_t>(rest - runs[i].offset, 0);
    return whole * filetype_bytes + starts[i] + inside;
  }
  return (whole + 1) * filetype_bytes;
}

}  // namespace perdure
