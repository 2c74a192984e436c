// SPDX-License-Identifier: BSD-3-Clause
#include "pool_energy.hpp"

#include <algorithm>
#include <cstdio>

#include "base/clock.hpp"

namespace perdure {

Status PoolEnergy::configure(const std::string& path, Group& group,
                             std::shared_ptr<PoolEnergy>& made) {
  PERDURE_TRY_ASSIGN(auto found, energy::configured_session(path));
  if (!found.session) return Status::success();
  std::shared_ptr<PoolEnergy> energy(new PoolEnergy(path, group));
  energy->session_ = std::move(found.session);
  energy->plan_ = std::move(found.plan);
  PERDURE_TRY(energy->open_levels());
  if (group.rank() == 0 && !found.why_not.empty()) energy->warn("not applied: " + found.why_not);
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
        {level, std::make_shared<energy::EnergySession>(energy::machine(), storage, request)});
  }
  return Status::success();
}

void PoolEnergy::attach(const std::shared_ptr<PoolEnergy>& energy, PoolOptions& options) {
  if (!energy) return;
  options.token = energy->session_;
  options.committed = [energy](std::uint64_t) { energy->committed(); };
}

PoolEnergy::~PoolEnergy() {
  report(*session_, path_);
  for (const PlannedLevel& level : levels_) report(*level.session, level.plan.path);
}

void PoolEnergy::report(const energy::EnergySession& session, const std::string& path) const {
  const Status reported = energy::report_session(session, path, group_.rank());
  if (!reported.ok()) warn("PERDURE_ENERGY_REPORT: " + reported.message());
}

std::vector<DrainTarget> PoolEnergy::drains() const {
  std::vector<DrainTarget> drains;
  for (const PlannedLevel& level : levels_) {
    drains.push_back(
        {.directory = level.plan.path, .every = level.plan.every, .token = level.session});
  }
  return drains;
}

void PoolEnergy::warn(const std::string& sentence) const {
  std::fprintf(stderr, "perdure: %s: %s\n", path_.c_str(), sentence.c_str());
}

double PoolEnergy::interval_s() const {
  if (plan_->works_s.empty()) return plan_->interval_s;
  return plan_->works_s[std::min<std::size_t>(commits_, plan_->works_s.size() - 1)];
}

bool PoolEnergy::is_due() const {
  return static_cast<double>(monotonic_ns() - committed_ns_) / 1e9 >= interval_s();
}

void PoolEnergy::committed() {
  committed_ns_ = monotonic_ns();
  ++commits_;
}

}  // namespace perdure
