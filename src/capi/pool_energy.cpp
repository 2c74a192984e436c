#include "pool_energy.hpp"

#include <algorithm>
#include <cstdio>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record.hpp"

namespace perdure {

Status PoolEnergy::configure(const std::string& path, Group& group,
                             std::shared_ptr<PoolEnergy>& made) {
  PERDURE_TRY_ASSIGN(auto configured, energy::configured_session(path));
  energy::Configured found = std::move(configured);
  if (!found.session) return Status::success();
  std::shared_ptr<PoolEnergy> energy(new PoolEnergy(path, group));
  energy->session_ = std::move(found.session);
  energy->plan_ = std::move(found.plan);
  PERDURE_TRY(energy->open_levels());
  if (group.rank() == 0 && !found.told.empty()) energy->tell("not applied: " + found.told);
  energy->committed_ns_ = monotonic_ns();
  made = std::move(energy);
  return Status::success();
}

Status PoolEnergy::open_levels() {
  if (!plan_) return Status::success();
  for (std::size_t i = 1; i < plan_->levels.size(); ++i) {
    const energy::PlanLevel& level = plan_->levels[i];
    PERDURE_TRY_ASSIGN(auto storage, energy::storage_of(energy::machine(), level.path));
    energy::SessionRequest request;
    request.path = level.path;
    request.write = level.write;
    levels_.push_back(
        {level, std::make_unique<energy::EnergySession>(energy::machine(), storage, request)});
  }
  return Status::success();
}

void PoolEnergy::attach(const std::shared_ptr<PoolEnergy>& energy, PoolOptions& options) {
  if (!energy) return;
  options.token = energy->session_;
  options.committed = [energy](std::uint64_t version) { energy->committed(version); };
}

PoolEnergy::~PoolEnergy() {
  report(*session_, path_);
  for (const Level& level : levels_) report(*level.session, level.plan.path);
}

void PoolEnergy::report(const energy::EnergySession& session, const std::string& path) const {
  const Status reported = energy::report_session(session, path, group_.rank());
  if (!reported.ok()) tell("PERDURE_ENERGY_REPORT: " + reported.message());
}

Status PoolEnergy::set_pool(Pool& pool) {
  if (levels_.empty()) return Status::success();
  files_.pool = pool.directory();
  files_.rank_file = pool.device().file().path;
  job_id_ = pool.job_id();
  Status local;
  const auto directory = Directory::open(files_.pool, trust_unless(false));
  auto record = directory.ok() ? read_job_record(directory.value()) : directory.status();
  if (record.ok()) {
    files_.job_record = job_record_bytes(record.value(), {});
  } else {
    local = record.status();
  }
  for (const Level& level : levels_) {
    if (local.ok()) local = check_level(level, pool.next_version());
  }
  return agree(group_, local);
}

// L3 of level_copy.hpp, for the version that the pool makes next.
Status PoolEnergy::check_level(const Level& level, std::uint64_t next_version) const {
  PERDURE_TRY_ASSIGN(const auto found, newest_copy(level.plan.path, files_.pool));
  if (!found) return Status::success();
  const LevelCopy& copy = *found;
  const auto directory = Directory::open(copy.path, trust_unless(false));
  if (!directory.ok()) return directory.status();
  PERDURE_TRY_ASSIGN(const auto record, read_job_record(directory.value()));
  const JobRecord& its = record;
  const bool same_job = its.job_id == job_id_;
  if (same_job && copy.version < next_version) return Status::success();
  return {Code::foreign,
          copy.path + " holds version " + std::to_string(copy.version) + " of job " +
              quoted(its.job_name) + " (" + job_id_text(its.job_id) + "), and the pool " +
              files_.pool + " is " +
              (same_job ? "an older copy of it, which would make version " +
                              std::to_string(next_version) + " next"
                        : "another one (" + job_id_text(job_id_) + ")") +
              ": if the pool was lost, copy " + copy.path +
              " to its place; if that copy is not "
              "needed any more, move it away, or choose another directory for the level"};
}

void PoolEnergy::tell(const std::string& sentence) const {
  std::fprintf(stderr, "perdure: %s: %s\n", path_.c_str(), sentence.c_str());
}

double PoolEnergy::interval_s() const {
  if (plan_->works_s.empty()) return plan_->interval_s;
  return plan_->works_s[std::min<std::size_t>(commits_, plan_->works_s.size() - 1)];
}

Result<int> PoolEnergy::commit_due() {
  if (!plan_) return 1;
  const double elapsed_s = static_cast<double>(monotonic_ns() - committed_ns_) / 1e9;
  std::uint64_t due = group_.rank() == 0 && elapsed_s >= interval_s() ? 1 : 0;
  PERDURE_TRY(group_.all_max({&due, 1}));
  return static_cast<int>(due);
}

void PoolEnergy::committed(std::uint64_t version) {
  for (const Level& level : levels_) {
    if (version % level.plan.every != 0) continue;
    const Status copied = copy_to_level(group_, files_, level.plan.path, version,
                                        check_level(level, version), level.session.get());
    if (!copied.ok() && copied.code() != Code::peer_failed) {
      tell("level " + level.plan.name + " has no copy of version " + std::to_string(version) +
           ": " + copied.message());
    }
  }
  committed_ns_ = monotonic_ns();
  ++commits_;
}

}  // namespace perdure
