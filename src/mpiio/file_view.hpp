// SPDX-License-Identifier: BSD-3-Clause
//
// A view of a file: which of its bytes an MPI file handle sees, and in which order.
//
// From the displacement on, the filetype repeats; of each repetition, the bytes in its runs are
// seen. Positions count seen bytes from the view's begin (not etypes). MPI requires the runs of a
// filetype at offsets that are not negative and do not decrease; nothing here relies on it but
// data_bytes_before(), which then counts in the order of positions.
//
// Pure: no MPI, no memory but the vectors. Threads: values.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/byte_runs.hpp"

namespace perdure {

// Pieces of one length at one distance.
struct RegularRun {
  std::int64_t offset;
  std::int64_t stride;
  std::int64_t bytes;  // of each
  std::int64_t count;
};

struct FileView {
  std::int64_t displacement = 0;
  std::int64_t etype_bytes = 1;
  std::int64_t filetype_bytes = 1;  // seen of one repetition
  std::int64_t filetype_extent = 1;
  std::vector<ByteRun> runs = {{0, 1}};
  std::vector<std::int64_t> starts = {0};
  bool contiguous = true;  // from the displacement on, every byte is seen
  // Of runs that have one length and one distance, which is not less; else 0. A single one has the
  // distance of the repetitions.
  std::int64_t run_bytes = 0;
  std::int64_t stride_bytes = 0;

  // Of the byte at position `at`: what MPI_File_get_byte_offset says of at / etype_bytes.
  std::int64_t file_offset(std::int64_t at) const {
    return contiguous ? displacement + at : displacement + walk_from(at).offset();
  }

  // How many seen bytes come before the first one at or past `file_size`. The end of the file, as
  // MPI_SEEK_END means it, is this in etypes, rounded up.
  std::int64_t data_bytes_before(std::int64_t file_size) const;

  // Calls visit(file_offset, bytes) -> bool for the bytes from position `at`, in order, neighbours
  // joined; stops, and says false, when visit does.
  template <typename Visit>
  bool for_each_piece(std::int64_t at, std::int64_t bytes, Visit&& visit) const;

  RunWalk walk_from(std::int64_t at) const {
    return {runs, starts, filetype_bytes, filetype_extent, at};
  }
};

// The view that MPI_File_set_view(displacement, etype, filetype) makes.
FileView make_view(std::int64_t displacement, std::int64_t etype_bytes,
                   const DatatypeMap& filetype);

template <typename Visit>
bool FileView::for_each_piece(std::int64_t at, std::int64_t bytes, Visit&& visit) const {
  if (bytes <= 0 || filetype_bytes <= 0) return true;
  if (contiguous) return visit(displacement + at, bytes);
  RunWalk walk = walk_from(at);
  std::int64_t offset = walk.offset();
  std::int64_t joined = 0;
  while (bytes > 0) {
    const std::int64_t piece = std::min(walk.left(), bytes);
    if (walk.offset() != offset + joined) {
      if (!visit(displacement + offset, joined)) return false;
      offset = walk.offset();
      joined = 0;
    }
    joined += piece;
    bytes -= piece;
    walk.advance(piece);
  }
  return visit(displacement + offset, joined);
}

}  // namespace perdure
