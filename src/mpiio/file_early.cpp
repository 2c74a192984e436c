// SPDX-License-Identifier: BSD-3-Clause
//
// A cached file that is written back while its processes compute.
#include "mpiio/cached_file.hpp"

namespace perdure {

// What is committed with a pool is to be undone, so it stays in the part. A process for which there
// is no thread does without.
void CachedFile::begin_early_write_back() {
  const std::lock_guard<std::mutex> lock(early_mutex_);
  if (writes_early_.exchange(true) || part().with_pool()) return;
  if (backing_.access() == BackingFile::Access::read) return;
  const std::uint64_t blocks = part_blocks_for(layout_, node_, part().size_bytes());
  early_ = EarlyWriteBack::start(part(), blocks * local_rank_ / local_ranks_, syncs_file());
}

void CachedFile::end_early_write_back() {
  std::unique_ptr<EarlyWriteBack> ending;
  {
    const std::lock_guard<std::mutex> lock(early_mutex_);
    ending.swap(early_);
    writes_early_.store(false);
  }
  if (ending == nullptr) return;
  ending->stop();
  tally_.written_back_bytes += ending->written_bytes();
}

}  // namespace perdure
