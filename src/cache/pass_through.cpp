// SPDX-License-Identifier: BSD-3-Clause
#include "cache/pass_through.hpp"

namespace perdure {

Status PassThrough::write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                          bool durable) {
  count(bytes);
  PERDURE_TRY(changes_.begin());
  const std::uint64_t begun = changes_.note();
  Status done = file_->write(offset, from, bytes);
  if (done.ok() && durable) done = file_->sync_data();
  // One that failed may have changed nothing, and so says nothing about clocks.
  const Status ended = changes_.end(done.ok() ? begun : 0);
  return done.ok() ? ended : done;
}

// A network file system may change the file's times by what it still holds; others do not, so that
// the times say nothing about clocks.
Status PassThrough::sync() {
  PERDURE_TRY(changes_.begin());
  (void)changes_.note();
  const Status done = file_->sync();
  const Status ended = changes_.end();
  return done.ok() ? ended : done;
}

}  // namespace perdure
