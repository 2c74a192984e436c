// What a plan adds to a pool: settings of the device while it is written to and read from
// (energy/session.hpp), when a version is due, and the copies on its upper levels
// (levels/level.hpp).
//
// Threads: as the pool. Failure: configure() fails where the environment names a file that can't be
// used, set_pool() where a level holds something else. Later nothing fails a commit: a level that
// could not be written is reported on stderr, and its older copy stays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "energy/session.hpp"
#include "levels/level.hpp"
#include "pool/pool.hpp"

namespace perdure {

class PoolEnergy {
 public:
  // Local. `made` stays null if the environment asks for nothing. The group outlives it.
  static Status configure(const std::string& path, Group& group, std::shared_ptr<PoolEnergy>& made);
  // Gives the pool that is to be opened its token and its hook.
  static void attach(const std::shared_ptr<PoolEnergy>& energy, PoolOptions& options);
  ~PoolEnergy();

  // [collective] Code::foreign if a level holds what this pool must not write to (levels/level.hpp,
  // L3): another job's copies, or a newer version than the pool ever had.
  Status set_pool(Pool& pool);
  bool has_plan() const { return plan_.has_value(); }
  // Whether the plan's interval has passed. Local: rank 0's clock decides.
  bool is_due() const;

 private:
  struct PlannedLevel {
    energy::PlanLevel plan;
    std::unique_ptr<energy::EnergySession> session;
    std::unique_ptr<Level> copies = nullptr;  // from set_pool() on
  };
  PoolEnergy(std::string path, Group& group) : path_(std::move(path)), group_(group) {}
  Status open_levels();
  void warn(const std::string& sentence) const;
  void report(const energy::EnergySession& session, const std::string& path) const;
  void committed(std::uint64_t version);
  double interval_s() const;

  std::string path_;
  Group& group_;
  std::shared_ptr<energy::EnergySession> session_;
  std::optional<energy::Plan> plan_;
  std::vector<PlannedLevel> levels_;  // above the pool
  KeptPool pool_;
  std::uint64_t committed_ns_ = 0;
  std::uint64_t commits_ = 0;  // since the pool was opened
};

}  // namespace perdure
