// SPDX-License-Identifier: BSD-3-Clause
#include "npb/state.hpp"

#include <cstring>
#include <stdexcept>

#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"
#include "npb/ranks.hpp"
#include "perdure/perdure_ipv.h"

namespace npb {
namespace {

using job::check;

constexpr std::uint64_t file_magic = 0x3250484342504e50U;  // "PNPBCHP2"

}  // namespace

State::State(const StateOptions& options) : options_(options) {
  if (options_.protection != Protection::none && options_.pool.empty()) {
    throw std::runtime_error("--protect needs --pool, the directory where the state is kept");
  }
}

// close() reports what goes wrong; here somebody else already has.
State::~State() {
  if (versioned_) perdure_ipv_close();
  if (pool_ != nullptr) perdure_close(pool_);
}

void State::object(const Carried& array) {
  objects_.push_back(
      {array.name, array.values, static_cast<std::size_t>(array.count) * sizeof *array.values});
}

std::uint64_t State::bytes() const {
  std::uint64_t sum = 0;
  for (const Member& object : objects_) sum += object.bytes;
  return sum;
}

void State::open_pool() {
  perdure_options open{};
  open.flags = PERDURE_CREATE;
  if (options_.discard) open.flags |= PERDURE_DISCARD;
  const job::Emulation& emulation = options_.emulation;
  open.emulate = emulation.model.empty() ? nullptr : emulation.model.c_str();
  open.delay = emulation.mode();
  open.copy_threads = options_.threads;
  check(ranks::open_pool(options_.pool.c_str(), &open, &pool_), "perdure_open");
  check(perdure_scalar(pool_, "iteration", &iteration_, sizeof iteration_), "perdure_scalar");
  for (const Member& scalar : scalars_) {
    check(perdure_scalar(pool_, scalar.name.c_str(), scalar.first, scalar.bytes), "perdure_scalar");
  }
}

std::uint64_t State::restore() {
  if (options_.protection == Protection::none) return 0;
  if (options_.protection == Protection::disk) return restore_files();
  open_pool();
  std::uint64_t version = 0;
  if (options_.protection == Protection::ipv) {
    perdure_ipv_options open{};
    open.threads = options_.threads;
    open.report = options_.report.empty() ? nullptr : options_.report.c_str();
    check(perdure_ipv_open(pool_, &open), "perdure_ipv_open");
    versioned_ = true;
    const perdure_ipv_object_options with{options_.tier, 1};  // array.hpp: in whole pages
    for (const Member& member : objects_) {
      check(perdure_ipv_object(member.name.c_str(), member.first, member.bytes, &with),
            "perdure_ipv_object");
    }
    check(perdure_ipv_restart(&version), "perdure_ipv_restart");
    return iteration_;
  }
  for (const Member& member : objects_) {
    const std::uint64_t bytes = member.bytes;
    perdure_array* array = nullptr;
    check(perdure_array_open(pool_, member.name.c_str(), PERDURE_BYTE, 1, &bytes, PERDURE_TWIN,
                             nullptr, &array),
          "perdure_array_open");
    arrays_.push_back(array);
  }
  check(perdure_restart(pool_, &version), "perdure_restart");
  for (std::size_t i = 0; version > 0 && i < arrays_.size(); ++i) {
    std::memcpy(objects_[i].first, perdure_consistent(arrays_[i]), objects_[i].bytes);
  }
  return iteration_;
}

void State::persist(std::uint64_t iteration) {
  if (options_.protection == Protection::none) return;
  const job::Stopwatch watch;
  iteration_ = iteration;
  std::uint64_t version = 0;
  switch (options_.protection) {
    case Protection::none:
      break;
    case Protection::disk:
      files().write(iteration, pieces());
      ranks::min(0);
      break;
    case Protection::flush:
      for (std::size_t i = 0; i < arrays_.size(); ++i) {
        std::memcpy(perdure_working(arrays_[i]), objects_[i].first, objects_[i].bytes);
      }
      copy_s_ += watch.seconds();
      check(perdure_commit(pool_, &version), "perdure_commit");
      break;
    case Protection::ipv:
      check(perdure_ipv_persist(&version), "perdure_ipv_persist");
      break;
  }
  persist_s_ += watch.seconds();
}

void State::wait() {
  if (!versioned_) return;
  const job::Stopwatch watch;
  check(perdure_ipv_wait(nullptr), "perdure_ipv_wait");
  persist_s_ += watch.seconds();
}

void State::close() {
  if (pool_ == nullptr) return;
  if (versioned_) {
    versioned_ = false;
    check(perdure_ipv_close(), "perdure_ipv_close");
  }
  model_ns_ = job::status_of(pool_).model_ns;
  perdure_pool* pool = pool_;
  pool_ = nullptr;
  check(perdure_close(pool), "perdure_close");
}

job::CheckpointFiles State::files() const {
  const auto rank = static_cast<std::uint64_t>(ranks::rank());
  const auto ranks = static_cast<std::uint64_t>(ranks::count());
  return {options_.pool,
          ranks::rank(),
          {file_magic, bytes(), rank, ranks},
          {"another problem; remove it, or --discard", ""}};
}

std::vector<job::CheckpointFiles::Piece> State::pieces() const {
  std::vector<job::CheckpointFiles::Piece> pieces;
  for (const auto* members : {&objects_, &scalars_}) {
    for (const Member& member : *members) pieces.push_back({member.first, member.bytes});
  }
  return pieces;
}

// The version of a checkpoint is its iteration.
std::uint64_t State::restore_files() {
  const job::CheckpointFiles files = this->files();
  files.make_directory();
  for (const std::uint64_t parity : {0U, 1U}) {
    if (options_.discard) files.remove(parity);
  }
  iteration_ = ranks::min(files.newest());
  if (iteration_ > 0) files.read(iteration_, pieces());
  files.remove_beyond(iteration_);
  ranks::min(0);  // nobody begins before all have removed what the others lack
  return iteration_;
}

}  // namespace npb
