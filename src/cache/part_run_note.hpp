// SPDX-License-Identifier: BSD-3-Clause
//
// Run note: tells `perdure run` which parts of cached files its job has made or joined, so that it
// can look for what the job has left (python/perdure/run/left_behind.py).
//
// A file part-HASH-NODE in PERDURE_RUN_DIR, and in PERDURE_RUN_SHARED where the job is on several
// nodes: the name of the node, the part's file and the cached file, each ended by a zero byte. It
// goes after the part: a process that is killed between leaves a note of nothing, and not a part
// that nobody looks for.
//
// Threads: any. Failure: none; the launcher does not hear of the part.
#pragma once

#include <string>

namespace perdure {

void note_part_for_run(const std::string& part_file, const std::string& path);
void forget_part_for_run(const std::string& part_file);

}  // namespace perdure
