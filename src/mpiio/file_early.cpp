// SPDX-License-Identifier: BSD-3-Clause
//
// A cached file that is written back while its processes compute.
#include "mpiio/cached_file.hpp"

namespace perdure {

// What is committed with a pool is to be undone, so it stays in the part. A process for which there
// is no thread does without.
void CachedFile::begin_early_write_back() {
  early_.begin([this]() -> std::unique_ptr<EarlyWriteBack> {
    if (part().with_pool()) return nullptr;
    const std::uint64_t blocks = part_blocks_for(layout_, others_.own(), part().size_bytes());
    return EarlyWriteBack::start(part(), openers_.first_block(blocks));
  });
}

void CachedFile::end_early_write_back() {
  const auto ending = early_.end();
  if (ending == nullptr) return;
  ending->stop();
  tally_.written_back_bytes += ending->written_bytes();
}

}  // namespace perdure
