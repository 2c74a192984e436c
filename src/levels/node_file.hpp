// SPDX-License-Identifier: BSD-3-Clause
//
// Node file: one version of the ranks of one node, in one file of a file system that survives the
// node: their sealed images as they are beside the pool, and before them a list of what is where.
// node_file_format.hpp has the layout.
//
// A file under its own name is not replaced, unless it is damaged: of several writers the first
// counts (levels.L2). All write the same version, so it does not matter which: no two versions of a
// job have one number and incarnation (manifest.hpp, FoundVersions::incarnation_max).
//
// Threads: any; also writers of one file at the same time. Failure: a Status that names the file
// and the remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "levels/level_directory.hpp"
#include "levels/level_file.hpp"
#include "levels/sealed.hpp"

namespace perdure {

// What the list says of one rank's image.
struct NodeImage {
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;    // in the file
  std::uint64_t bytes = 0;     // of the sealed image
  std::uint64_t checksum = 0;  // its state word
};

struct NodeFile {
  JobRecord job;  // without a place
  VersionId id;
  std::uint64_t bytes = 0;        // of the file
  std::uint64_t checksum = 0;     // its state word
  std::vector<NodeImage> images;  // by rank
};

// An image on its way into a node file.
struct DrainedImage {
  Seal seal;
  // Copies the chunk that begins there, and compares the copy with its checksum.
  std::function<Status(std::uint64_t offset, std::span<std::byte> out)> read;
  // The payload where it lies, and what compares the chunk that begins there, so that it can be
  // written without a copy. Empty: it does not lie in one place.
  std::span<const std::byte> in_place = {};
  std::function<Status(std::uint64_t offset)> check = nullptr;
};
// Code::damaged if its contents are not what an image is. The file is whole and outlives it.
Result<DrainedImage> image_of_file(const LevelFile& file);

std::string node_file_name(std::uint32_t lowest_rank);
// The lowest rank, if this is the name of a node file.
std::optional<std::uint32_t> node_of_file(const std::string& name);
// Whether a writer of a node file uses this name until the file is whole.
bool is_unfinished_node_file(const std::string& name);

// Called after each write, with the bytes that it wrote; a failure ends the writing.
using Watch = std::function<Status(std::uint64_t bytes)>;

// Writes the version's images, in ascending order of ranks, to a directory that exists. A file of
// that name that holds these ranks is taken as it is. Code::wrong_state if it holds others.
Status write_node_file(const LevelDirectory& directory, const JobRecord& job, VersionId id,
                       std::span<const DrainedImage> images, const Watch& watch);

// The list. Code::damaged, newer_format, not_found.
Result<NodeFile> read_node_file(const LevelDirectory& directory, std::uint32_t lowest_rank);

// One image of those that `file` lists, to be read piece by piece.
class NodeImageReader {
 public:
  static Result<NodeImageReader> open(const LevelDirectory& directory, const NodeFile& file,
                                      const NodeImage& image);
  // The chunks that have these bytes of the payload are compared with their checksums, each once
  // while reads go forward.
  Status read(std::uint64_t offset, std::uint64_t count, std::byte* to);
  const std::string& path() const { return path_; }
  std::uint64_t payload_bytes() const { return seal_.header.payload_bytes; }

 private:
  NodeImageReader(std::unique_ptr<LevelReader> file, std::string path, std::uint64_t begin,
                  Seal seal)
      : file_(std::move(file)), path_(std::move(path)), begin_(begin), seal_(std::move(seal)) {}
  Status load(std::uint64_t chunk);

  std::unique_ptr<LevelReader> file_;
  std::string path_;
  std::uint64_t begin_;  // of the payload in the file
  Seal seal_;
  std::vector<std::byte> chunk_;
  std::optional<std::uint64_t> loaded_;
};

// Reads one image of those that `file` lists: its header to `begin`, then its payload to `take`,
// chunk by chunk in order, each compared with its checksum.
Status read_node_image(
    const LevelDirectory& directory, const NodeFile& file, const NodeImage& image,
    const std::function<Status(const SealedHeader& header)>& begin,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& take);

}  // namespace perdure
