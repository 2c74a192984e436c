// SPDX-License-Identifier: BSD-3-Clause
//
// Drained pool: what the place of a pool in a drain holds (manifest.hpp), reported and read as what
// a pool holds is (pool/inspect.hpp), from the images where they lie.
//
// Threads: any. Nothing is changed or locked. A job that goes on may remove a version meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "levels/manifest.hpp"
#include "pool/image.hpp"
#include "pool/inspect.hpp"

namespace perdure {

// One rank's image of a version, open.
struct OpenImage {
  NodeImageReader reader;
  ImageContents contents;        // of shares the places alone
  std::vector<std::byte> front;  // what says so
  std::uint64_t bytes = 0;       // of the sealed image
};
Result<OpenImage> open_image(const Manifest& manifest, std::uint32_t rank);

// Whether the directory is no pool's, and one in which a run has drained, or is about to.
bool is_drained_pool(const std::string& directory);

// The ranks' files are then their images. Versions that are not whole are findings.
Result<PoolReport> inspect_drained_pool(const std::string& place, const InspectOptions& options);

// As read_array() of a pool, but that the bytes are those of no file alone. Code::busy: the version
// is no longer there.
Result<DumpedArray> read_drained_array(const std::string& place, std::uint32_t rank,
                                       const std::string& name, std::uint32_t part,
                                       std::uint64_t version);

}  // namespace perdure
