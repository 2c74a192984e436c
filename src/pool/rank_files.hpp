// SPDX-License-Identifier: BSD-3-Clause
//
// Rank files: which file of a pool's directory is a rank's, also where the pool has got another
// number of ranks and the job was cut short before its files had their names (rank_change.hpp).
//
// Threads: any. Failure: as base/files.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "pmem/region.hpp"
#include "pool/job_record.hpp"

namespace perdure {

// What the header of a file of the directory says; nothing else of it is looked at.
Result<Region> read_region(const Directory& directory, const std::string& name);

// The name under which the rank's file of the pool lies, if it is there at all.
std::string current_rank_file(const Directory& directory, const JobRecord& job, std::uint32_t rank);

// Whether the header is that of the rank's file in a pool with this record.
bool is_file_of(const Region& region, const JobRecord& job, std::uint32_t rank);

// Files of a pool that got other ranks have their own names afterwards: those of every `step`-th
// rank from `first` on. Success where there is no pool, or nothing to do.
Status settle_names(const std::string& path, std::uint32_t first, std::uint32_t step,
                    std::uint32_t lock_wait_ms, Trust trust);

// What no rank of the pool has any more, or not yet. The caller has all rank files locked.
bool is_remains(const Directory& directory, const JobRecord& job, const std::string& name);
Status remove_remains(const Directory& directory, const JobRecord& job);

// [collective] Which ranks of the group have this very directory, in order: each leaves a note
// there for a moment. Null: this rank has none, and is alone.
Result<std::vector<std::uint32_t>> ranks_with(const Directory* directory, Group& group);

}  // namespace perdure
