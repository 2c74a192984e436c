// SPDX-License-Identifier: BSD-3-Clause
//
// Image: one rank's version as bytes outside of its pool, from which a pool's file can be made
// again on any node. image_format.hpp has the layout.
//
// An image is read in place: as long as the pool keeps the version, none of its bytes is stored to
// (commit.cpp, pool.I1). A file that is made of one holds the version alone, in the places that it
// had, so that all ranks keep choosing the same working copies (commit.cpp, pool.I8).
//
// What is committed with the pool has a share in it, which is read from whoever owns it.
//
// Arrays in flush mode have no versions: a pool with one has no images.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/companion.hpp"

namespace perdure {

// A companion's share of an image, and what reads its bytes.
struct ImageShare {
  CompanionShare share;
  std::function<Status(std::uint64_t offset, std::span<std::byte> out)> read;
};

class Image {
 public:
  // `catalogue` is that of a version in one of the slots of `device`. Code::unsupported for flush
  // mode.
  static Result<Image> of(const Device& device, const Geometry& geometry,
                          const Catalogue& catalogue, std::vector<ImageShare> shares = {});

  std::uint64_t size_bytes() const { return size_bytes_; }
  // Of each array of the catalogue, where its bytes begin; as parse_image() finds them.
  const std::vector<std::uint64_t>& copy_offsets() const { return copy_offsets_; }
  // Bytes [offset, offset + out.size()). Fails only if a companion's share can't be read.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;
  // The same bytes where they are, without a copy of them, as long as the pool keeps the version.
  // Empty if they do not lie in one place, or are a companion's.
  std::span<const std::byte> in_place(std::uint64_t offset, std::uint64_t count) const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::span<const std::byte> bytes;
  };
  // From where it begins in the image.
  struct ReadPiece {
    std::uint64_t offset;
    ImageShare share;
  };
  void add(std::span<const std::byte> bytes);
  std::vector<Piece>::const_iterator piece_at(std::uint64_t offset) const;

  std::vector<std::vector<std::byte>> made_;  // head, body, and heads of shares
  std::vector<Piece> pieces_;                 // in order; zeros between them
  std::vector<ReadPiece> shares_;             // after them
  std::vector<std::uint64_t> copy_offsets_;
  std::uint64_t size_bytes_ = 0;
};

// What an image says of itself. Its bytes come from elsewhere: nothing of them is trusted.
struct ImageContents {
  Geometry geometry;
  Catalogue catalogue;
  std::vector<std::uint64_t> copy_offsets;   // of each array's bytes in the image
  std::vector<std::uint64_t> table_offsets;  // of its checksums; 0 without
  std::map<std::string, HeldShare> shares;   // of the image's bytes, by the companion's name
};
Result<ImageContents> parse_image(std::span<const std::byte> image);
// The same of an image that is elsewhere, without the bytes of shares: no more is read than what
// says what is in it, which then is in `front`, empty before.
using ReadImage = std::function<Status(std::uint64_t offset, std::span<std::byte> out)>;
Result<ImageContents> parse_image_front(std::uint64_t image_bytes, const ReadImage& read,
                                        std::vector<std::byte>& front);

// Makes `path`: a rank's file whose only version is the image's, in an incarnation that is not
// below the file's generation, so that what is committed from now on differs from versions of the
// same numbers that were committed before and given up. Whole and durable when it returns.
// Code::wrong_state if there is a file of that name.
Status make_file_of_image(const std::string& path, const RegionIdentity& identity,
                          std::span<const std::byte> image, Trust trust);

}  // namespace perdure
