// SPDX-License-Identifier: BSD-3-Clause
//
// Origin: of which version of a job something is. Pure.
#pragma once

#include <compare>
#include <cstdint>

#include "pool/job_record.hpp"

namespace perdure {

// A version of a job, of which incarnation. After a restart from an older version its number may be
// given again, in a higher incarnation.
struct VersionId {
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;
  auto operator<=>(const VersionId&) const = default;  // by age
};
// Of a catalogue, or of a header that has both.
template <typename Format>
VersionId id_of(const Format& format) {
  return {format.incarnation, format.version};
}
// Whether `id` is newer contents than `held`. A version that is given to other nodes again after a
// restart is the same in a higher incarnation. Another version of the same number cannot be meant:
// it would have taken the slot of `held`.
inline bool is_newer(VersionId id, VersionId held) {
  return id > held && id.version != held.version;
}

}  // namespace perdure
