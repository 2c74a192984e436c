// SPDX-License-Identifier: BSD-3-Clause
#include "levels/replication.hpp"

#include <algorithm>
#include <chrono>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "base/guests.hpp"
#include "levels/encode.hpp"
#include "levels/sealed_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t slice_bytes = std::uint64_t{8} << 20U;
// A slice takes at most a twentieth of the time since the one before, and no longer than 8 MB need
// on a slow network. So levels cost a program that lends them no thread 5 % of its time at most.
constexpr std::uint64_t slice_share = 20;
constexpr std::uint64_t slice_ns_max = 16'000'000;
constexpr std::uint64_t slice_ns_min = 100'000;

// [collective] Each rank reads the file of its own node.
Result<std::vector<std::vector<std::uint32_t>>> same_groups(const std::string& path, Group& group) {
  auto groups = read_groups(path, group.ranks());
  std::uint64_t sum = 0;
  if (groups.ok()) {
    for (const auto& ranks : groups.value()) {
      const std::uint64_t bytes = ranks.size() * sizeof ranks[0];
      sum = crc64(ranks.data(), bytes, crc64(&bytes, sizeof bytes, sum));
    }
  }
  PERDURE_TRY_ASSIGN(const bool same, is_same_on_all(group, groups.status(), sum));
  if (same) return groups;
  return Status(Code::invalid_argument, path, " is not the same on all nodes; copy one to all");
}
}  // namespace

Replication::~Replication() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Status Replication::choose_group(const LevelSettings& settings) {
  const std::uint32_t nodes = 1 + *std::ranges::max_element(node_.nodes);
  PERDURE_TRY_ASSIGN(const auto scheme, settings.scheme(nodes));
  if (!scheme) return Status::success();
  auto groups = settings.groups.empty() ? failure_groups(node_.nodes, *scheme)
                                        : same_groups(settings.groups, node_.group);
  if (!groups.ok() && (settings.redundancy || !settings.groups.empty())) return groups.status();
  if (!groups.ok()) {
    node_.say("no redundancy between nodes: " + groups.status().message());
    return Status::success();
  }
  for (const auto& group : groups.value()) {
    if (std::ranges::find(group, node_.group.rank()) != group.end()) members_ = group;
  }
  scheme_ = *scheme;
  scheme_.group_size = static_cast<std::uint32_t>(members_.size());
  if (scheme_.group_size <= scheme_.rows) {
    return Status(Code::invalid_argument, settings.groups, ": a group of ", scheme_.group_size,
                  " ranks is too small for redundancy ", scheme->text(), ", which needs more than ",
                  scheme_.rows);
  }
  const bool can =
      can_encode(*coding_of(scheme_.coding), scheme_.group_size - scheme_.rows, scheme_.rows);
  return can ? Status::success() : encoding_refused();
}

void Replication::start_thread() {
  thread_ = start_own_thread([this] { work(); });
}

void Replication::take(SealedHeader header, Result<Image> image, LevelFile* to, LevelFile* guard) {
  const std::lock_guard<std::mutex> lock(mutex_);
  under_way_ = {std::move(header), to, guard, 0, std::nullopt, nullptr};
  if (image.ok()) {
    under_way_.header.payload_bytes = image.value().size_bytes();
    if (!members_.empty()) {
      under_way_.guard_bytes = guard_bytes(members_, scheme_, image.value().size_bytes());
    }
    under_way_.contents = image.take();
  }
  failure_ = image.status();
  phase_ = image.ok() ? Phase::copying : Phase::failed;
  changed_.notify_all();
}

Replication::Phase Replication::phase() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_;
}

void Replication::set_phase(Phase phase, const Status& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = phase;
  failure_ = failure;
  changed_.notify_all();
}

// The thread.
void Replication::work() {
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
    if (!node_.group.may_be_used_beside() || members_.empty()) continue;
    while (advance(slice_bytes)) {
      std::this_thread::sleep_for(poll_time);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
  }
}

Status Replication::copy() {
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
  return file.complete(under_way_.header);
}

// Of the thread that exchanges. False: it has ended.
bool Replication::advance(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  const Phase now = phase();
  if (now != Phase::copied && now != Phase::exchanging) return false;
  if (now == Phase::copied) {
    auto started =
        Exchange::start(node_.group, members_, scheme_, *under_way_.image, *under_way_.guard);
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

void Replication::slice() {
  if (node_.group.may_be_used_beside()) return;
  const std::uint64_t start_ns = monotonic_ns();
  const std::uint64_t share_ns = (start_ns - sliced_ns_) / slice_share;
  const std::uint64_t limit_ns = std::clamp(share_ns, slice_ns_min, slice_ns_max);
  while (advance(slice_bytes) && monotonic_ns() - start_ns < limit_ns) {
  }
  sliced_ns_ = monotonic_ns();
  waited_ns_ += sliced_ns_ - start_ns;
}

void Replication::release(std::uint64_t version) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (phase_ != Phase::copying || under_way_.header.id.version > version) return;
  const std::uint64_t start_ns = monotonic_ns();
  changed_.wait(lock, [this] { return phase_ != Phase::copying; });
  waited_ns_ += monotonic_ns() - start_ns;
}

void Replication::finish(std::uint64_t patience_ns) {
  const std::uint64_t start_ns = monotonic_ns();
  const auto over = [&] {
    const Phase now = phase();
    return now == Phase::whole || now == Phase::failed || now == Phase::idle ||
           monotonic_ns() - start_ns > patience_ns;
  };
  while (!over()) {
    if (node_.group.may_be_used_beside() || !advance(slice_bytes)) {
      std::this_thread::sleep_for(poll_time);
    }
  }
  waited_ns_ += monotonic_ns() - start_ns;
}

void Replication::give_up(std::uint64_t patience_ns) {
  release(UINT64_MAX);  // the phase is the thread's until then
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  const Phase now = phase();
  if (now != Phase::copied && now != Phase::exchanging) return;
  set_phase(Phase::failed, Status(Code::busy, "version ", under_way_.header.id.version,
                                  " did not come to other nodes within ", patience_ns / 1'000'000,
                                  " ms; PERDURE_LEVELS may give it more (patience=)"));
}

void Replication::end() {
  release(UINT64_MAX);
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  set_phase(Phase::idle, failure_);
}

void Replication::stop(const std::string& why) {
  if (!failure_.ok()) node_.say_here(failure_.message());
  stopped_ =
      Status(Code::io_error, why, "; there is no redundancy between nodes until the next restart");
  node_.say(stopped_.message());
  abandon();
  members_.clear();
}

// Messages may still be written to its buffers, and read from its files.
void Replication::abandon() {
  const std::lock_guard<std::mutex> exchanging(exchange_mutex_);
  if (under_way_.exchange) abandoned_.push_back(std::move(under_way_.exchange));
}

}  // namespace perdure
