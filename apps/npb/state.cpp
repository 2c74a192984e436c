// SPDX-License-Identifier: BSD-3-Clause
#include "npb/state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "job/checkpoint_file.hpp"
#include "job/pool_calls.hpp"
#include "job/stopwatch.hpp"
#include "npb/ranks.hpp"
#include "perdure/perdure_ipv.h"

namespace npb {
namespace {

using job::check;

constexpr std::uint64_t file_magic = 0x3150484342504e50U;  // "PNPBCHP1"

struct FileHeader {
  std::uint64_t magic = file_magic;
  std::uint64_t iteration = 0;
  std::uint64_t bytes = 0;  // of all objects
  std::uint64_t rank = 0;
  std::uint64_t ranks = 0;
};

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
      write_file(iteration);
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

// disk: two files take turns, each under another name until it is whole.

std::string State::file_of(std::uint64_t iteration) const {
  return options_.pool + "/rank-" + std::to_string(ranks::rank()) + "." +
         std::to_string(iteration % 2);
}

// The iteration that a file holds, 0 if there is none; its contents are taken if `keep`.
std::uint64_t State::read_file(const std::string& path, bool keep) {
  if (::access(path.c_str(), F_OK) != 0) return 0;
  job::CheckpointFile file(path, O_RDONLY);
  FileHeader header;
  file.read(&header, sizeof header);
  if (header.magic != file_magic || header.bytes != bytes() ||
      header.rank != static_cast<std::uint64_t>(ranks::rank()) ||
      header.ranks != static_cast<std::uint64_t>(ranks::count())) {
    throw std::runtime_error(path + " is a checkpoint of another problem; remove it, or --discard");
  }
  if (!keep) return header.iteration;
  for (const Member& member : objects_) file.read(member.first, member.bytes);
  for (const Member& member : scalars_) file.read(member.first, member.bytes);
  return header.iteration;
}

std::uint64_t State::restore_files() {
  if (::mkdir(options_.pool.c_str(), 0755) != 0 && errno != EEXIST)
    job::fail("mkdir " + options_.pool);
  std::uint64_t newest = 0;
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    if (options_.discard) {
      if (::unlink(file_of(parity).c_str()) != 0 && errno != ENOENT) job::fail("unlink");
    } else {
      newest = std::max(newest, read_file(file_of(parity), false));
    }
  }
  iteration_ = ranks::min(newest);
  if (iteration_ > 0 && read_file(file_of(iteration_), true) != iteration_) {
    throw std::runtime_error("rank " + std::to_string(ranks::rank()) + " lacks the checkpoint of " +
                             "iteration " + std::to_string(iteration_));
  }
  if (::unlink(file_of(iteration_ + 1).c_str()) != 0 && errno != ENOENT) job::fail("unlink");
  ranks::min(0);  // nobody begins before all have removed what the others lack
  return iteration_;
}

void State::write_file(std::uint64_t iteration) {
  const std::string path = file_of(iteration);
  {
    job::CheckpointFile file(path + ".new", O_WRONLY | O_CREAT | O_TRUNC);
    const FileHeader header{file_magic, iteration, bytes(),
                            static_cast<std::uint64_t>(ranks::rank()),
                            static_cast<std::uint64_t>(ranks::count())};
    file.write(&header, sizeof header);
    for (const Member& member : objects_) file.write(member.first, member.bytes);
    for (const Member& member : scalars_) file.write(member.first, member.bytes);
    file.sync();
  }
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) job::fail("rename " + path);
  job::CheckpointFile(options_.pool, O_RDONLY | O_DIRECTORY).sync();
  ranks::min(0);
}

}  // namespace npb
