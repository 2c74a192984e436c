// SPDX-License-Identifier: BSD-3-Clause
//
// Guard contents: what a guard says of the group that wrote it (redundancy.hpp), as bytes at the
// end of its payload. Threads: pure. Failure: see guard_contents().
#pragma once

#include <cstddef>
#include <vector>

#include "levels/redundancy.hpp"
#include "levels/stripes.hpp"

namespace perdure {

// Of contents that guard_contents() or this program made.
inline Stripes stripes_of(const GuardContents& contents) {
  return {contents.rows, contents.image_bytes};
}

std::vector<std::byte> contents_bytes(const GuardContents& contents);

// Versions of this job's lineage and number of ranks of which a rank has its image and, if it
// belongs to a failure group, a guard of it.
std::vector<VersionId> whole_versions(const std::vector<LevelFile>& images,
                                      const std::vector<LevelFile>& guards, const JobRecord& job,
                                      const std::vector<std::uint32_t>& members);

}  // namespace perdure
