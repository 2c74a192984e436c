#include "levels/levels.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "levels/bring_back.hpp"
#include "levels/level_file_format.hpp"
#include "levels/manifest.hpp"

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

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

// Code of a refusal after which other levels are asked.
bool lost_something(Code code) {
  return code == Code::damaged || code == Code::not_found || code == Code::foreign;
}

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
  const bool several =
      std::any_of(nodes.begin(), nodes.end(), [&](auto n) { return n != nodes[0]; });
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
  const std::uint32_t nodes = 1 + *std::max_element(nodes_.begin(), nodes_.end());
  PERDURE_TRY_ASSIGN(const auto scheme, settings_.scheme(nodes));
  if (!scheme) return Status::success();
  auto groups = settings_.groups.empty() ? failure_groups(nodes_, *scheme)
                                         : read_groups(settings_.groups, group_.ranks());
  if (!groups.ok() && settings_.redundancy) return groups.status();
  if (!groups.ok()) {
    say("no redundancy between nodes: " + groups.status().message());
    return Status::success();
  }
  losses_ = scheme->losses;
  for (const auto& group : groups.value()) {
    if (std::find(group.begin(), group.end(), group_.rank()) != group.end()) members_ = group;
  }
  return Status::success();
}

// Opening and restarting.

Result<std::unique_ptr<Pool>> Levels::open(const OpenOptions& options) {
  BringBack back(group_, directory_, trust_);
  PERDURE_TRY_ASSIGN(const bool complete, back.complete());
  if (!options.discard) {
    std::string told;
    if (complete) {
      // Either all is there, or nobody here knows of a pool.
      PERDURE_TRY_ASSIGN(const bool here, back.exists());
      if (!here) {
        PERDURE_TRY_ASSIGN(told, use_drain(options, {}));
      }
    } else {
      PERDURE_TRY_ASSIGN(const Census census, take_census(group_, directory_, trust_));
      const bool ours = census.job.ranks == group_.ranks() &&
                        (options.any_job || census.job.job_name == options.job_name);
      if (ours) {  // otherwise open_pool() says what is wrong
        auto moved = back.move_files(census);
        if (moved.status().code() == Code::not_found) moved = bring_back(options, census);
        PERDURE_TRY_ASSIGN(told, std::move(moved));
      }
    }
    if (!told.empty()) say(told);
  }
  auto pool = open_pool(directory_, group_, options);
  if (!pool.ok()) pool = reopen(options, pool.status());
  PERDURE_TRY(pool.status());
  PERDURE_TRY(start(*pool.value()));
  return pool;
}

std::string Levels::place(const DrainTarget& target) const {
  return place_of_pool(target.directory, directory_);
}

// [collective] The newest version counts; of equal ones that of the nodes.
Result<std::string> Levels::bring_back(const OpenOptions& options, const Census& census) {
  const auto plan = plan_recovery(census);
  PERDURE_TRY_ASSIGN(const std::string drained, use_drain(options, plan ? plan->id : VersionId{}));
  if (!drained.empty()) return drained;
  return BringBack(group_, directory_, trust_).use_images(census);
}

// [collective] The newest version that was drained, if it is newer than `than`; empty: there is
// none. Rank 0 chooses, as it may see more of the directory than others, who then look again.
Result<std::string> Levels::use_drain(const OpenOptions& options, VersionId than) {
  VersionId best = than;
  std::uint64_t chosen = 0;
  std::uint64_t incarnation_max = 0;
  Status local;
  const auto find = [&](const DrainTarget& target) -> Result<FoundVersions> {
    auto job = noted_job(place(target), options.job_name);
    if (job.status().code() == Code::not_found) return FoundVersions{};
    PERDURE_TRY(job.status());
    if (job.value().ranks != group_.ranks()) {
      return Status(Code::rank_mismatch, place(target) + " holds versions of " +
                                             number(job.value().ranks) + " ranks, this job has " +
                                             number(group_.ranks()));
    }
    return find_versions(place(target), job.value().job_id);
  };
  for (std::size_t i = 0; group_.rank() == 0 && local.ok() && i < drains_.size(); ++i) {
    const auto found = find(drains_[i].target);
    local = found.status();
    if (!found.ok() || found.value().manifests.empty()) continue;
    incarnation_max = std::max(incarnation_max, found.value().incarnation_max);
    const VersionId newest = found.value().manifests.front().id;
    if (newest <= best) continue;
    best = newest;
    chosen = i + 1;
  }
  std::uint64_t words[] = {chosen, incarnation_max, chosen == 0 ? 0 : best.incarnation,
                           chosen == 0 ? 0 : best.version};
  PERDURE_TRY(agree_max(group_, local, words));
  if (words[0] == 0) return std::string();
  const DrainTarget& target = drains_[words[0] - 1].target;
  best = {words[2], words[3]};
  const auto found = find(target);
  const Manifest* manifest = nullptr;
  if (found.ok()) {
    for (const Manifest& each : found.value().manifests) {
      if (each.id == best) manifest = &each;
    }
  }
  local = manifest != nullptr
              ? Status::success()
              : Status(Code::not_found, place(target) + " shows this node no version " +
                                            number(best.version) + ", which rank 0 sees there");
  PERDURE_TRY(agree(group_, local));
  return BringBack(group_, directory_, trust_).use_drained(*manifest, words[1]);
}

