// SPDX-License-Identifier: BSD-3-Clause
#include "levels/levels.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "levels/census.hpp"
#include "levels/encode.hpp"
#include "levels/manifest.hpp"
#include "levels/sealed_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t slice_bytes = std::uint64_t{8} << 20U;
// A slice takes at most a twentieth of the time since the one before, and no longer than 8 MB need
// on a slow network. So levels cost a program that lends them no thread 5 % of its time at most.
constexpr std::uint64_t slice_share = 20;
constexpr std::uint64_t slice_ns_max = 16'000'000;
constexpr std::uint64_t slice_ns_min = 100'000;
constexpr auto poll_time = std::chrono::microseconds(50);

enum Word { whole_word, failed_word, draining_word, word_count };

}  // namespace

Levels::Levels(Group& group, std::string directory, const LevelSettings& settings, Trust trust)
    : group_(group),
      directory_(std::move(directory)),
      settings_(settings),
      trust_(trust),
      beside_(group.may_be_used_beside()) {}

Result<std::unique_ptr<Levels>> Levels::create(Group& group, const std::string& directory,
                                               const LevelSettings& settings, Trust trust,
                                               std::vector<DrainTarget> more) {
  std::unique_ptr<Levels> levels(new Levels(group, directory, settings, trust));
  if (!settings.drain.empty()) {
    more.push_back({settings.drain, settings.drain_every.value_or(settings.every),
                    static_cast<std::uint32_t>(settings.drain_keep)});
  }
  for (DrainTarget& target : more) levels->drains_.push_back({std::move(target)});
  PERDURE_TRY_ASSIGN(levels->nodes_, group.nodes());
  const auto& nodes = levels->nodes_;
  const bool several = std::ranges::any_of(nodes, [&](auto n) { return n != nodes[0]; });
  if (!several && !settings.any() && levels->drains_.empty()) return std::unique_ptr<Levels>();
  PERDURE_TRY(agree(group, levels->choose_groups()));
  return levels;
}

Levels::~Levels() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Levels::say(const std::string& sentence) const {
  if (group_.rank() != 0) return;
  std::fprintf(stderr, "perdure: %s: %s\n", directory_.c_str(), sentence.c_str());
}

Status Levels::choose_groups() {
  const std::uint32_t nodes = 1 + *std::ranges::max_element(nodes_);
  PERDURE_TRY_ASSIGN(const auto scheme, settings_.scheme(nodes));
  if (!scheme) return Status::success();
  auto groups = settings_.groups.empty() ? failure_groups(nodes_, *scheme)
                                         : read_groups(settings_.groups, group_.ranks());
  if (!groups.ok() && settings_.redundancy) return groups.status();
  if (!groups.ok()) {
    say("no redundancy between nodes: " + groups.status().message());
    return Status::success();
  }
  if (!can_encode(scheme->losses)) return encoding_refused();
  losses_ = scheme->losses;
  for (const auto& group : groups.value()) {
    if (std::ranges::find(group, group_.rank()) != group.end()) members_ = group;
  }
  return Status::success();
}

// Draining.

// [collective] Of this pool, whose files are locked. A drain that can't be used is not one.
Status Levels::take_leases() {
  PERDURE_TRY(leased_->take_for_pool(job_, trust_));
  for (const std::string& sentence : leased_->take_sentences()) say(sentence);
  std::erase_if(drains_, [this](const Drain& drain) { return !lease_of(drain).usable; });
  return Status::success();
}

const LeasedDrain& Levels::lease_of(const Drain& drain) const {
  return *std::ranges::find(leased_->drains(), place_of_pool(drain.target.directory, directory_),
                            &LeasedDrain::place);
}

// The lowest rank of a node drains for all of it.
void Levels::start_drains() {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (nodes_[rank] == nodes_[group_.rank()]) ranks.push_back(rank);
  }
  for (Drain& drain : drains_) {
    if (ranks.front() != group_.rank()) continue;
    DrainRequest request;
    request.pool = directory_;
    request.place = place_of_pool(drain.target.directory, directory_);
    request.job = job_;
    request.lease = lease_of(drain).number;
    request.ranks = ranks;
    request.writes_manifests = group_.rank() == 0;
    request.keep = drain.target.keep;
    request.trust = trust_;
    request.token = drain.target.token;
    drain.node = std::make_unique<NodeDrain>(std::move(request));
  }
}

// Of this node: the images of the version are no longer needed.
bool Levels::drains_ended() const {
  return std::ranges::all_of(drains_, [](const Drain& drain) {
    return !drain.node || drain.node->state().ended >= drain.started;
  });
}

