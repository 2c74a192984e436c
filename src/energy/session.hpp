// SPDX-License-Identifier: BSD-3-Clause
//
// Energy session: applies the settings of a profile or a plan around each batch of reads or writes
// of one path: takes a writer token, caps the clock, and gives both back.
//
// Configured by PERDURE_ENERGY_PLAN and PERDURE_ENERGY_PROFILE (the plan counts where both are
// given) and PERDURE_ENERGY_TIMEOUT_MS, after which one goes ahead without a token (default
// 30000). What was done is appended to the file PERDURE_ENERGY_REPORT, a line of JSON a session.
//
// Order: the token first, as the ranks that wait for one sleep and need no clock; then the cap. The
// keeper is started before the first cap.
//
// Threads: as IoToken. Failure: make() fails where a file that was named can't be used; after that
// nothing fails, and what was not applied is reported.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/io_token.hpp"
#include "base/status.hpp"
#include "energy/frequency.hpp"
#include "energy/keeper.hpp"
#include "energy/settings.hpp"
#include "energy/storage.hpp"
#include "energy/tokens.hpp"

namespace perdure::energy {

struct SessionRequest {
  std::string path;              // what is read and written
  std::optional<Settings> read;  // absent: nothing is asked for
  std::optional<Settings> write;
  std::uint32_t timeout_ms = 30'000;
};

struct SessionFacts {
  std::string device;
  TokenCounters tokens;
  std::uint64_t capped = 0;  // batches at the clock that was asked for
  std::uint64_t not_capped = 0;
  std::string not_applied;  // the last sentence; "" if all was
};

class EnergySession final : public IoToken {
 public:
  EnergySession(Sysfs& sysfs, const Storage& storage, const SessionRequest& request);
  ~EnergySession() override;

  void acquire(IoKind kind) override;
  void release() override;

  // Why the settings can't be applied as they are, as far as is known without trying; "" if not.
  std::string why_not();
  SessionFacts facts() const;
  const FrequencyReport& last_report() const { return report_; }

 private:
  const std::optional<Settings>& settings(IoKind kind) const {
    return kind == IoKind::read ? request_.read : request_.write;
  }
  void cap(std::uint64_t khz);

  Sysfs& sysfs_;
  SessionRequest request_;
  FrequencyControl control_;
  std::string state_directory_;
  Owner owner_;
  Keeper keeper_;
  WriterTokens tokens_;
  FrequencyReport report_;
  SessionFacts facts_;
  bool capped_ = false;
  std::uint64_t capped_ns_ = 0;
};

// What the environment asks for, for a pool in `path`; `plan` gets the plan, if there is one. Null:
// nothing is asked for. `why_not` gets a sentence where a profile is of another device.
struct Configured {
  std::unique_ptr<EnergySession> session;
  std::optional<Plan> plan;
  std::string why_not;
};
Result<Configured> configured_session(const std::string& path);

// Appends what a session did to $PERDURE_ENERGY_REPORT, if that is set.
Status report_session(const EnergySession& session, const std::string& path, std::uint32_t rank);

}  // namespace perdure::energy