// A pool that recovery refuses: what is newer counts, a version that the ranks' files still hold,
// or one of other levels.
Result<std::unique_ptr<Pool>> Levels::reopen(const OpenOptions& options, const Status& refused) {
  std::uint64_t words[] = {lost_something(refused.code()) ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] == 0 || options.discard) return refused;
  const auto census = take_census(group_, directory_, trust_);
  if (!census.ok() || census.value().job.ranks != group_.ranks()) return refused;
  const auto plan = plan_recovery(census.value());
  OpenOptions older = options;
  older.pool.allow_older = true;
  auto pool = open_pool(directory_, group_, older);
  const std::uint64_t held = pool.ok() ? pool.value()->status().version : 0;
  if (pool.ok() && (!plan || held >= plan->id.version)) {
    say("version " + number(held) +
        " is the newest that is whole on all ranks; newer ones are damaged (" + refused.message() +
        ")");
    return pool;
  }
  if (pool.ok()) pool.value().reset();
  const auto told = bring_back(options, census.value());
  if (told.status().code() == Code::not_found) return refused;
  PERDURE_TRY(told.status());
  say(told.value());
  return open_pool(directory_, group_, options);
}

Status Levels::open_slots() {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  PERDURE_TRY_ASSIGN(job_, read_job_record(directory));
  slots_.resize(level_files_max);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    PERDURE_TRY_ASSIGN(
        slot.image,
        LevelFile::open_or_make(directory, {LevelFileKind::image, group_.rank(), i}, trust_));
    PERDURE_TRY_ASSIGN(
        slot.guard,
        LevelFile::open_or_make(directory, {LevelFileKind::guard, group_.rank(), i}, trust_));
    slot.id.reset();
    const auto& image = slot.image->header();
    const auto& guard = slot.guard->header();
    if (!image || image->job.job_id != job_.job_id) continue;
    if (members_.empty()) {
      slot.id = image->id;
      continue;
    }
    const auto contents = guard_contents(*slot.guard);
    const bool whole =
        guard && guard->id == image->id && contents.ok() && contents.value().members == members_;
    if (whole) slot.id = image->id;
  }
  return Status::success();
}

// The newest version that is whole on all ranks, as the files say; then only its files are in use.
Status Levels::find_whole() {
  VersionId newest;
  for (const Slot& slot : slots_) newest = std::max(newest, slot.id.value_or(VersionId{}));
  std::uint64_t words[] = {~newest.incarnation};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  VersionId common{~words[0], 0};
  for (const Slot& slot : slots_) {
    if (slot.id && slot.id->incarnation == common.incarnation) common = std::max(common, *slot.id);
  }
  words[0] = ~common.version;
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  common.version = ~words[0];
  const bool here = std::any_of(slots_.begin(), slots_.end(),
                                [&](const Slot& slot) { return slot.id == common; });
  words[0] = here && common.version > 0 ? 0 : 1;
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] == 0) whole_ = common;
  return Status::success();
}