// The newest version that all ranks have whole. One at a time, so that its images can be kept
// (levels.K2).
void Levels::drain_next() {
  if (!drain_next_) return;
  const VersionId id = *drain_next_;
  drain_next_.reset();
  for (Drain& drain : drains_) {
    if (!take_last_ && id.version % drain.target.every != 0) continue;
    draining_ = id;
    if (drain.node && drain.node->start(id)) ++drain.started;
  }
}

// All of them within the patience, of which some is used up.
void Levels::stop_drains(std::uint64_t start_ns, std::uint64_t patience_ns) {
  const auto ms = [](std::uint64_t ns) { return std::chrono::milliseconds(ns / 1'000'000); };
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const std::uint64_t waited_ns = std::min(patience_ns, monotonic_ns() - start_ns);
    const Status stopped = drain.node->stop(ms(patience_ns - waited_ns), ms(waited_ns));
    const Status failure = stopped.ok() ? drain.node->state().failure : stopped;
    if (failure.ok()) continue;
    std::fprintf(stderr, "perdure: %s: %s: %s\n", directory_.c_str(),
                 drain.target.directory.c_str(), failure.message().c_str());
  }
}

// Waiting for levels.

bool Levels::is_under_way() const {
  if (!active_) return false;
  return taking_ || draining_ || drain_next_ ||
         std::ranges::any_of(drains_, [](const Drain& drain) {
           return drain.node && !drain.node->wait(std::chrono::milliseconds(0)).ok();
         });
}

Status Levels::wait_for_drains(std::uint64_t start_ns) {
  Status late;
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const std::uint64_t waited_ns = monotonic_ns() - start_ns;
    const std::uint64_t left_ns =
        settings_.patience_ns - std::min(settings_.patience_ns, waited_ns);
    const auto left = std::chrono::milliseconds(left_ns / 1'000'000);
    const auto before = std::chrono::milliseconds((settings_.patience_ns - left_ns) / 1'000'000);
    const Status waited = drain.node->wait(left, before);
    if (!waited.ok()) late = waited;
  }
  return late;
}

// Of redundancy, or of a drain since this was asked last.
Status Levels::new_failure() {
  Status failure = std::exchange(stopped_, Status::success());
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const DrainState state = drain.node->state();
    if (std::exchange(drain.reported, state.failed) != state.failed) failure = state.failure;
  }
  return failure;
}

// Of rank 0, which writes the manifests: the newest version that is in all directories.
std::uint64_t Levels::drained() const {
  std::uint64_t newest = drains_.empty() || group_.rank() != 0 ? 0 : UINT64_MAX;
  for (const Drain& drain : drains_) {
    if (group_.rank() != 0) continue;
    newest = std::min(newest, drain.node->state().completed.value_or(VersionId{}).version);
  }
  return newest;
}

// Each rank waits by itself, and then they agree on what is left; levels.K1 holds, as after a
// commit.
Result<std::uint64_t> Levels::wait() {
  if (!active_) {
    PERDURE_TRY(agree(group_, new_failure()));
    return std::uint64_t{0};
  }
  const std::uint64_t start_ns = monotonic_ns();
  for (;;) {
    finish_under_way();
    const Status late = wait_for_drains(start_ns);
    const auto here = words();
    const bool over = monotonic_ns() - start_ns > settings_.patience_ns;
    std::uint64_t agreed[word_count + 2] = {here[0], here[1], here[2], over ? 1U : 0U, drained()};
    static_assert(word_count == 3);
    PERDURE_TRY(agree_max(group_, Status::success(), agreed));
    std::copy_n(agreed, word_count, words_);
    note_agreed_words();
    const bool more = taking_ || draining_ || drain_next_;
    if (more && agreed[word_count] == 0) continue;
    counters_.waited_ns += monotonic_ns() - start_ns;
    Status failure = new_failure();
    if (failure.ok() && !late.ok()) failure = late;
    if (failure.ok() && more) failure = still_under_way();
    PERDURE_TRY(agree(group_, failure));
    if (!drains_.empty()) return agreed[word_count + 1];
    return whole_.value_or(VersionId{}).version;
  }
}

Status Levels::still_under_way() const {
  const VersionId id = taking_ ? *taking_ : draining_ ? *draining_ : *drain_next_;
  return Status(Code::busy, "version ", id.version, " is still on its way to other levels after ",
                settings_.patience_ns / 1'000'000'000,
                " s; wait again, or give PERDURE_LEVELS a larger patience");
}

