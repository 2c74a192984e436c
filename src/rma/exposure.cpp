// SPDX-License-Identifier: BSD-3-Clause
#include "rma/exposure.hpp"

#include <algorithm>
#include <utility>

#include "base/agreement.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/node_map.hpp"
#include "pmem/region.hpp"
#include "pool/job_record.hpp"
#include "rma/mpi_calls.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

#ifdef OPEN_MPI
constexpr bool begins_at_pages = false;
#else
constexpr bool begins_at_pages = true;
#endif

// What each rank tells the others of its part.
struct Announcement {
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t copy_bytes;
  std::uint64_t stride;
  std::uint64_t unit_bytes;
  std::uint64_t first_byte;  // of the part in the memory that MPI made
  std::uint64_t device;      // identity of the file
  std::uint64_t inode;
  std::uint64_t map_sync;
};

Announcement announce(const ExposedPool& pool, const ExposedPart& part, std::uint64_t first_byte) {
  return {part.offset,          part.bytes(),        part.copy_bytes,
          part.stride,          part.unit_bytes,     first_byte,
          pool.identity.device, pool.identity.inode, pool.file.map_sync ? 1U : 0U};
}

Result<std::vector<Announcement>> gather(MpiGroup& group, Announcement mine) {
  std::vector<Announcement> all(group.ranks());
  const int error = PMPI_Allgather(&mine, sizeof mine, type_byte(), all.data(), sizeof mine,
                                   type_byte(), group.comm());
  if (error != MPI_SUCCESS) return mpi_status("MPI_Allgather", error);
  return all;
}

FilePages pages_of(const ExposedPool& pool, std::uint32_t rank, const Announcement& from) {
  const std::string path = pool.changing ? pool.directory + "/" + next_rank_file_name(rank)
                                         : rank_file_path(pool.directory, rank);
  return {{path, from.map_sync != 0},
          {from.device, from.inode},
          from.offset,
          align_up(from.bytes, view_page_bytes)};
}

// The user's hints, and that every rank's memory begins at pages of its own.
MPI_Info shared_info(MPI_Info from) {
  MPI_Info info = info_null();
  if (from == info_null()) {
    PMPI_Info_create(&info);
  } else {
    PMPI_Info_dup(from, &info);
  }
  PMPI_Info_set(info, "alloc_shared_noncontig", "true");
  return info;
}

// Where a part is mapped: large ones so that the kernel can use huge pages. MPICH looks at each
// page of the memory that it is asked for, so that small parts ask for no more.
std::uint64_t alignment_of(const ExposedPart& part) {
  return part.bytes() >= huge_page_bytes ? huge_page_bytes : view_page_bytes;
}

// Where in MPI's memory a page of the file can be mapped.
std::uint64_t first_fitting_byte(const std::byte* memory, const ExposedPart& part) {
  const std::uint64_t align = alignment_of(part);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return (part.offset % align + align - address % align) % align;
}

// Maps rank's pages over its memory as this process sees it.
Status cover_with_file(MPI_Win window, const ExposedPool& pool, std::uint32_t rank, bool own,
                       const Announcement& from, ExposedTarget& target) {
  MPI_Aint bytes = 0;
  int unit = 0;
  std::byte* memory = nullptr;
  const int error =
      WindowCalls::Win_shared_query::real(window, static_cast<int>(rank), &bytes, &unit, &memory);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Win_shared_query", error);
  std::byte* at = memory + from.first_byte;
  const FilePages pages = pages_of(pool, rank, from);
  if (reinterpret_cast<std::uintptr_t>(at) % view_page_bytes != 0 ||
      from.first_byte + pages.bytes > static_cast<std::uint64_t>(bytes)) {
    return {Code::unsupported,
            "the MPI library places a rank's memory elsewhere in its neighbours"};
  }
  PERDURE_TRY(map_shared_view(pages, at, own).status());
  target.view = at;
  return Status::success();
}

void cover_all(Exposure& exposure) {
  for (ExposedTarget& target : exposure.targets) {
    if (target.view == nullptr) continue;
    // Failure would leave the view, whose addresses MPI gives back anyway.
    (void)cover_shared_view(target.view, align_up(target.bytes, view_page_bytes));
    target.view = nullptr;
  }
}

std::vector<ExposedTarget> targets_from(const std::vector<Announcement>& all) {
  std::vector<ExposedTarget> targets;
  for (const Announcement& each : all) {
    targets.push_back(
        {each.first_byte, each.stride, each.unit_bytes, each.bytes, each.copy_bytes, nullptr});
  }
  return targets;
}

