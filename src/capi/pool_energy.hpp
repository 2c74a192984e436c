// SPDX-License-Identifier: BSD-3-Clause
//
// What a plan adds to a pool: settings of the device while it is written to and read from
// (energy/session.hpp), when a version is due, and the drains to its upper levels.
//
// Threads: as the pool. Failure: configure() fails where the environment names a file that can't be
// used. Later nothing fails a commit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "energy/session.hpp"
#include "levels/levels.hpp"
#include "pool/pool.hpp"

namespace perdure {

class PoolEnergy {
 public:
  // Local. `made` stays null if the environment asks for nothing. The group outlives it.
  static Status configure(const std::string& path, Group& group, std::shared_ptr<PoolEnergy>& made);
  // Gives the pool that is to be opened its token and its hook.
  static void attach(const std::shared_ptr<PoolEnergy>& energy, PoolOptions& options);
  ~PoolEnergy();

  // Those of the plan, each with the settings of its device.
  std::vector<DrainTarget> drains() const;
  bool has_plan() const { return plan_.has_value(); }
  // Whether the plan's interval has passed. Local: rank 0's clock decides.
  bool is_due() const;

 private:
  struct PlannedLevel {
    energy::PlanLevel plan;
    std::shared_ptr<energy::EnergySession> session;
  };
  PoolEnergy(std::string path, Group& group) : path_(std::move(path)), group_(group) {}
  Status open_levels();
  void warn(const std::string& sentence) const;
  void report(const energy::EnergySession& session, const std::string& path) const;
  void committed();
  double interval_s() const;

  std::string path_;
  Group& group_;
  std::shared_ptr<energy::EnergySession> session_;
  std::optional<energy::Plan> plan_;
  std::vector<PlannedLevel> levels_;  // above the pool
  std::uint64_t committed_ns_ = 0;
  std::uint64_t commits_ = 0;  // since the pool was opened
};

}  // namespace perdure