// Taking a version.

bool Levels::due(std::uint64_t version) const {
  if (take_next_) return true;
  if (!members_.empty() && version % settings_.every == 0) return true;
  return std::ranges::any_of(
      drains_, [version](const Drain& drain) { return version % drain.target.every == 0; });
}

// levels.K2. Another file that holds a needed version as well is not needed.
LevelFile* Levels::free_file(std::vector<LevelFile>& files) const {
  std::vector<VersionId> needed;
  for (const auto& id : {whole_, draining_, source_}) {
    if (id) needed.push_back(*id);
  }
  for (LevelFile& file : files) {
    const auto it = file.whole() ? std::ranges::find(needed, file.header().id) : needed.end();
    if (it == needed.end()) return &file;
    *it = VersionId{};
  }
  return nullptr;
}

void Levels::take(const Catalogue& catalogue) {
  ++counters_.taken;
  const VersionId id = id_of(catalogue);
  taking_ = taken_last_ = id;
  std::vector<ImageShare> shares;
  shares.reserve(companions_.size());
  for (Companion* companion : companions_) {
    shares.push_back({companion->share(), [companion, version = catalogue.version](
                                              std::uint64_t offset, std::span<std::byte> out) {
                        return companion->read_share(version, offset, out);
                      }});
  }
  auto image = Image::of(pool_->device(), pool_->geometry(), catalogue, std::move(shares));
  const std::lock_guard<std::mutex> lock(mutex_);
  under_way_ = {id, free_file(images_), free_file(guards_), 0, std::nullopt, nullptr};
  if (image.ok() && !members_.empty()) {
    under_way_.guard_bytes = guard_bytes(members_, losses_, image.value().size_bytes());
  }
  if (image.ok()) under_way_.contents = image.take();
  failure_ = image.status();
  phase_ = image.ok() ? Phase::copying : Phase::failed;
  changed_.notify_all();
}

Levels::Phase Levels::phase() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

void Levels::set_phase(Phase phase, const Status& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = phase;
  failure_ = failure;
  changed_.notify_all();
}

// The thread.
void Levels::work() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || phase_ == Phase::copying; });
      if (stopping_) return;
    }
    if (const Status copied = copy(); !copied.ok()) {
      set_phase(Phase::failed, copied);
      continue;
    }
    set_phase(members_.empty() ? Phase::whole : Phase::copied);
    if (!beside_ || members_.empty()) continue;
    while (advance(slice_bytes)) {
      std::this_thread::sleep_for(poll_time);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
  }
}

Status Levels::copy() {
  const Image& image = *under_way_.contents;
  LevelFile& file = *under_way_.image;
  PERDURE_TRY(file.begin(image.size_bytes()));
  // New pages take longer than all else, and the guard is begun by the program's thread.
  if (under_way_.guard_bytes != 0) PERDURE_TRY(under_way_.guard->reserve(under_way_.guard_bytes));
  std::vector<std::byte> gathered;
  for (std::uint64_t at = 0; at < image.size_bytes(); at += sealed_chunk_bytes) {
    const std::uint64_t count = std::min(sealed_chunk_bytes, image.size_bytes() - at);
    auto chunk = image.in_place(at, count);
    if (chunk.empty()) {
      gathered.resize(count);
      PERDURE_TRY(image.read(at, gathered));
      chunk = gathered;
    }
    file.write(at, chunk);
  }
  return file.complete({SealedKind::image, job_, group_.rank(), under_way_.id, image.size_bytes()});
}

// Of the thread that exchanges. False: it has ended.
bool Levels::advance(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  const Phase now = phase();
  if (now != Phase::copied && now != Phase::exchanging) return false;
  if (now == Phase::copied) {
    auto started = Exchange::start(group_, members_, losses_, *under_way_.image, *under_way_.guard);
    if (!started.ok()) {
      set_phase(Phase::failed, started.status());
      return false;
    }
    under_way_.exchange = started.take();
    set_phase(Phase::exchanging);
  }
  const auto done = under_way_.exchange->advance(bytes);
  if (done.ok() && !done.value()) return true;
  set_phase(done.ok() ? Phase::whole : Phase::failed, done.status());
  return false;
}

void Levels::slice() {
  if (beside_) return;
  const std::uint64_t start_ns = monotonic_ns();
  const std::uint64_t share_ns = (start_ns - sliced_ns_) / slice_share;
  const std::uint64_t limit_ns = std::clamp(share_ns, slice_ns_min, slice_ns_max);
  while (advance(slice_bytes) && monotonic_ns() - start_ns < limit_ns) {
  }
  sliced_ns_ = monotonic_ns();
  counters_.waited_ns += sliced_ns_ - start_ns;
}

