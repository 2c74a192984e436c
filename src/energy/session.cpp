// SPDX-License-Identifier: BSD-3-Clause
#include "energy/session.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/key_values.hpp"
#include "energy/state_directory.hpp"

namespace perdure::energy {
namespace {

constexpr std::uint64_t effect_after_ns = 50'000'000;

// Of the profile, if it is of the device that the path lies on.
Status fill_from_profile(const std::string& file, const Storage& storage, SessionRequest& request,
                         std::string& why_not) {
  PERDURE_TRY_ASSIGN(const auto profile, read_profile(file));
  const std::string& device = profile.device;
  if (device != storage.name) {
    why_not = file + " is a profile of " + (device.empty() ? "an unknown device" : device) +
              ", and " + request.path + " lies on " + storage.name + ": it was not applied";
    return Status::success();
  }
  request.read = best_settings(profile, IoKind::read);
  request.write = best_settings(profile, IoKind::write);
  return Status::success();
}

Status read_timeout(SessionRequest& request) {
  const std::string text = environment("PERDURE_ENERGY_TIMEOUT_MS");
  if (text.empty()) return Status::success();
  PERDURE_TRY_ASSIGN(const auto timeout,
                     parse_number("PERDURE_ENERGY_TIMEOUT_MS", text, 0, 3'600'000));
  request.timeout_ms = static_cast<std::uint32_t>(timeout);
  return Status::success();
}

}  // namespace

EnergySession::EnergySession(Sysfs& sysfs, const Storage& storage, const SessionRequest& request)
    : sysfs_(sysfs),
      request_(request),
      control_(sysfs, state_directory()),
      state_directory_(state_directory()),
      owner_(this_process()),
      tokens_(storage.name) {
  facts_.device = storage.name;
}

EnergySession::~EnergySession() {
  release();
}

std::string EnergySession::why_not() {
  const bool wants_clock =
      (request_.read && request_.read->freq_khz) || (request_.write && request_.write->freq_khz);
  return wants_clock ? control_.why_not() : std::string();
}

void EnergySession::cap(std::uint64_t khz) {
  if (control_.why_not().empty()) {
    const Status kept = keeper_.start(state_directory_, owner_);
    if (!kept.ok()) facts_.not_applied = kept.message();
  }
  report_ = control_.cap(owner_, khz);
  capped_ = report_.reason.empty();
  capped_ns_ = monotonic_ns();
  (report_.applied() ? facts_.capped : facts_.not_capped) += 1;
  if (!report_.applied()) facts_.not_applied = report_.not_applied();
}

void EnergySession::acquire(IoKind kind) {
  const auto& wanted = settings(kind);
  if (!wanted) return;
  if (wanted->writers > 0) tokens_.acquire(wanted->writers, request_.timeout_ms);
  if (wanted->freq_khz) cap(*wanted->freq_khz);
}

// A batch that is shorter than the clock needs to follow says nothing of the effect.
void EnergySession::release() {
  if (capped_ && monotonic_ns() - capped_ns_ >= effect_after_ns) {
    control_.measure_effect(report_);
    if (!report_.applied()) facts_.not_applied = report_.not_applied();
  }
  if (capped_) {
    const FrequencyReport restored = control_.release(owner_);
    if (!restored.not_applied().empty()) facts_.not_applied = restored.not_applied();
  }
  capped_ = false;
  tokens_.release();
}

SessionFacts EnergySession::facts() const {
  SessionFacts facts = facts_;
  facts.tokens = tokens_.counters();
  return facts;
}

Result<Configured> configured_session(const std::string& path) {
  const std::string plan_file = environment("PERDURE_ENERGY_PLAN");
  const std::string profile_file = environment("PERDURE_ENERGY_PROFILE");
  Configured configured;
  if (plan_file.empty() && profile_file.empty()) return configured;
  PERDURE_TRY_ASSIGN(auto storage, storage_of(machine(), path));
  SessionRequest request;
  request.path = path;
  PERDURE_TRY(read_timeout(request));
  if (!plan_file.empty()) {
    PERDURE_TRY_ASSIGN(auto plan, read_plan(plan_file));
    request.read = plan.levels.front().read;
    request.write = plan.levels.front().write;
    configured.plan = std::move(plan);
  } else {
    PERDURE_TRY(fill_from_profile(profile_file, storage, request, configured.why_not));
  }
  configured.session = std::make_unique<EnergySession>(machine(), storage, request);
  if (configured.why_not.empty()) configured.why_not = configured.session->why_not();
  return configured;
}

Status report_session(const EnergySession& session, const std::string& path, std::uint32_t rank) {
  const std::string file = environment("PERDURE_ENERGY_REPORT");
  if (file.empty()) return Status::success();
  const SessionFacts facts = session.facts();
  const nlohmann::ordered_json line{{"path", path},
                                    {"rank", rank},
                                    {"device", facts.device},
                                    {"tokens_taken", facts.tokens.taken},
                                    {"went_ahead", facts.tokens.went_ahead},
                                    {"went_ahead_because", facts.tokens.reason},
                                    {"waited_s", static_cast<double>(facts.tokens.waited_ns) / 1e9},
                                    {"capped", facts.capped},
                                    {"not_capped", facts.not_capped},
                                    {"not_applied", facts.not_applied}};
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  PERDURE_TRY_ASSIGN(const auto opened, open_output(file, true));
  // One write at the end of the file: the lines of several ranks don't mix.
  return write_all(opened, file, text);
}

}  // namespace perdure::energy