Status Levels::start(Pool& pool) {
  pool_ = &pool;
  if (members_.empty() && drains_.empty()) return Status::success();
  PERDURE_TRY(agree(group_, open_slots()));
  PERDURE_TRY(agree(group_, start_drains()));
  PERDURE_TRY(find_whole());
  thread_ = std::thread([this] { work(); });
  // What was lost, or moved so that its redundancy lies elsewhere, is protected before anything
  // else is done.
  const PoolStatus status = pool.status();
  if (whole_ || members_.empty() || status.version == 0 || status.fell_back) {
    return Status::success();
  }
  // Until that is done, what it was brought back from, or would be, must stay (K2).
  PERDURE_TRY_ASSIGN(const Census census, take_census(group_, directory_, trust_));
  if (const auto plan = plan_recovery(census)) whole_ = plan->id;
  take(pool.chosen());
  finish_under_way();
  std::uint64_t words[] = {phase() == Phase::whole ? 0U : 1U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  end_taking(words[0] == 0);
  if (words[0] == 0) {
    say("version " + number(status.version) + " can be lost on " + number(losses_) +
        (losses_ == 1 ? " node" : " nodes") + " of each failure group again");
  } else {
    stop_redundancy("version " + number(status.version) + " could not be given to other nodes");
  }
  return Status::success();
}

// Draining.

// The lowest rank of a node drains for all of it.
Status Levels::start_drains() {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < group_.ranks(); ++rank) {
    if (nodes_[rank] == nodes_[group_.rank()]) ranks.push_back(rank);
  }
  for (Drain& drain : drains_) {
    if (group_.rank() == 0) PERDURE_TRY(note_job(place(drain.target), job_));
    if (ranks.front() != group_.rank()) continue;
    DrainRequest request;
    request.pool = directory_;
    request.place = place(drain.target);
    request.job = job_;
    request.ranks = ranks;
    request.writes_manifests = group_.rank() == 0;
    request.keep = drain.target.keep;
    request.trust = trust_;
    request.token = drain.target.token;
    drain.node = std::make_unique<NodeDrain>(std::move(request));
  }
  return Status::success();
}

// Of this node: the images of the version are no longer needed.
bool Levels::drains_ended() const {
  return std::all_of(drains_.begin(), drains_.end(), [](const Drain& drain) {
    if (!drain.node) return true;
    const DrainState state = drain.node->state();
    return state.drained + state.failed >= drain.ended;
  });
}

// A version that all ranks have whole. One at a time, so that its images can be kept (K2).
void Levels::drain(VersionId id) {
  for (Drain& drain : drains_) {
    if (!take_last_ && id.version % drain.target.every != 0) continue;
    draining_ = id;
    if (drain.node && drain.node->start(id)) ++drain.ended;
  }
}

void Levels::stop_drains(std::uint64_t patience_ns) {
  const auto start_ns = monotonic_ns();
  for (Drain& drain : drains_) {
    if (!drain.node) continue;
    const std::uint64_t waited_ns = monotonic_ns() - start_ns;
    const std::uint64_t left_ns = patience_ns - std::min(patience_ns, waited_ns);
    const Status stopped = drain.node->stop(std::chrono::milliseconds(left_ns / 1'000'000));
    const Status failure = stopped.ok() ? drain.node->state().failure : stopped;
    if (failure.ok()) continue;
    std::fprintf(stderr, "perdure: %s: %s: %s\n", directory_.c_str(),
                 drain.target.directory.c_str(), failure.message().c_str());
  }
}

// Taking a version.

bool Levels::due(std::uint64_t version) const {
  if (take_next_) return true;
  if (!members_.empty() && version % settings_.every == 0) return true;
  return std::any_of(drains_.begin(), drains_.end(),
                     [version](const Drain& drain) { return version % drain.target.every == 0; });
}

// K2.
std::optional<std::size_t> Levels::free_slot() const {
  const auto holds = [this](const std::optional<LevelFile>& file) {
    const auto& header = file->header();
    return header && (header->id == whole_ || header->id == draining_);
  };
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!holds(slots_[i].image) && !holds(slots_[i].guard)) return i;
  }
  return std::nullopt;
}