void Levels::release(std::uint64_t version) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (phase_ != Phase::copying || under_way_.id.version > version) return;
  const std::uint64_t start_ns = monotonic_ns();
  changed_.wait(lock, [this] { return phase_ != Phase::copying; });
  counters_.waited_ns += monotonic_ns() - start_ns;
}

std::span<std::uint64_t> Levels::words() {
  const Phase now = phase();
  const VersionId here = now == Phase::whole && taking_ ? *taking_ : whole_.value_or(VersionId{});
  words_[whole_word] = ~here.version;
  words_[failed_word] = now == Phase::failed ? 1 : 0;
  words_[draining_word] = drains_ended() ? 0 : 1;
  return {words_, word_count};
}

// levels.K1: the same on all ranks.
void Levels::note_agreed_words() {
  if (taking_ && words_[failed_word] != 0) {
    end_taking(false);
    stop_redundancy("a version could not be given to other nodes");
  }
  if (words_[draining_word] == 0) {
    draining_.reset();
    drain_next();
  }
  if (taking_ && ~words_[whole_word] >= taking_->version) end_taking(true);
}

void Levels::committed(const Catalogue& catalogue) {
  if (!active_) return;
  if (!expected_.empty()) {
    say("version " + std::to_string(catalogue.version) + " was committed without " +
        *expected_.begin() +
        ", which was committed with this pool before; open it before the first commit after a "
        "restart");
    expected_.clear();
  }
  note_agreed_words();
  if (due(catalogue.version)) {
    if (taking_ && take_next_) {
      const std::uint64_t start_ns = monotonic_ns();
      finish_under_way();
      agree_at_the_end(start_ns);
    }
    if (taking_) {
      ++counters_.skipped;
    } else {
      take(catalogue);
      take_last_ = take_next_;
      take_next_ = false;
    }
  }
  if (taking_) slice();
}

void Levels::end_taking(bool whole) {
  if (!taking_) return;
  release(UINT64_MAX);  // another rank may have failed while this one's thread still copies
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  set_phase(Phase::idle, failure_);
  if (whole) {
    whole_ = taking_;
    source_.reset();
    ++counters_.whole;
    drain_next_ = whole_;
    if (!draining_) drain_next();
  }
  taking_.reset();
}

// levels.K4. A failure is reported by the rank that has it.
void Levels::stop_redundancy(const std::string& why) {
  if (!failure_.ok()) {
    std::fprintf(stderr, "perdure: %s: rank %u: %s\n", directory_.c_str(), group_.rank(),
                 failure_.message().c_str());
  }
  stopped_ =
      Status(Code::io_error, why, "; there is no redundancy between nodes until the next restart");
  say(stopped_.message());
  // Messages may still be written to its buffers.
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  abandoned_.push_back(std::move(under_way_.exchange));
  members_.clear();
  if (drains_.empty()) active_ = false;
}

// [collective] As far as patience goes.
void Levels::finish_under_way() {
  const std::uint64_t start_ns = monotonic_ns();
  const auto over = [&] {
    const Phase now = phase();
    return now == Phase::whole || now == Phase::failed || now == Phase::idle ||
           monotonic_ns() - start_ns > settings_.patience_ns;
  };
  while (taking_ && !over()) {
    if (beside_ || !advance(slice_bytes)) std::this_thread::sleep_for(poll_time);
  }
  counters_.waited_ns += monotonic_ns() - start_ns;
}

// What is committed with the pool.

// levels.K5. Without it a version would bring back the pool and not the file.
Result<bool> Levels::admit(const std::string& name, const std::string& obstacle) {
  if (obstacle.empty()) return true;
  if (settings_.any() || !drains_.empty()) {
    return Status(Code::unsupported, name, " can't be kept on the levels of this pool: ", obstacle,
                  "; or open it without perdure_cache_pool, or set PERDURE_LEVELS=redundancy=off");
  }
  finish_under_way();
  end_taking(false);
  if (!members_.empty()) {
    say("no redundancy: " + name + " is committed with this pool, and " + obstacle);
  }
  members_.clear();
  active_ = false;
  return false;
}

// Whether the version that is whole on all ranks has it, as this rank's image says.
bool Levels::whole_has(const std::string& name) const {
  for (const LevelFile& image : images_) {
    if (!whole_ || !image.whole() || image.header().id != *whole_) continue;
    const auto contents = parse_image(image.payload());
    if (contents.ok() && contents.value().shares.contains(name)) return true;
  }
  return false;
}

