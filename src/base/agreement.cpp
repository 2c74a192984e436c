// SPDX-License-Identifier: BSD-3-Clause
#include "base/agreement.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/io_token.hpp"

namespace perdure {
namespace {

constexpr std::size_t values_max = 7;

// Larger for lower ranks, so that the maximum names the lowest rank that failed.
std::uint64_t encode_failure(const Group& group, const Status& local) {
  if (local.ok()) return 0;
  const auto code = static_cast<std::uint64_t>(-static_cast<int>(local.code()));
  return (static_cast<std::uint64_t>(group.ranks() - group.rank()) << 8) | code;
}

Status decode_failure(const Group& group, std::uint64_t failure) {
  const auto rank = group.ranks() - static_cast<std::uint32_t>(failure >> 8);
  const auto code = static_cast<Code>(-static_cast<int>(failure & 0xff));
  return Status(Code::peer_failed, "rank ", rank, " failed: ", code_text(code),
                " (its own message says more)");
}

}  // namespace

Status agree_max(Group& group, const Status& local, std::span<std::uint64_t> values) {
  PERDURE_ASSERT(values.size() <= values_max);
  PERDURE_ASSERT(!holds_token());  // another rank may wait for it before it comes here
  std::array<std::uint64_t, values_max + 1> all{};
  all[0] = encode_failure(group, local);
  std::ranges::copy(values, all.begin() + 1);
  PERDURE_TRY(group.all_max({all.data(), values.size() + 1}));
  std::copy_n(all.begin() + 1, values.size(), values.begin());
  if (!local.ok()) return local;
  return all[0] == 0 ? Status::success() : decode_failure(group, all[0]);
}

Status agree_any(Group& group, const Status& local, std::uint64_t& bits) {
  PERDURE_ASSERT(!holds_token());
  std::array<std::uint64_t, 65> all{};
  all[0] = encode_failure(group, local);
  for (std::size_t i = 0; i < 64; ++i) all[i + 1] = bits >> i & 1;
  PERDURE_TRY(group.all_max(all));
  for (std::size_t i = 0; i < 64; ++i) bits |= all[i + 1] << i;
  if (!local.ok()) return local;
  return all[0] == 0 ? Status::success() : decode_failure(group, all[0]);
}

Status agree(Group& group, const Status& local) {
  return agree_max(group, local, {});
}

}  // namespace perdure
