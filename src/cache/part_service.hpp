// SPDX-License-Identifier: BSD-3-Clause
//
// Part service: the verbs of protocol_format.hpp on a part, without a socket. Nothing of a request
// is trusted: each is checked against the part before it is done.
//
// Threads: any number. Failure: a Status that says what was asked for and why it can't be.
#pragma once

#include <cstdint>
#include <span>

#include "cache/cache_part.hpp"
#include "cache/piece_list.hpp"
#include "cache/protocol_format.hpp"

namespace perdure {

class PartService {
 public:
  explicit PartService(CachePart& part) : part_(part) {}

  // Whether it is clear where the payload ends and the next request begins (protocol_format.hpp).
  static Status check_shape(const RequestFormat& request);

  // All verbs but those of read and write.
  Status perform(const RequestFormat& request, std::uint64_t (&values)[2]);
  Status write(const RequestFormat& request, const void* payload);
  // Pieces, which are checked; their bytes are `request.bytes`, at `payload`.
  Status write_pieces(const RequestFormat& request, std::span<const PiecesFormat> runs,
                      const std::byte* payload);
  Status read_pieces(const RequestFormat& request, std::span<const PiecesFormat> runs,
                     std::byte* payload);
  // The range is this node's, and present; false: some of it passes through.
  Result<bool> prepare_read(const RequestFormat& request);
  Status unlock(std::uint64_t owner);

  CachePart& part() { return part_; }

 private:
  Status check_range(std::uint64_t offset, std::uint64_t bytes) const;
  Status check_pieces_here(const RequestFormat& request, std::span<const PiecesFormat> runs) const;
  static Status check_acknowledge(const RequestFormat& request);
  Status perform_pointer(const RequestFormat& request, std::uint64_t (&values)[2]);
  Status write_back(const RequestFormat& request, std::uint64_t (&values)[2]);
  Status set_base_version(const RequestFormat& request, std::uint64_t& file_bytes);

  CachePart& part_;
};

}  // namespace perdure