// Where a version without it is the newest that is whole, a lost node would be a lost file.
Status Levels::joined(Companion& companion, const Catalogue& newest) {
  if (!active_) return Status::success();
  finish_under_way();
  end_taking(false);
  companions_.push_back(&companion);
  const std::string name = companion.share().name;
  expected_.erase(name);
  std::uint64_t words[] = {unprotected_ || !whole_has(name) ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  unprotected_ = words[0] != 0;
  if (!unprotected_ || !expected_.empty() || newest.version == 0) return Status::success();
  const std::uint64_t incarnation = free_incarnation(newest);
  if (incarnation == 0) {
    say(name + " is kept from the next version on that is due");
    return Status::success();
  }
  if (!whole_) PERDURE_TRY(keep_sources());
  PERDURE_TRY(protect(newest, incarnation));
  unprotected_ = false;
  source_.reset();
  return Status::success();
}

// What is being copied of it must be done; what was copied stays.
void Levels::leaving(Companion& companion) {
  if (std::erase(companions_, &companion) == 0) return;
  release(UINT64_MAX);
}

Result<std::optional<HeldShare>> Levels::held(const std::string& name, std::uint64_t version) {
  if (!behind_ || behind_->version != version) {
    return Status(Code::not_found, "the images of version ", version, " of ", directory_,
                  ", which have ", name, ", are not there any more");
  }
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(held_->payload()));
  const auto found = contents.shares.find(name);
  if (found == contents.shares.end()) return std::optional<HeldShare>();
  return std::optional<HeldShare>(found->second);
}

Status Levels::restoring(const Catalogue& target, std::uint64_t incarnation) {
  PERDURE_TRY(agree(group_, leased_->problem()));  // what it has could not be given up
  finish_under_way();
  end_taking(false);
  PERDURE_TRY(give_up_newer(target.version));
  return abandon_drained(id_of(target), incarnation);
}

Status Levels::restored(const Catalogue& target) {
  return active_ ? protect(target, free_incarnation(target)) : Status::success();
}

// [collective] As far as patience goes: whether the version under way is whole on all ranks, as no
// later commit says.
void Levels::agree_at_the_end(std::uint64_t start_ns) {
  (void)words();
  const auto agreed = group_.start_all_max({words_, word_count});
  while (agreed.ok() && monotonic_ns() - start_ns <= settings_.patience_ns) {
    const auto done = agreed.value()->done();
    if (!done.ok()) return;
    if (done.value()) return end_taking(~words_[whole_word] >= taking_->version);
    std::this_thread::sleep_for(poll_time);
  }
}

// As far as patience goes: what is whole is drained too, once the one before it is.
void Levels::drain_last(std::uint64_t start_ns) {
  while (drain_next_ && !drains_ended() && monotonic_ns() - start_ns <= settings_.patience_ns) {
    std::this_thread::sleep_for(poll_time);
  }
  drain_next();
}

void Levels::close(bool together) {
  if (!active_) return;
  active_ = false;
  const std::uint64_t start_ns = monotonic_ns();
  finish_under_way();
  if (taking_) {
    const bool whole = phase() == Phase::whole;
    if (together) agree_at_the_end(start_ns);
    if (!whole) {
      std::fprintf(stderr, "perdure: %s: rank %u: the last version that was due is only here\n",
                   directory_.c_str(), group_.rank());
    }
  }
  drain_last(start_ns);
  stop_drains(start_ns, settings_.patience_ns);
  leased_->give_back(std::chrono::milliseconds(settings_.patience_ns / 1'000'000));
  counters_.waited_ns += monotonic_ns() - start_ns;
  if (!abandoned_.empty()) return;  // levels.K4
  images_.clear();
  guards_.clear();
}

void Levels::end_alone(std::chrono::milliseconds patience) {
  if (!is_under_way()) return;
  const auto patience_ns = static_cast<std::uint64_t>(patience.count()) * 1'000'000;
  stop_drains(monotonic_ns(), std::min(patience_ns, settings_.patience_ns));
  if (!taking_ && !drain_next_) return;
  std::fprintf(
      stderr,
      "perdure: %s: rank %u: the process ended without closing the pool: its newest "
      "versions may not have reached their levels; they are in the pool, and `perdure pool "
      "drain` brings them to a drain\n",
      directory_.c_str(), group_.rank());
}

}  // namespace perdure
