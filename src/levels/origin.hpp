// SPDX-License-Identifier: BSD-3-Clause
//
// Origin: of which job and version something is, as the headers of sealed_format.hpp and
// lease_format.hpp say it. Pure.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "pmem/region_format.hpp"
#include "pool/job_record.hpp"

namespace perdure {

// A version of a job, of which incarnation. After a restart from an older version its number may be
// given again, in a higher incarnation.
struct VersionId {
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;
  auto operator<=>(const VersionId&) const = default;  // by age
};
// Of a catalogue, or of a header with what put_origin() stores.
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

// What the headers have of the job.
template <typename Format>
void put_job(Format& format, const JobRecord& job) {
  std::copy_n(job.job_id.words, 2, format.job_id);
  std::copy_n(job.lineage.words, 2, format.lineage);
  PERDURE_ASSERT(job.job_name.size() < job_name_bytes);
  std::memcpy(format.job_name, job.job_name.data(), job.job_name.size());
  format.job_created_ns = job.created_ns;
  format.ranks = job.ranks;
}
// The same, and the version.
template <typename Format>
void put_origin(Format& format, const JobRecord& job, VersionId id) {
  put_job(format, job);
  format.version = id.version;
  format.incarnation = id.incarnation;
}
template <typename Format>
bool has_origin(const Format& format) {
  return format.ranks > 0 && format.ranks <= ranks_max &&
         format.job_name[job_name_bytes - 1] == '\0';
}
template <typename Format>
JobRecord job_of(const Format& format) {
  const JobId id{{format.job_id[0], format.job_id[1]}};
  const JobId lineage{{format.lineage[0], format.lineage[1]}};
  return {id, format.job_name, format.ranks, format.job_created_ns, {}, lineage};
}

}  // namespace perdure
