#include "levels/levels.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "levels/bring_back.hpp"
#include "levels/level_file_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t slice_bytes = std::uint64_t{8} << 20U;
// A slice takes at most a twentieth of the time since the one before, and no longer than 8 MB need
// on a slow network. So levels cost a program that lends them no thread 5 % of its time at most.
constexpr std::uint64_t slice_share = 20;
constexpr std::uint64_t slice_ns_max = 16'000'000;
constexpr std::uint64_t slice_ns_min = 100'000;
constexpr auto poll_time = std::chrono::microseconds(50);

enum Word { whole_word, failed_word, word_count };

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
                                               const LevelSettings& settings, Trust trust) {
  std::unique_ptr<Levels> levels(new Levels(group, directory, settings, trust));
  PERDURE_TRY_ASSIGN(levels->nodes_, group.nodes());
  const auto& nodes = levels->nodes_;
  const bool several =
      std::any_of(nodes.begin(), nodes.end(), [&](auto n) { return n != nodes[0]; });
  if (!several && !settings.any()) return std::unique_ptr<Levels>();
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
  if (!complete && !options.discard) {
    PERDURE_TRY_ASSIGN(const Census census, take_census(group_, directory_, trust_));
    const bool ours = census.job.ranks == group_.ranks() &&
                      (options.any_job || census.job.job_name == options.job_name);
    if (ours) {  // otherwise open_pool() says what is wrong
      auto told = back.move_files(census);
      if (told.status().code() == Code::not_found) told = back.use_images(census);
      PERDURE_TRY(told.status());
      say(told.value());
    }
  }
  auto pool = open_pool(directory_, group_, options);
  if (!pool.ok()) pool = reopen(options, pool.status());
  PERDURE_TRY(pool.status());
  PERDURE_TRY(start(*pool.value()));
  return pool;
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
  if (!plan && !pool.ok()) return refused;
  if (!plan || (pool.ok() && held >= plan->id.version)) {
    say("version " + number(held) +
        " is the newest that is whole on all ranks; newer ones are "
        "damaged (" +
        refused.message() + ")");
    return pool;
  }
  if (pool.ok()) pool.value().reset();
  BringBack back(group_, directory_, trust_);
  auto told = back.use_images(census.value());
  PERDURE_TRY(told.status());
  say(told.value());
  return open_pool(directory_, group_, options);
}

Status Levels::open_slots() {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  PERDURE_TRY_ASSIGN(job_, read_job_record(directory));
  slots_.resize(settings_.drain.empty() ? 2 : 3);
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
  for (Slot& slot : slots_) {
    if (slot.id != whole_) slot.id.reset();
  }
  return Status::success();
}

Status Levels::start(Pool& pool) {
  pool_ = &pool;
  if (members_.empty() && settings_.drain.empty()) return Status::success();
  PERDURE_TRY(agree(group_, open_slots()));
  PERDURE_TRY(find_whole());
  thread_ = std::thread([this] { work(); });
  // What was lost, or moved so that its redundancy lies elsewhere, is protected before anything
  // else is done.
  const PoolStatus status = pool.status();
  if (whole_ || members_.empty() || status.version == 0 || status.fell_back) {
    return Status::success();
  }
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

// Taking a version.

bool Levels::due(std::uint64_t version) const {
  if (take_next_) return true;
  if (!members_.empty() && version % settings_.every == 0) return true;
  return !settings_.drain.empty() && version % settings_.drain_every.value_or(settings_.every) == 0;
}

// K2.
std::optional<std::size_t> Levels::free_slot() const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].id || slots_[i].id != whole_) return i;
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
  return {words_, word_count};
}

// K1: the same on all ranks.
void Levels::committed(const Catalogue& catalogue) {
  if (slots_.empty()) return;
  if (taking_ && words_[failed_word] != 0) {
    end_taking(false);
    stop_redundancy("a version could not be given to other nodes");
  }
  if (taking_ && ~words_[whole_word] >= taking_->version) end_taking(true);
  if (due(catalogue.version)) {
    if (taking_) {
      ++counters_.skipped;
    } else {
      take(catalogue);
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
  if (settings_.drain.empty()) slots_.clear();
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
  if (settings_.any()) {
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

Status Levels::restoring(std::uint64_t version) {
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
  return Status::success();
}

void Levels::close() {
  finish_under_way();
  if (taking_ && phase() != Phase::whole) {
    std::fprintf(
        stderr, "perdure: %s: rank %u: version %llu was not given to other nodes in time\n",
        directory_.c_str(), group_.rank(), static_cast<unsigned long long>(taking_->version));
  }
}

LevelCounters Levels::counters() const {
  return counters_;
}

}  // namespace perdure
