// SPDX-License-Identifier: BSD-3-Clause
#include "small_job.hpp"

#include <algorithm>
#include <cstring>

namespace perdure {

JobState next_state(const JobState& before, std::uint64_t version, std::uint32_t rank,
                    std::uint64_t attempt) {
  JobState state = before;
  state.a.resize(a_words);
  state.b.resize(b_words);
  const std::uint64_t stamp = (version + attempt * 50) * 1000 + rank * 100;
  for (std::size_t i = 0; i < a_words; ++i) state.a[i] = stamp + i + 1;
  for (std::size_t i : {version % b_words, (version * 5 + 1) % b_words}) {
    state.b[i] = stamp + 50 + i;
  }
  state.iteration = version * 3 + attempt * 1000;
  state.random = {stamp, ~stamp, stamp * 0x9e3779b97f4a7c15U};
  return state;
}

SmallJob::SmallJob(std::unique_ptr<Device> device, Group& group, const SweepOptions& options)
    : options_(options),
      first_(group.rank() == 0),
      a_buffer_(a_words),
      b_buffer_(b_words),
      own_buffer_(own_words) {
  Result<Region> region = Status(Code::not_found, "");
  if (device->size_bytes() == 0) {
    Geometry geometry = small_geometry;
    geometry.slot_bytes = options_.slot_bytes;
    region = format_region(*device, {{{7, 9}}, "sweep", group.rank(), group.ranks()}, geometry);
    attached_ = region.ok() ? format_slots(*device, region.value()) : region.status();
  } else {
    region = check_region(*device);
    if (!region.ok()) attached_ = region.status();
  }
  if (!attached_.ok()) return;
  auto pool = Pool::attach(std::move(device), region.value(), group, {});
  if (pool.ok()) {
    pool_ = pool.take();
  } else {
    attached_ = pool.status();
  }
}

Status SmallJob::open_arrays() {
  const bool twin = options_.mode == ArrayMode::twin;
  const bool log = options_.mode == ArrayMode::log;
  ArrayShape shape{ArrayType::int64, options_.mode, options_.checksums, {a_words}};
  auto a = pool_->open_array("a", shape, {twin ? nullptr : a_buffer_.data(), log});
  if (!a.ok()) return a.status();
  shape.extents = {b_words};
  const char* const name = options_.rank_local && !first_ ? "of the second rank" : "b";
  auto b = pool_->open_array(name, shape, {twin ? nullptr : b_buffer_.data(), log});
  if (!b.ok()) return b.status();
  a_ = a.value();
  b_ = b.value();
  if (options_.rank_local && first_) {
    shape = {ArrayType::int64, ArrayMode::copy, true, {own_words}};
    PERDURE_TRY_ASSIGN(own_, pool_->open_array("of the first rank", shape, {own_buffer_.data()}));
  }
  PERDURE_TRY(pool_->bind_scalar("iteration", &iteration_, sizeof iteration_));
  return pool_->bind_scalar("random", random_.data(), sizeof random_);
}

Result<std::uint64_t> SmallJob::start() {
  PERDURE_TRY(attached_);
  PERDURE_TRY(open_arrays());
  return pool_->restart();
}

void SmallJob::write(const JobState& state) {
  if (options_.mode == ArrayMode::log) {
    for (std::size_t i = 0; i < b_words; ++i) {
      if (b_buffer_[i] != state.b[i]) (void)b_->mark(i * 8, 8);
    }
    (void)a_->mark(0, a_words * 8);
  }
  std::memcpy(a_->working(), state.a.data(), a_words * 8);
  std::memcpy(b_->working(), state.b.data(), b_words * 8);
  std::ranges::fill(own_buffer_, state.iteration);
  iteration_ = state.iteration;
  random_ = state.random;
}

Result<std::uint64_t> SmallJob::commit(const JobState& state) {
  write(state);
  if (!options_.asynchronous) return pool_->commit();
  PERDURE_TRY(pool_->commit_begin());
  for (VersionedArray* const array : {a_, b_}) {
    if (array->mode() == ArrayMode::twin) continue;  // it is committed where it is
    PERDURE_TRY(pool_->before_write(*array));
  }
  return pool_->commit_wait();
}

JobState SmallJob::consistent() const {
  JobState state;
  state.a.resize(a_words);
  state.b.resize(b_words);
  std::memcpy(state.a.data(), a_->consistent(), a_words * 8);
  std::memcpy(state.b.data(), b_->consistent(), b_words * 8);
  state.iteration = iteration_;
  state.random = random_;
  const bool whole =
      own_ == nullptr ||
      std::ranges::all_of(own_buffer_, [this](std::uint64_t word) { return word == iteration_; });
  if (!whole) state.b.clear();  // no version's
  return state;
}

}  // namespace perdure
