// SPDX-License-Identifier: BSD-3-Clause
#include "levels/levels.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/agreement.hpp"
#include "base/clock.hpp"

namespace perdure {
namespace {

constexpr const char* not_given = "a version could not be given to other nodes";

enum Word { whole_word, failed_word, draining_word, word_count };

}  // namespace

std::uint64_t ImageIncarnations::free_for(const Catalogue& catalogue, std::uint64_t own) const {
  if (catalogue.incarnation == own) return taken_last_ == id_of(catalogue) ? 0 : own;
  const std::uint64_t next = std::max(own - protections_max, protected_as_ + 1);
  return next < own ? next : 0;
}

Result<std::unique_ptr<Levels>> Levels::create(Group& group, const std::string& directory,
                                               const LevelSettings& settings, Trust trust,
                                               std::vector<DrainTarget> more) {
  PERDURE_TRY_ASSIGN(auto nodes, group.nodes());
  std::unique_ptr<Levels> levels(
      new Levels({group, directory, trust, std::move(nodes)}, settings, std::move(more)));
  if (levels->node_.is_alone() && !settings.any() && !levels->drains_.any()) {
    return std::unique_ptr<Levels>();
  }
  PERDURE_TRY(agree(group, levels->replication_.choose_group(settings)));
  return levels;
}

LevelCounters Levels::counters() const {
  LevelCounters all = counters_;
  all.waited_ns += replication_.waited_ns();
  return all;
}

// Waiting for levels.

bool Levels::is_under_way() const {
  return active_ && (agreed_.taking || drains_.have_work());
}

// Of redundancy, or of a drain since this was asked last.
Status Levels::new_failure() {
  const Status stopped = replication_.take_stop();
  const Status failure = drains_.new_failure();
  return failure.ok() ? stopped : failure;
}

// Each rank waits by itself, and then they agree on what is left; levels.K1 holds, as after a
// commit.
Result<std::uint64_t> Levels::wait() {
  Group& group = node_.group;
  if (!active_) {
    PERDURE_TRY(agree(group, new_failure()));
    return std::uint64_t{0};
  }
  const std::uint64_t start_ns = monotonic_ns();
  for (;;) {
    replication_.finish(settings_.patience_ns);
    const std::uint64_t finished_ns = monotonic_ns();
    const Status late = drains_.wait(start_ns);
    const auto here = words();
    const bool over = monotonic_ns() - start_ns > settings_.patience_ns;
    std::uint64_t agreed[word_count + 2] = {here[0], here[1], here[2], over ? 1U : 0U,
                                            drains_.arrived()};
    static_assert(word_count == 3);
    PERDURE_TRY(agree_max(group, Status::success(), agreed));
    std::copy_n(agreed, word_count, words_);
    note_agreed_words();
    counters_.waited_ns += monotonic_ns() - finished_ns;
    const bool more = agreed_.taking || drains_.under_way();
    if (more && agreed[word_count] == 0) continue;
    Status failure = new_failure();
    if (failure.ok() && !late.ok()) failure = late;
    if (failure.ok() && more) failure = still_under_way();
    PERDURE_TRY(agree(group, failure));
    return drains_.any() ? agreed[word_count + 1] : agreed_.whole.value_or(VersionId{}).version;
  }
}

Status Levels::still_under_way() const {
  const VersionId id = agreed_.taking ? *agreed_.taking : *drains_.under_way();
  return Status(Code::busy, "version ", id.version, " is still on its way to other levels after ",
                settings_.patience_ns / 1'000'000'000,
                " s; wait again, or give PERDURE_LEVELS a larger patience");
}

// Taking a version.

bool Levels::due(std::uint64_t version) const {
  if (take_next_) return true;
  if (!replication_.members().empty() && version % settings_.every == 0) return true;
  return drains_.due(version);
}

void Levels::take(const Catalogue& catalogue, bool to_all) {
  ++counters_.taken;
  const VersionId id = id_of(catalogue);
  std::vector<VersionId> needed;
  for (const auto& each : {agreed_.whole, drains_.draining(), agreed_.source}) {
    if (each) needed.push_back(*each);
  }
  agreed_.taking = id;
  agreed_.to_all = to_all;
  incarnations_.note_taken(id);
  auto image =
      Image::of(pool_->device(), pool_->geometry(), catalogue, joined_.shares(catalogue.version));
  replication_.take({SealedKind::image, files_.job(), node_.group.rank(), id}, std::move(image),
                    files_.free_image(needed), files_.free_guard(needed));
}

std::span<std::uint64_t> Levels::words() {
  const Phase now = replication_.phase();
  const auto& newest = now == Phase::whole && agreed_.taking ? agreed_.taking : agreed_.whole;
  words_[whole_word] = ~newest.value_or(VersionId{}).version;
  words_[failed_word] = now == Phase::failed ? 1 : 0;
  words_[draining_word] = drains_.have_ended() ? 0 : 1;
  return {words_, word_count};
}

// levels.K1: the same on all ranks.
void Levels::note_agreed_words() {
  if (agreed_.taking && words_[failed_word] != 0) {
    end_taking(false);
    stop_redundancy(not_given);
  }
  if (words_[draining_word] == 0) drains_.note_ended();
  if (agreed_.taking && ~words_[whole_word] >= agreed_.taking->version) end_taking(true);
}

void Levels::committed(const Catalogue& catalogue) {
  if (!active_) return;
  if (const auto missing = joined_.stop_waiting(catalogue.version); !missing.empty()) {
    node_.say(missing);
  }
  note_agreed_words();
  if (due(catalogue.version)) {
    if (agreed_.taking && take_next_) {
      finish_together();
      note_agreed_words();
      end_taking(false);
    }
    if (agreed_.taking) {
      ++counters_.skipped;
    } else {
      take(catalogue, std::exchange(take_next_, false));
    }
  }
  progress();
}

void Levels::end_taking(bool whole) {
  if (!agreed_.taking) return;
  replication_.end();
  if (whole) {
    agreed_.whole = agreed_.taking;
    agreed_.source.reset();
    ++counters_.whole;
    drains_.add(*agreed_.whole, agreed_.to_all);
  }
  agreed_.taking.reset();
}

// [collective] All ranks have come here, and wait for one another: so what one of them decided by
// its own clock, all do. levels.K1.
void Levels::finish_together() {
  replication_.finish(settings_.patience_ns);
  if (!replication_.members().empty()) replication_.give_up(settings_.patience_ns);
  (void)agree_max(node_.group, Status::success(), words());  // who can't agree can't commit either
}

void Levels::end_what_is_under_way() {
  if (!agreed_.taking) return;
  finish_together();
  end_taking(false);
  if (words_[failed_word] != 0) stop_redundancy(not_given);
}

void Levels::stop_redundancy(const std::string& why) {
  replication_.stop(why);
  if (!drains_.any()) active_ = false;
}

// What is committed with the pool.

// levels.K5. Without it a version would bring back the pool and not the file.
Result<bool> Levels::admit(const std::string& name, const std::string& obstacle) {
  if (obstacle.empty()) return true;
  if (settings_.any() || drains_.any()) {
    return Status(Code::unsupported, name, " can't be kept on the levels of this pool: ", obstacle,
                  "; or open it without perdure_cache_pool, or set PERDURE_LEVELS=redundancy=off");
  }
  end_what_is_under_way();
  if (!replication_.members().empty()) {
    node_.say("no redundancy: " + name + " is committed with this pool, and " + obstacle);
  }
  replication_.leave_group();
  active_ = false;
  return false;
}

// Whether the version that is whole on all ranks has it, as this rank's image says.
bool Levels::whole_has(const std::string& name) const {
  const LevelFile* const image = agreed_.whole ? files_.image_of(*agreed_.whole) : nullptr;
  if (image == nullptr) return false;
  const auto contents = parse_image(image->payload());
  return contents.ok() && contents.value().shares.contains(name);
}

// Where a version without it is the newest that is whole, a lost node would be a lost file.
Status Levels::joined(Companion& companion, const Catalogue& newest) {
  if (!active_) return Status::success();
  end_what_is_under_way();
  joined_.join(companion);
  const std::string name = companion.share().name;
  PERDURE_TRY_ASSIGN(const bool unprotected,
                     is_on_any(node_.group, joined_.is_unprotected() || !whole_has(name)));
  joined_.set_unprotected(unprotected);
  if (!unprotected || joined_.are_awaited() || newest.version == 0) return Status::success();
  const std::uint64_t incarnation = free_incarnation(newest);
  if (incarnation == 0) {
    node_.say(name + " is kept from the next version on that is due");
    return Status::success();
  }
  if (!agreed_.whole) PERDURE_TRY(keep_sources());
  PERDURE_TRY(protect(newest, incarnation));
  joined_.set_unprotected(false);
  agreed_.source.reset();
  return Status::success();
}

// What is being copied of it must be done; what was copied stays.
void Levels::leaving(Companion& companion) {
  if (joined_.leave(companion)) replication_.release(UINT64_MAX);
}

Status Levels::restoring(const Catalogue& target, std::uint64_t incarnation) {
  PERDURE_TRY(agree(node_.group, drains_.leased().problem()));  // it could not be given up there
  end_what_is_under_way();
  PERDURE_TRY(give_up_newer(target.version));
  return drains_.abandon(files_.job(), id_of(target), incarnation);
}

Status Levels::restored(const Catalogue& target) {
  return active_ ? protect(target, free_incarnation(target)) : Status::success();
}

// The end.

namespace {

// Another rank that comes later still completes the exchange, and then words are stored to.
struct LastExchange {
  std::uint64_t words[word_count] = {};
  std::unique_ptr<Transfer> transfer;
};

void keep_for_good(std::unique_ptr<LastExchange> exchange) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<LastExchange>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(exchange));
}

}  // namespace

