// SPDX-License-Identifier: BSD-3-Clause
#include "disk_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "job/checkpoint_file.hpp"
#include "job/collective.hpp"

namespace hpccg {
namespace {

constexpr std::uint64_t magic = 0x314b534447434350U;  // "PCCGDSK1"

}  // namespace

DiskState::DiskState(const Grid& grid, const std::string& directory)
    : MemoryState(grid), grid_(grid), directory_(directory), kill_(grid.rank) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) job::fail("mkdir " + directory);
}

DiskState::Header DiskState::header_of(std::uint64_t version) const {
  return {magic,
          version,
          scalars_.iteration,
          scalars_.rtrans,
          grid_.nx,
          grid_.ny,
          grid_.nz,
          static_cast<std::uint32_t>(grid_.rank),
          static_cast<std::uint32_t>(grid_.ranks),
          0};
}

std::string DiskState::path_of(std::uint64_t version) const {
  return directory_ + "/rank-" + std::to_string(grid_.rank) + "." + std::to_string(version % 2);
}

bool DiskState::read_header(std::uint64_t parity, Header& header) const {
  if (::access(path_of(parity).c_str(), F_OK) != 0) return false;
  job::CheckpointFile(path_of(parity), O_RDONLY).read(&header, sizeof header);
  const Header expected = header_of(0);
  if (header.magic != magic || header.nx != expected.nx || header.ny != expected.ny ||
      header.nz != expected.nz || header.rank != expected.rank || header.ranks != expected.ranks) {
    throw std::runtime_error(path_of(parity) + " is a checkpoint of another problem");
  }
  return true;
}

std::uint64_t DiskState::newest_version() const {
  std::uint64_t newest = 0;
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    Header header{};
    if (read_header(parity, header) && header.version > newest) newest = header.version;
  }
  return newest;
}

std::uint64_t DiskState::restore() {
  version_ = job::min_over_ranks(newest_version());
  if (version_ > 0) read_version(version_);
  if (::unlink(path_of(version_ + 1).c_str()) != 0 && errno != ENOENT) job::fail("unlink");
  job::CheckpointFile(directory_, O_RDONLY | O_DIRECTORY).sync();
  MPI_Barrier(MPI_COMM_WORLD);
  return version_;
}

void DiskState::read_version(std::uint64_t version) {
  job::CheckpointFile file(path_of(version), O_RDONLY);
  Header header{};
  file.read(&header, sizeof header);
  if (header.version != version) {
    throw std::runtime_error("rank " + std::to_string(grid_.rank) + " lacks version " +
                             std::to_string(version));
  }
  const Vectors to = target();
  file.read(to.x, grid_.points() * sizeof(double));
  file.read(to.r, grid_.points() * sizeof(double));
  file.read(to.p, grid_.points_with_halo() * sizeof(double));
  scalars_ = {header.iteration, header.rtrans};
}

void DiskState::write_version(std::uint64_t version) {
  const std::string path = path_of(version);
  const Vectors from = source();
  const Header header = header_of(version);
  {
    job::CheckpointFile file(path + ".new", O_WRONLY | O_CREAT | O_TRUNC);
    file.write(&header, sizeof header);
    file.write(from.x, grid_.points() * sizeof(double));
    kill_.die_if_due("copy", scalars_.iteration);
    file.write(from.r, grid_.points() * sizeof(double));
    file.write(from.p, grid_.points_with_halo() * sizeof(double));
    file.sync();
  }
  kill_.die_if_due("data", scalars_.iteration);
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) job::fail("rename " + path);
  job::CheckpointFile(directory_, O_RDONLY | O_DIRECTORY).sync();
  kill_.die_if_due("state", scalars_.iteration);
  committed_bytes_ +=
      sizeof header + (2 * grid_.points() + grid_.points_with_halo()) * sizeof(double);
}

void DiskState::commit() {
  const job::Stopwatch watch;
  write_version(++version_);
  MPI_Barrier(MPI_COMM_WORLD);
  blocking_s_.push_back(watch.seconds());
}

}  // namespace hpccg
