// SPDX-License-Identifier: BSD-3-Clause
#include "levels/drains.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "levels/manifest.hpp"

namespace perdure {
namespace {

std::chrono::milliseconds milliseconds_of(std::uint64_t ns) {
  return std::chrono::milliseconds(ns / 1'000'000);
}

}  // namespace

Drains::Drains(const OwnNode& node, const LevelSettings& settings, std::vector<DrainTarget> more)
    : node_(node), settings_(settings) {
  if (!settings.drain.empty()) {
    more.push_back({settings.drain, settings.drain_every.value_or(settings.every),
                    static_cast<std::uint32_t>(settings.drain_keep)});
  }
  for (DrainTarget& target : more) drains_.push_back({std::move(target)});
}

bool Drains::due(std::uint64_t version) const {
  return std::ranges::any_of(
      drains_, [version](const Drain& drain) { return version % drain.target.every == 0; });
}

std::string Drains::place_of(const Drain& drain) const {
  return place_of_pool(drain.target.directory, node_.directory);
}

Status Drains::look(const std::string& job_name) {
  std::vector<DrainTarget> targets;
  targets.reserve(drains_.size());
  for (const Drain& drain : drains_) targets.push_back(drain.target);
  leased_.emplace(node_.group, node_.directory, std::move(targets),
                  milliseconds_of(settings_.lease_ns));
  return leased_->look(job_name);
}

const LeasedDrain& Drains::lease_of(const Drain& drain) const {
  return *std::ranges::find(leased_->drains(), place_of(drain), &LeasedDrain::place);
}

Status Drains::start(const JobRecord& job) {
  PERDURE_TRY(leased_->take_for_pool(job, node_.trust));
  for (const std::string& sentence : leased_->take_sentences()) node_.say(sentence);
  std::erase_if(drains_, [this](const Drain& drain) { return !lease_of(drain).usable; });
  if (!node_.is_led_here()) return Status::success();
  for (Drain& drain : drains_) {
    DrainRequest request;
    request.pool = node_.directory;
    request.place = place_of(drain);
    request.job = job;
    request.lease = lease_of(drain).number;
    request.ranks = node_.ranks();
    request.writes_manifests = node_.group.rank() == 0;
    request.keep = drain.target.keep;
    request.trust = node_.trust;
    request.token = drain.target.token;
    drain.node = std::make_unique<NodeDrain>(std::move(request));
  }
  return Status::success();
}

Status Drains::abandon(const JobRecord& job, VersionId held, std::uint64_t incarnation_max) const {
  if (node_.group.rank() != 0) return Status::success();
  for (const Drain& drain : drains_) {
    PERDURE_TRY(abandon_versions(place_of(drain), lineage_of(job), held, incarnation_max));
  }
  return Status::success();
}

void Drains::add(VersionId id, bool to_all) {
  next_ = Next{id, to_all};
  if (!draining_) begin_next();
}

void Drains::begin_next() {
  if (!next_) return;
  const Next next = *std::exchange(next_, std::nullopt);
  for (Drain& drain : drains_) {
    if (!next.to_all && next.id.version % drain.target.every != 0) continue;
    draining_ = next.id;
    if (drain.node && drain.node->start(next.id)) ++drain.started;
  }
}

bool Drains::have_ended() const {
  return std::ranges::all_of(drains_, [](const Drain& drain) {
    return !drain.node || drain.node->state().ended >= drain.started;
  });
}

void Drains::note_ended() {
  draining_.reset();
  begin_next();
}

std::optional<VersionId> Drains::under_way() const {
  if (draining_ || !next_) return draining_;
  return next_->id;
}

bool Drains::have_work() const {
  return under_way() || std::ranges::any_of(drains_, [](const Drain& drain) {
           return drain.node && !drain.node->wait(std::chrono::milliseconds(0)).ok();
         });
}

std::uint64_t Drains::arrived() const {
  if (drains_.empty() || node_.group.rank() != 0) return 0;
  std::uint64_t newest = UINT64_MAX;
  for (const Drain& drain : drains_) {
    newest = std::min(newest, drain.node->state().completed.value_or(VersionId{}).version);
  }
  return newest;
}

Status Drains::wait(std::uint64_t start_ns) {
  Status late;
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const std::uint64_t waited_ns = std::min(settings_.patience_ns, monotonic_ns() - start_ns);
    const Status waited = drain.node->wait(milliseconds_of(settings_.patience_ns - waited_ns),
                                           milliseconds_of(waited_ns));
    if (!waited.ok()) late = waited;
  }
  return late;
}

Status Drains::new_failure() {
  Status failure;
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const DrainState state = drain.node->state();
    if (std::exchange(drain.reported, state.failed) != state.failed) failure = state.failure;
  }
  return failure;
}

void Drains::start_last(std::uint64_t start_ns) {
  while (next_ && !have_ended() && monotonic_ns() - start_ns <= settings_.patience_ns) {
    std::this_thread::sleep_for(poll_time);
  }
  begin_next();
}

void Drains::stop(std::uint64_t start_ns, std::uint64_t patience_ns) {
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const std::uint64_t waited_ns = std::min(patience_ns, monotonic_ns() - start_ns);
    const Status stopped =
        drain.node->stop(milliseconds_of(patience_ns - waited_ns), milliseconds_of(waited_ns));
    const Status failure = stopped.ok() ? drain.node->state().failure : stopped;
    if (failure.ok()) continue;
    std::fprintf(stderr, "perdure: %s: %s: %s\n", node_.directory.c_str(),
                 drain.target.directory.c_str(), failure.message().c_str());
  }
}

}  // namespace perdure
