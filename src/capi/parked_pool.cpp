// SPDX-License-Identifier: BSD-3-Clause
#include "parked_pool.hpp"

#include <atomic>

#include "base/agreement.hpp"

namespace perdure {
namespace {

std::atomic<FindParkedPool> known{nullptr};

}  // namespace

void set_parked_pools(FindParkedPool find) {
  known = find;
}

Status close_parked_pool(const char* path, Group& group, const Status& local) {
  const FindParkedPool find = known;
  const bool may_be = local.ok() && find != nullptr && path != nullptr;
  const std::function<void()> close = may_be ? find(path, group) : nullptr;
  std::uint64_t lacks[] = {close ? 0U : 1U};
  PERDURE_TRY(agree_max(group, local, lacks));
  if (lacks[0] == 0) close();
  return Status::success();
}

}  // namespace perdure
