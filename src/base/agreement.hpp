// SPDX-License-Identifier: BSD-3-Clause
//
// Agreement: what all ranks of a group think of a step that each did alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/group.hpp"
#include "base/status.hpp"

namespace perdure {

// Collective, and a barrier: success if every rank's `local` is success. Otherwise a rank that
// failed gets its own status back and the others Code::peer_failed, which names the lowest rank
// that failed and its error.
Status agree(Group& group, const Status& local);

// The same, with each bit of `bits` set if it is set on any rank. One exchange of 65 words.
Status agree_any(Group& group, const Status& local, std::uint64_t& bits);

// The same as agree(), with `values` replaced by their maxima over the ranks (of all ranks, also
// failed ones).
Status agree_max(Group& group, const Status& local, std::span<std::uint64_t> values);

}  // namespace perdure