// What MPI is asked for. A library that begins each rank's memory at a page, as it is asked to,
// needs no more for a small part; where one does not, the part does not fit.
std::uint64_t room_for(const ExposedPart& part) {
  if (part.bytes() == 0) return 0;
  const bool fits = begins_at_pages && alignment_of(part) == view_page_bytes;
  return align_up(part.bytes(), view_page_bytes) + (fits ? 0 : alignment_of(part));
}

// Tries memory of MPI's own; nothing if that can't be covered on some rank.
Result<bool> expose_shared(MpiGroup& group, const ExposedPool& pool, const ExposedPart& part,
                           MPI_Info info, Exposure& exposure) {
  std::byte* memory = nullptr;
  MPI_Info hints = shared_info(info);
  const int error = WindowCalls::Win_allocate_shared::real(
      static_cast<MPI_Aint>(room_for(part)), 1, hints, group.comm(), &memory, &exposure.window);
  PMPI_Info_free(&hints);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Win_allocate_shared", error);
  PERDURE_TRY_ASSIGN(auto all,
                     gather(group, announce(pool, part, first_fitting_byte(memory, part))));
  exposure.targets = targets_from(all);
  Status covered;
  for (std::uint32_t rank = 0; rank < group.ranks() && covered.ok(); ++rank) {
    if (all[rank].bytes == 0) continue;
    covered = cover_with_file(exposure.window, pool, rank, rank == group.rank(), all[rank],
                              exposure.targets[rank]);
  }
  if (agree(group, covered).ok()) return true;
  cover_all(exposure);
  WindowCalls::Win_free::real(&exposure.window);
  return false;
}

Status expose_created(MpiGroup& group, const ExposedPool& pool, const ExposedPart& part,
                      MPI_Info info, Exposure& exposure) {
  const Announcement mine = announce(pool, part, 0);
  std::byte* view = nullptr;
  Status local;
  if (part.bytes() != 0) {
    auto mapped = map_shared_view(pages_of(pool, group.rank(), mine), nullptr, true);
    local = mapped.status();
    if (mapped.ok()) view = mapped.value();
  }
  PERDURE_TRY(agree(group, local));
  PERDURE_TRY_ASSIGN(auto all, gather(group, mine));
  exposure.targets = targets_from(all);
  exposure.targets[group.rank()].view = view;
  const int error = WindowCalls::Win_create::real(view, static_cast<MPI_Aint>(part.bytes()), 1,
                                                  info, group.comm(), &exposure.window);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Win_create", error);
  PMPI_Win_set_name(exposure.window, "");  // Open MPI names a created window, and no allocated one
  return Status::success();
}

}  // namespace

Result<ExposedPool> look_at_pool(MpiGroup& group, std::string directory, const DeviceFile& file) {
  ExposedPool pool;
  pool.directory = std::move(directory);
  pool.file = file;
  const auto nodes = map_nodes(group.comm());
  Status local = nodes.status();
  if (local.ok() && file.path.empty()) {
    local = {Code::unsupported, "the pool's device is no file that other ranks could map"};
  }
  const auto identity = local.ok() ? identify_file(file.path) : Result<FileIdentity>(local);
  PERDURE_TRY(agree(group, identity.status()));
  pool.identity = identity.value();
  pool.one_node = nodes.value().nodes == 1;
  return pool;
}

Result<Exposure> expose(MpiGroup& group, const ExposedPool& pool, const ExposedPart& part,
                        MPI_Info info) {
  Exposure exposure;
  exposure.rank = group.rank();
  // A single rank's memory may come from MPI's heap, where nothing can be covered.
  if (group.ranks() > 1 && pool.one_node) {
    PERDURE_TRY_ASSIGN(exposure.shared, expose_shared(group, pool, part, info, exposure));
  }
  if (!exposure.shared) PERDURE_TRY(expose_created(group, pool, part, info, exposure));
  exposure.made = true;
  return exposure;
}

int withdraw(Exposure& exposure) {
  exposure.made = false;
  if (exposure.shared) {
    cover_all(exposure);
    return WindowCalls::Win_free::real(&exposure.window);
  }
  const ExposedTarget own = exposure.targets[exposure.rank];
  const int error = WindowCalls::Win_free::real(&exposure.window);
  if (own.view != nullptr) unmap_shared_view(own.view, align_up(own.bytes, view_page_bytes));
  return error;
}

}  // namespace perdure
