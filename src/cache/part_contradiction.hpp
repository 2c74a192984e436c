// SPDX-License-Identifier: BSD-3-Clause
//
// Part contradiction: whether the cached file can be what the job left there, as the bytes of a
// part say.
//
//   cache.P15 Recovery changes neither the part nor the file if somebody else changed the file,
//       unless a user says which of the two counts. What the times leave open the bytes decide:
//       where the file must have what a present block has, it has it. Excepted are writes that were
//       under way and so may not be marked dirty yet (cache.P2): small ones are in the journal,
//       large ones are announced there, and of those of one word there is one for each process.
//       Recovery is a change of the file as any other, so one that was cut short is known as that.
//
// Threads: of a process that has the part alone. Failure: the file can't be read.
#pragma once

#include "base/status.hpp"
#include "cache/block_table.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_journal.hpp"
#include "cache/part_versions.hpp"

namespace perdure {

// It can't. Within one boot.
Result<bool> contradicts_part(const PartBytes& bytes, const BlockTable& table,
                              const PartVersions& versions, const PartJournal& journal);

}  // namespace perdure
