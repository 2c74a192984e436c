// What energy-aware commits add to a pool: settings of the device while it is written to and read
// from (energy/session.hpp), the interval of a plan, and the copies of its upper levels.
//
// Threads: as the pool. Failure: configure() fails where the environment names a file that can't be
// used, set_pool() where a level holds something else. Later nothing fails a commit: a level that
// could not be written is told on stderr, and its older copy stays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "energy/session.hpp"
#include "levels/directory_level.hpp"
#include "pool/pool.hpp"

namespace perdure {

class PoolEnergy {
 public:
  // Local. `made` stays null if the environment asks for nothing. The group outlives it.
  static Status configure(const std::string& path, Group& group, std::shared_ptr<PoolEnergy>& made);
  // Gives the pool that is to be opened its token and its hook.
  static void attach(const std::shared_ptr<PoolEnergy>& energy, PoolOptions& options);
  ~PoolEnergy();

  // [collective] Code::foreign if a level holds what this pool must not write to (level_copy.hpp,
  // L3): another job's copies, or a newer version than the pool ever had.
  Status set_pool(Pool& pool);
  // Collective.
  Result<int> commit_due();

 private:
  struct Level {
    energy::PlanLevel plan;
    std::unique_ptr<energy::EnergySession> session;
  };
  PoolEnergy(std::string path, Group& group) : path_(std::move(path)), group_(group) {}
  Status open_levels();
  Status check_level(const Level& level, std::uint64_t next_version) const;
  void tell(const std::string& sentence) const;
  void report(const energy::EnergySession& session, const std::string& path) const;
  void committed(std::uint64_t version);
  double interval_s() const;

  std::string path_;
  Group& group_;
  std::shared_ptr<energy::EnergySession> session_;
  std::optional<energy::Plan> plan_;
  std::vector<Level> levels_;  // above the pool
  LevelFiles files_;
  JobId job_id_;
  std::uint64_t committed_ns_ = 0;
  std::uint64_t commits_ = 0;  // since the pool was opened
};

}  // namespace perdure
