// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_admin.hpp"

#include <array>
#include <cstring>

#include "base/agreement.hpp"
#include "mpi/info.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/transfer.hpp"

namespace perdure {
namespace {

// Collective, and raised where it failed.
int finish(OpenFile& open, const Status& status) {
  const Status agreed = agree(*open.group, status);
  return agreed.ok() ? MPI_SUCCESS : raise_on_file(open.handle, agreed);
}

// MPI_SEEK_END means the first etype at or past the end of the file.
Result<std::int64_t> end_position(OpenFile& open) {
  PERDURE_TRY_ASSIGN(auto size, open.file->size_bytes(0));
  const std::int64_t bytes = open.view.data_bytes_before(static_cast<std::int64_t>(size));
  const std::int64_t etype = std::max<std::int64_t>(open.view.etype_bytes, 1);
  return (bytes + etype - 1) / etype * etype;
}

// Where a seek leads, in bytes of the view; it may be before its begin.
Result<std::int64_t> sought(OpenFile& open, MPI_Offset offset, int whence, std::int64_t current) {
  std::int64_t from = 0;
  if (whence == MPI_SEEK_CUR) from = current;
  if (whence == MPI_SEEK_END) {
    PERDURE_TRY_ASSIGN(from, end_position(open));
  }
  return from + offset * open.view.etype_bytes;
}

bool is_whence(int whence) {
  return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

bool is_native(const char* datarep) {
  return datarep != nullptr && std::strcmp(datarep, "native") == 0;
}

// Collective: all ranks are in the call that the caller has named. To be asked before the MPI
// library is, which waits for ranks that are in another one.
int meet(OpenFile& open) {
  return finish(open, Status::success());
}

// Collective. Another representation is the MPI library's affair, if no other handle is cached: the
// two would not see each other's bytes.
int pass_through(OpenFile& open) {
  const std::shared_ptr<MpiGroup> group = open.group;  // outlives the file
  const CollectiveCall call(*group, "MPI_File_set_view", open.number);
  Status alone;
  if (open.file->is_shared()) {
    alone = Status(Code::unsupported, open.file->path(),
                   ": another handle has the file cached; a view that is not native needs it "
                   "closed first, or perdure_cache=off for both");
  }
  if (const int error = finish(open, alone); error != MPI_SUCCESS) return error;
  return leave_cache(open);
}

}  // namespace

// Atomic mode takes a lock, and a durable write flushes; a view with holes is walked. On several
// nodes only node 0 knows the size that a write changes.
void find_short_cut(OpenFile& open) {
  if (open.file->is_aside()) return;
  open.short_cut.part = &open.file->own_part();
  open.short_cut.writes =
      open.options.acknowledge != Acknowledge::durable && open.file->nodes() == 1;
  open.short_cut.possible = !open.atomic_mode && open.view.contiguous;
}

int file_set_size(MPI_File file, MPI_Offset size) {
  OpenFile* open = find_file(file);
  if (open == nullptr || size < 0 || !open->writable) {
    return FileCalls::set_size::real(file, size);
  }
  const CollectiveCall call(*open->group, "MPI_File_set_size", open->number);
  const auto cut = open->file->set_size(*open->group, static_cast<std::uint64_t>(size));
  if (!cut.ok()) return raise_on_file(file, cut.status());
  if (cut.value()) return MPI_SUCCESS;
  const int error = FileCalls::set_size::real(file, size);
  const Status ended = open->file->end_set_size(*open->group);
  return error != MPI_SUCCESS ? error : finish(*open, ended);
}

// Not by the MPI library: it would read and write what is not in the file yet, and OMPIO moves what
// it reads (Open MPI 4.1.4).
int file_preallocate(MPI_File file, MPI_Offset size) {
  OpenFile* open = find_file(file);
  if (open == nullptr || size < 0 || !open->writable) {
    return FileCalls::preallocate::real(file, size);
  }
  const CollectiveCall call(*open->group, "MPI_File_preallocate", open->number);
  const Status allocated = open->file->preallocate(*open->group, static_cast<std::uint64_t>(size));
  return allocated.ok() ? MPI_SUCCESS : raise_on_file(file, allocated);
}

int file_get_size(MPI_File file, MPI_Offset* size) {
  OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::get_size::real(file, size);
  auto bytes = open->file->size_bytes(0);
  if (!bytes.ok()) return raise_on_file(file, bytes.status());
  *size = static_cast<MPI_Offset>(bytes.value());
  return MPI_SUCCESS;
}

int file_set_info(MPI_File file, MPI_Info info) {
  OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::set_info::real(file, info);
  const CollectiveCall call(*open->group, "MPI_File_set_info", open->number);
  CacheOptions changed = open->options;
  const Status good = agree(*open->group, change_cache_options(read_info(info), changed));
  if (!good.ok()) return raise_on_file(file, good);
  if (changed.acknowledge == Acknowledge::durable) {
    if (const int error = finish(*open, open->file->become_cached()); error != MPI_SUCCESS) {
      return error;
    }
  }
  open->options = changed;
  find_short_cut(*open);
  return FileCalls::set_info::real(file, info);
}

int file_get_info(MPI_File file, MPI_Info* info) {
  const int error = FileCalls::get_info::real(file, info);
  const OpenFile* open = find_file(file);
  if (error != MPI_SUCCESS || open == nullptr) return error;
  for (const auto& [key, value] : open->options.given) {
    PMPI_Info_set(*info, key.c_str(), value.c_str());
  }
  return MPI_SUCCESS;
}

// The MPI library checks the arguments, and keeps the view for the calls that only ask for it.
int file_set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                  const char* datarep, MPI_Info info) {
  OpenFile* open = find_file(file);
  if (open != nullptr && !is_native(datarep)) {
    if (const int error = pass_through(*open); error != MPI_SUCCESS) return error;
    open = nullptr;
  }
  const auto make = [&] {
    return FileCalls::set_view::real(file, displacement, etype, filetype, datarep, info);
  };
  if (open == nullptr) return make();
  const CollectiveCall call(*open->group, "MPI_File_set_view", open->number);
  if (const int error = meet(*open); error != MPI_SUCCESS) return error;
  if (const int error = make(); error != MPI_SUCCESS) return error;
  const auto of_etype = map_of(etype);
  const auto of_filetype = map_of(filetype);
  Status good = of_etype.ok() ? of_filetype.status() : of_etype.status();
  if (good.ok()) {
    open->view = make_view(displacement, of_etype.value()->size_bytes, *of_filetype.value());
    open->position = 0;
    find_short_cut(*open);
    if (open->group->rank() == 0) good = open->file->store_pointer(open->shared_pointer, 0);
  }
  return finish(*open, good);
}

int file_seek(MPI_File file, MPI_Offset offset, int whence) {
  OpenFile* open = find_file(file);
  if (open == nullptr || !is_whence(whence)) return FileCalls::seek::real(file, offset, whence);
  auto at = sought(*open, offset, whence, open->position);
  if (!at.ok()) return raise_on_file(file, at.status());
  // Before the view's begin: the MPI library says so, in its own way.
  if (at.value() < 0) return FileCalls::seek::real(file, -1, MPI_SEEK_SET);
  open->position = at.value();
  return MPI_SUCCESS;
}

int file_get_position(MPI_File file, MPI_Offset* offset) {
  const OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::get_position::real(file, offset);
  *offset = open->position / std::max<std::int64_t>(open->view.etype_bytes, 1);
  return MPI_SUCCESS;
}

int file_seek_shared(MPI_File file, MPI_Offset offset, int whence) {
  OpenFile* open = find_file(file);
  if (open == nullptr || !is_whence(whence)) {
    return FileCalls::seek_shared::real(file, offset, whence);
  }
  const CollectiveCall call(*open->group, "MPI_File_seek_shared", open->number);
  // Nobody moves the pointer while rank 0 reads and stores it.
  if (const int error = meet(*open); error != MPI_SUCCESS) return error;
  Status status;
  if (open->group->rank() == 0) {
    auto current = open->file->load_pointer(open->shared_pointer);
    status = current.status();
    if (current.ok()) {
      auto at = sought(*open, offset, whence, static_cast<std::int64_t>(current.value()));
      status = at.status();
      if (at.ok() && at.value() < 0) {
        status = {Code::invalid_argument, open->file->path() + ": seek to before the view's begin"};
      } else if (at.ok()) {
        status =
            open->file->store_pointer(open->shared_pointer, static_cast<std::uint64_t>(at.value()));
      }
    }
  }
  return finish(*open, status);
}

int file_get_position_shared(MPI_File file, MPI_Offset* offset) {
  OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::get_position_shared::real(file, offset);
  auto at = open->file->load_pointer(open->shared_pointer);
  if (!at.ok()) return raise_on_file(file, at.status());
  *offset = static_cast<MPI_Offset>(at.value()) / std::max<std::int64_t>(open->view.etype_bytes, 1);
  return MPI_SUCCESS;
}

int file_set_atomicity(MPI_File file, int flag) {
  OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::set_atomicity::real(file, flag);
  const CollectiveCall call(*open->group, "MPI_File_set_atomicity", open->number);
  if (const int error = meet(*open); error != MPI_SUCCESS) return error;
  if (const int error = FileCalls::set_atomicity::real(file, flag); error != MPI_SUCCESS) {
    return error;
  }
  // The lock of atomic mode is in the part.
  const Status cached = flag != 0 ? open->file->become_cached() : Status::success();
  if (const int raised = finish(*open, cached); raised != MPI_SUCCESS) return raised;
  open->atomic_mode = flag != 0;
  find_short_cut(*open);
  return MPI_SUCCESS;
}

int file_get_atomicity(MPI_File file, int* flag) {
  const OpenFile* open = find_file(file);
  if (open == nullptr) return FileCalls::get_atomicity::real(file, flag);
  *flag = open->atomic_mode ? 1 : 0;
  return MPI_SUCCESS;
}

// Not a barrier: each rank returns when its own writes are where they should be.
int file_sync(MPI_File file) {
  OpenFile* open = find_file(file);
  if (open == nullptr || !open->writable) return FileCalls::sync::real(file);
  const Status synced = open->file->sync(open->options.sync);
  return synced.ok() ? MPI_SUCCESS : raise_on_file(file, synced);
}

}  // namespace perdure
