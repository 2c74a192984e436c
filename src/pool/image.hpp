// Image: the bytes of one rank's version, from which a pool's file can be made again on any node.
//
//   RegionHeaderFormat   of the file that it was taken from
//   slot body            as in slot_format.hpp, padded to a multiple of 64
//   boxes                of arrays that the program gave a place in a global array (ImageBoxFormat)
//   for each array       the copy that the version names, and its table of checksums, each padded
//                        to a multiple of 64
//
// Everything is read in place: as long as the version is one that the pool keeps, none of it is
// stored to (commit.cpp, I1).
//
// Arrays in flush mode have no versions, so a pool that has one has no images.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/slots.hpp"

namespace perdure {

// Where an array of this rank lies in one that all ranks have together; in elements.
struct GlobalBox {
  std::vector<std::uint64_t> global_shape;
  std::vector<std::uint64_t> first;
};
using GlobalBoxes = std::map<std::string, GlobalBox>;  // by array name

class Image {
 public:
  // `catalogue` is that of a version in one of the slots of `device`.
  static Result<Image> of(const Device& device, const Region& region, const Catalogue& catalogue,
                          const GlobalBoxes& boxes = {});

  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  // Bytes [offset, offset + out.size()).
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::span<const std::byte> bytes;
  };
  Catalogue catalogue_;
  std::vector<std::byte> head_;
  std::vector<Piece> pieces_;
  std::uint64_t size_bytes_ = 0;
};

// What an image says of itself: the bytes come from elsewhere and are not trusted.
struct ImageContents {
  Region region;
  Catalogue catalogue;
  GlobalBoxes boxes;
  // Of each array of the catalogue, in its order: where its bytes begin in the image.
  std::vector<std::uint64_t> array_offsets;
};
Result<ImageContents> read_image(std::span<const std::byte> image);

// Makes `name` in the directory: a rank's file whose only version is the image's, of `generation`.
// Whole and durable when it returns; a file of that name must not exist.
Status make_file_of_image(const Directory& directory, const std::string& name,
                          std::span<const std::byte> image, std::uint64_t generation, Trust trust);

}  // namespace perdure
