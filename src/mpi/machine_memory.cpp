// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/machine_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdio>

#include "base/files.hpp"
#include "base/random.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

constexpr const char* shared_memory = "/dev/shm";
using Name = std::array<char, 48>;  // of a file there, which has it until all ranks mapped it

std::shared_ptr<std::byte> map(const FileHandle& file, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(mapped), [bytes](std::byte* at) { ::munmap(at, bytes); }};
}

// Takes the memory at once: a full /dev/shm would be a SIGBUS later.
std::shared_ptr<std::byte> make(const Directory& folder, Name& name, std::size_t bytes) {
  std::uint64_t number = 0;
  if (!fill_random(&number, sizeof number).ok()) return nullptr;
  std::snprintf(name.data(), name.size(), "perdure-ranks-%016llx",
                static_cast<unsigned long long>(number));
  auto file = folder.create_file(name.data());
  if (!file.ok()) return nullptr;
  if (::posix_fallocate(file.value().fd(), 0, static_cast<off_t>(bytes)) != 0) return nullptr;
  return map(file.value(), bytes);
}

std::shared_ptr<std::byte> find(const Directory& folder, const Name& name, std::size_t bytes) {
  auto file = folder.open_file(name.data(), FileAccess::read_write);
  return file.ok() ? map(file.value(), bytes) : nullptr;
}

}  // namespace

std::shared_ptr<std::byte> share_memory(MPI_Comm machine, std::size_t bytes) {
  int rank = 0;
  PMPI_Comm_rank(machine, &rank);
  const auto folder = Directory::open(shared_memory);
  Name name{};
  std::shared_ptr<std::byte> memory;
  if (rank == 0 && folder.ok()) memory = make(folder.value(), name, bytes);
  PMPI_Bcast(name.data(), static_cast<int>(name.size()), type_byte(), 0, machine);
  if (rank != 0 && folder.ok() && name[0] != 0) memory = find(folder.value(), name, bytes);
  std::uint64_t failed = memory == nullptr ? 1 : 0;
  const int error = max_over_ranks(machine, {&failed, 1});
  if (rank == 0 && folder.ok() && name[0] != 0) (void)folder.value().remove_file(name.data());
  return error == MPI_SUCCESS && failed == 0 ? memory : nullptr;
}

}  // namespace perdure