// [collective] As far as patience goes: whether the version under way is whole on all ranks, as no
// later commit says. Each rank waits by its own clock, as another one may never come. So one may
// leave without the answer that another gets. That loses nothing: no version is taken any more, so
// levels.K1 has nothing left to decide; image and guard of each rank are whole or not whatever is
// agreed here, and a restart asks the files. What an answer leads to is the drain of this node's
// images. A drained version counts from its manifest on, which rank 0 writes when the images of all
// nodes are there (manifest.hpp, levels.M1): that is the one decision. False: no answer came.
bool Levels::agree_at_the_end(std::uint64_t start_ns) {
  auto last = std::make_unique<LastExchange>();
  std::ranges::copy(words(), last->words);
  auto started = node_.group.start_all_max(last->words);
  if (!started.ok()) return false;
  last->transfer = started.take();
  for (;;) {
    const auto done = last->transfer->done();
    if (!done.ok()) return false;
    if (done.value()) break;
    if (monotonic_ns() - start_ns > settings_.patience_ns) {
      keep_for_good(std::move(last));
      return false;
    }
    std::this_thread::sleep_for(poll_time);
  }
  end_taking(~last->words[whole_word] >= agreed_.taking->version);
  return true;
}

void Levels::close(bool together) {
  if (!active_) return;
  active_ = false;
  const std::uint64_t start_ns = monotonic_ns();
  replication_.finish(settings_.patience_ns);
  const std::uint64_t finished_ns = monotonic_ns();
  if (agreed_.taking) {
    const std::string version = "version " + std::to_string(agreed_.taking->version);
    const bool whole = replication_.phase() == Phase::whole;
    const bool told = together && agree_at_the_end(start_ns);
    if (!whole) {
      node_.say_here("the last version that was due is only here");
      replication_.give_up(settings_.patience_ns);
      replication_.abandon();
    } else if (together && !told) {
      node_.say_here(version +
                     ", the last that was due, is not drained from here: other ranks did " +
                     "not say in time that they have it; it is in the pool, and `perdure pool " +
                     "drain` brings it to a drain");
    }
  }
  drains_.start_last(start_ns);
  drains_.stop(start_ns, settings_.patience_ns);
  drains_.leased().give_back(std::chrono::milliseconds(settings_.patience_ns / 1'000'000));
  counters_.waited_ns += monotonic_ns() - finished_ns;
  if (!replication_.reads_files_for_good()) files_.close();
}

void Levels::end_alone(std::chrono::milliseconds patience) {
  if (!is_under_way()) return;
  const auto patience_ns = static_cast<std::uint64_t>(patience.count()) * 1'000'000;
  drains_.stop(monotonic_ns(), std::min(patience_ns, settings_.patience_ns));
  if (!agreed_.taking && !drains_.waits_for_another()) return;
  node_.say_here(
      "the process ended without closing the pool: its newest versions may not have reached their "
      "levels; they are in the pool, and `perdure pool drain` brings them to a drain");
}

}  // namespace perdure