void Levels::take(const Catalogue& catalogue) {
  const auto slot = free_slot();
  if (!slot) {
    ++counters_.skipped;
    return;
  }
  ++counters_.taken;
  const VersionId id{catalogue.incarnation, catalogue.version};
  taking_ = id;
  slots_[*slot].id = id;
  auto image = Image::of(pool_->device(), pool_->geometry(), catalogue);
  const std::lock_guard<std::mutex> lock(mutex_);
  under_way_ = {id, *slot, std::nullopt, nullptr};
  if (image.ok()) under_way_.image = image.take();
  failure_ = image.ok() ? Status::success() : image.status();
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
  const Image& image = *under_way_.image;
  LevelFile& file = *slots_[under_way_.slot].image;
  PERDURE_TRY(file.begin(image.size_bytes()));
  std::vector<std::byte> chunk;
  for (std::uint64_t at = 0; at < image.size_bytes(); at += chunk.size()) {
    chunk.resize(std::min<std::uint64_t>(level_chunk_bytes, image.size_bytes() - at));
    image.read(at, chunk);
    file.write(at, chunk);
  }
  return file.complete(
      {LevelFileKind::image, job_, group_.rank(), under_way_.id, image.size_bytes()});
}

// Of the thread that exchanges. False: it has ended.
bool Levels::advance(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  const Phase now = phase();
  if (now != Phase::copied && now != Phase::exchanging) return false;
  Slot& slot = slots_[under_way_.slot];
  if (now == Phase::copied) {
    auto started = Exchange::start(group_, members_, losses_, *slot.image, *slot.guard);
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

void Levels::progress() {
  if (taking_) slice();
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

// K1: the same on all ranks.
void Levels::committed(const Catalogue& catalogue) {
  if (slots_.empty()) return;
  if (taking_ && words_[failed_word] != 0) {
    end_taking(false);
    stop_redundancy("a version could not be given to other nodes");
  }
  if (words_[draining_word] == 0) draining_.reset();
  if (taking_ && ~words_[whole_word] >= taking_->version) end_taking(true);
  if (due(catalogue.version)) {
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
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  set_phase(Phase::idle, failure_);
  if (whole) {
    whole_ = taking_;
    ++counters_.whole;
    if (!draining_) drain(*whole_);
  }
  taking_.reset();
}

// K4. Own failures are told by the rank that has them.
void Levels::stop_redundancy(const std::string& why) {
  if (!failure_.ok()) {
    std::fprintf(stderr, "perdure: %s: rank %u: %s\n", directory_.c_str(), group_.rank(),
                 failure_.message().c_str());
  }
  say(why + "; there is no redundancy between nodes until the next restart");
  // Messages may still be written to its buffers.
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  abandoned_.push_back(std::move(under_way_.exchange));
  members_.clear();
  if (drains_.empty()) slots_.clear();
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

// An image without the file's part would bring back the pool and not the file.
Status Levels::check_companion(const std::string& name) {
  if (settings_.any() || !drains_.empty()) {
    return {Code::unsupported, name +
                                   " can't be committed with a pool whose versions are kept on "
                                   "other levels: they would not hold it; open it without "
                                   "perdure_cache_pool, or set PERDURE_LEVELS=redundancy=off"};
  }
  finish_under_way();
  end_taking(false);
  if (!members_.empty()) say(name + " is committed with this pool, so there is no redundancy");
  members_.clear();
  slots_.clear();
  return Status::success();
}

Status Levels::restoring(std::uint64_t version, std::uint64_t incarnation) {
  finish_under_way();
  end_taking(false);
  for (Slot& slot : slots_) {
    for (auto* file : {&slot.image, &slot.guard}) {
      const auto& header = (*file)->header();
      if (header && header->id.version > version) PERDURE_TRY((*file)->clear());
    }
    if (slot.id && slot.id->version > version) slot.id.reset();
  }
  if (whole_ && whole_->version > version) whole_.reset();
  for (const Drain& drain : drains_) {
    if (group_.rank() != 0) continue;
    PERDURE_TRY(abandon_versions(place(drain.target), job_.job_id, {incarnation, version}));
  }
  return Status::success();
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

void Levels::close() {
  if (slots_.empty()) return;
  const std::uint64_t start_ns = monotonic_ns();
  finish_under_way();
  if (taking_) {
    // Drained if nothing else is.
    const bool whole = phase() == Phase::whole;
    agree_at_the_end(start_ns);
    if (!whole) {
      std::fprintf(stderr, "perdure: %s: rank %u: the last version that was due is only here\n",
                   directory_.c_str(), group_.rank());
    }
  }
  const std::uint64_t waited_ns = monotonic_ns() - start_ns;
  stop_drains(settings_.patience_ns - std::min(settings_.patience_ns, waited_ns));
  counters_.waited_ns += monotonic_ns() - start_ns;
  slots_.clear();
}

LevelCounters Levels::counters() const {
  return counters_;
}

}  // namespace perdure
