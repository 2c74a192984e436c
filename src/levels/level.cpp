#include "levels/level.hpp"

namespace perdure {

Result<KeptPool> kept_pool(Pool& pool) {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(pool.directory(), trust_unless(false)));
  PERDURE_TRY_ASSIGN(auto job, read_job_record(directory));
  return KeptPool{pool.directory(), pool.device().file().path, std::move(job)};
}

Status Level::check_free(const KeptPool& pool, std::uint64_t version) const {
  PERDURE_TRY_ASSIGN(const auto held, newest());
  if (!held) return Status::success();
  const bool same_job = held->job.job_id == pool.job.job_id;
  if (same_job && held->version < version) return Status::success();
  return {Code::foreign,
          held->place + " holds version " + std::to_string(held->version) + " of job " +
              quoted(held->job.job_name) + " (" + job_id_text(held->job.job_id) +
              "), and the pool " + pool.directory + " is " +
              (same_job ? "an older copy of it, which would make version " +
                              std::to_string(version) + " next"
                        : "another one (" + job_id_text(pool.job.job_id) + ")") +
              ": if the pool was lost, copy " + held->place +
              " to its place; if that copy is no longer needed, move it away, or choose another "
              "directory for the level"};
}

}  // namespace perdure
