// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/data_access.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "mpi/mpi_library.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/open_file.hpp"
#include "mpiio/transfer.hpp"

namespace perdure {
namespace {

// Whether MPI allows the access; if not, the MPI library is to say so.
bool is_sound(const OpenFile& open, const Access& access, MPI_Offset offset, std::int64_t count,
              const Result<const DatatypeMap*>& map) {
  if (count < 0 || offset < 0 || !map.ok()) return false;
  if (!(access.direction == Direction::read ? open.readable : open.writable)) return false;
  const std::int64_t etype = open.view.etype_bytes;
  return etype == 1 || (etype != 0 && count * map.value()->size_bytes % etype == 0);
}

void set_status(MPI_Status* status, std::int64_t bytes) {
#if MPI_VERSION >= 4
  PMPI_Status_set_elements_x(status, type_byte(), bytes);
#else
  PMPI_Status_set_elements_x(status, type_byte(), static_cast<MPI_Count>(bytes));
#endif
  PMPI_Status_set_cancelled(status, 0);
}

// Accesses of a loop mostly move as many bytes as the one before, and what MPI sets is then the
// same: 110 ns less with Open MPI, 27 with MPICH. What it leaves alone is left alone.
void fill_status(MPI_Status* status, std::int64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  static thread_local constinit std::int64_t set_bytes = -1;
  static thread_local constinit MPI_Status set{};
  if (bytes != set_bytes) {
    set_status(&set, bytes);
    set_bytes = bytes;
  }
  MPI_Status filled = set;
  filled.MPI_SOURCE = status->MPI_SOURCE;
  filled.MPI_TAG = status->MPI_TAG;
  filled.MPI_ERROR = status->MPI_ERROR;
  *status = filled;
}

// Where reading ends with the file, OMPIO moves the pointer by what was asked for, and so does
// ROMIO, except in an independent, blocking access without holes, which leaves it at the end.
bool stops_at_end(const OpenFile& open, const Access& access, const Items& items) {
#ifdef OPEN_MPI
  (void)open, (void)access, (void)items;
  return false;
#else
  return !access.collective && !access.nonblocking && items.map->contiguous && open.view.contiguous;
#endif
}

Result<std::int64_t> access_individual(OpenFile& open, const Access& access, const Items& items) {
  const std::int64_t wanted = items.bytes();
  auto moved = transfer(open, access.direction, items, open.position.fetch_add(wanted));
  if (moved.ok() && moved.value() != wanted && stops_at_end(open, access, items)) {
    open.position.fetch_sub(wanted - moved.value());
  }
  return moved;
}

Result<std::int64_t> access_shared(OpenFile& open, Direction direction, const Items& items) {
  PERDURE_TRY_ASSIGN(auto at, open.file->add_to_pointer(open.shared_pointer, items.bytes()));
  return transfer(open, direction, items, static_cast<std::int64_t>(at));
}

// Collective: the ranks' accesses follow one another in the order of ranks.
Result<std::int64_t> access_ordered(OpenFile& open, Direction direction, const Items& items) {
  const std::int64_t own = items.bytes();
  std::vector<char> gathered;
  PERDURE_TRY(gather_all(open.group->comm(), &own, sizeof own, gathered));
  std::vector<std::int64_t> all(open.group->ranks());
  std::memcpy(all.data(), gathered.data(), gathered.size());
  std::int64_t before = 0;
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == open.group->rank()) before = sum;
    sum += all[rank];
  }
  // The base, or that rank 0 could not have it.
  std::int64_t base = -1;
  Status status;
  if (open.group->rank() == 0) {
    auto added = open.file->add_to_pointer(open.shared_pointer, sum);
    status = added.status();
    if (added.ok()) base = static_cast<std::int64_t>(added.value());
  }
  const int error = PMPI_Bcast(&base, sizeof base, type_byte(), 0, open.group->comm());
  if (error != MPI_SUCCESS) return mpi_status("MPI_Bcast", error);
  if (!status.ok()) return status;
  if (base < 0) return Status(Code::peer_failed, "rank 0 has no shared file pointer");
  return transfer(open, direction, items, base + before);
}

Result<std::int64_t> run(OpenFile& open, const Access& access, MPI_Offset offset,
                         const Items& items) {
  switch (access.pointer) {
    case Pointer::given:
      return transfer(open, access.direction, items, offset * open.view.etype_bytes);
    case Pointer::individual:
      return access_individual(open, access, items);
    case Pointer::shared:
      return access_shared(open, access.direction, items);
    case Pointer::ordered:
      return access_ordered(open, access.direction, items);
  }
  return std::int64_t{0};
}

// A request that is complete, with the status that its wait gives.
int query_done(void* bytes, MPI_Status* status) {
  set_status(status, *static_cast<std::int64_t*>(bytes));
  return MPI_SUCCESS;
}
int free_done(void* bytes) {
  delete static_cast<std::int64_t*>(bytes);
  return MPI_SUCCESS;
}
int cancel_done(void*, int) {
  return MPI_SUCCESS;
}

// Tell the program of an access that has ended: by its status, or by a request.
int tell(std::int64_t bytes, MPI_Status* status) {
  fill_status(status, bytes);
  return MPI_SUCCESS;
}
int tell(std::int64_t bytes, MPI_Request* request) {
  auto done = std::make_unique<std::int64_t>(bytes);
  const int error = PMPI_Grequest_start(query_done, free_done, cancel_done, done.get(), request);
  if (error != MPI_SUCCESS) return error;
  (void)done.release();  // free_done deletes it
  return PMPI_Grequest_complete(*request);
}

template <typename Buffer>
void* writable(Buffer* buffer) {
  return const_cast<void*>(static_cast<const void*>(buffer));
}

// The access that is most frequent: one run of bytes at a given offset, which this node has. False:
// it is to be done, and to fail, on the long way.
bool take_short_cut(OpenFile& open, const Access& access, MPI_Offset offset, void* buffer,
                    std::int64_t count, MPI_Datatype type, std::int64_t& bytes) {
  if (access.pointer != Pointer::given) return false;
  if (!open.short_cut.possible.load(std::memory_order_acquire)) return false;
  // Not checked yet, which is good enough for a hint. The bytes are touched a hundred instructions
  // later, and while that waits for memory the processor gets only a few hundred further: with the
  // hint more accesses wait at the same time.
  const auto etype_bytes = static_cast<std::uint64_t>(open.view.etype_bytes);
  const auto displacement = static_cast<std::uint64_t>(open.view.displacement);
  const std::uint64_t at = displacement + static_cast<std::uint64_t>(offset) * etype_bytes;
  CachePart& part = *open.short_cut.part.load(std::memory_order_relaxed);
  part.expect(at);
  const DatatypeMap* map = known_map(type);
  if (map == nullptr || !map->contiguous || !is_known_committed(*map)) return false;
  if (count <= 0 || offset < 0) return false;
  bytes = count * map->size_bytes;
  if (open.view.etype_bytes != 1 && bytes % open.view.etype_bytes != 0) return false;
  const auto length = static_cast<std::uint64_t>(bytes);
  const bool is_taken =
      access.direction == Direction::read
          ? open.readable &&
                (part.try_read(at, buffer, length) || part.try_read_any(at, buffer, length))
          : open.writable && open.short_cut.writes.load(std::memory_order_relaxed) &&
                part.try_write(at, buffer, length);
  if (is_taken) count_access(open.file->tally(), access.direction, bytes);
  return is_taken;
}

// One access of an open file; `finish` tells the program what came of it, `refuse` lets MPI refuse.
template <typename Finish, typename Refuse>
int perform(OpenFile& open, const Access& access, MPI_Offset offset, void* buffer,
            std::int64_t count, MPI_Datatype type, const Finish& finish, const Refuse& refuse) {
  std::int64_t bytes = 0;
  if (take_short_cut(open, access, offset, buffer, count, type, bytes)) return finish(bytes);
  const auto map = map_for_call(type, open.group->comm());
  if (!is_sound(open, access, offset, count, map)) return refuse();
  const auto moved = run(open, access, offset, {buffer, count, map.value()});
  return moved.ok() ? finish(moved.value()) : raise_on_file(open.handle, moved.status());
}

// Each shape of call (file_calls.hpp). TheCall is the call; `end` is of tell().
template <typename TheCall, const char* name>
struct Shape {
  static constexpr Access access = access_of(name);

  template <typename Buffer, typename Count, typename End>
  static int at(MPI_File file, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype type,
                End* end) {
    OpenFile* open = find_file(file);
    if (open == nullptr) return TheCall::real(file, offset, buffer, count, type, end);
    return perform(
        *open, access, offset, writable(buffer), static_cast<std::int64_t>(count), type,
        [end](std::int64_t bytes) { return tell(bytes, end); },
        [&] { return TheCall::real(file, offset, buffer, count, type, end); });
  }

  template <typename Buffer, typename Count, typename End>
  static int here(MPI_File file, Buffer* buffer, Count count, MPI_Datatype type, End* end) {
    OpenFile* open = find_file(file);
    if (open == nullptr) return TheCall::real(file, buffer, count, type, end);
    return perform(
        *open, access, 0, writable(buffer), static_cast<std::int64_t>(count), type,
        [end](std::int64_t bytes) { return tell(bytes, end); },
        [&] { return TheCall::real(file, buffer, count, type, end); });
  }
};

Status already_begun(const OpenFile& open) {
  return Status(
      Code::wrong_state, open.file->path(),
      ": a split collective call is under way on this handle; end it before another begins");
}

// Split collective calls: all is done at the beginning, the end tells.
template <typename TheCall, const char* name, typename Ending>
struct SplitShape {
  static constexpr Access access = access_of(name);

  template <typename Buffer, typename Count, typename Refuse>
  static int begin(OpenFile& open, MPI_Offset offset, Buffer* buffer, Count count,
                   MPI_Datatype type, const Refuse& refuse) {
    if (open.split.kind != nullptr) return raise_on_file(open.handle, already_begun(open));
    return perform(
        open, access, offset, writable(buffer), static_cast<std::int64_t>(count), type,
        [&open](std::int64_t bytes) {
          open.split = {&Ending::real, bytes};
          return MPI_SUCCESS;
        },
        refuse);
  }

  template <typename Buffer, typename Count>
  static int at(MPI_File file, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype type) {
    OpenFile* open = find_file(file);
    const auto real = [&] { return TheCall::real(file, offset, buffer, count, type); };
    return open == nullptr ? real() : begin(*open, offset, buffer, count, type, real);
  }

  template <typename Buffer, typename Count>
  static int here(MPI_File file, Buffer* buffer, Count count, MPI_Datatype type) {
    OpenFile* open = find_file(file);
    const auto real = [&] { return TheCall::real(file, buffer, count, type); };
    return open == nullptr ? real() : begin(*open, 0, buffer, count, type, real);
  }
};

template <typename TheCall, typename Buffer>
int end_split(MPI_File file, Buffer* buffer, MPI_Status* status) {
  OpenFile* open = find_file(file);
  if (open == nullptr) return TheCall::real(file, buffer, status);
  if (open->split.kind != &TheCall::real) {
    return raise_on_file(
        file, {Code::wrong_state, open->file->path() + ": no split collective call of this kind is "
                                                       "under way on this handle"});
  }
  fill_status(status, open->split.bytes);
  open->split = {};
  return MPI_SUCCESS;
}

#define PERDURE_NAME(x) constexpr char name_##x[] = #x;
PERDURE_CALLS_COUNTED(PERDURE_NAME)
#undef PERDURE_NAME

}  // namespace

// The split calls by the name of what they end with.
#define PERDURE_ENDING_read_at_all_begin FileCalls::read_at_all_end
#define PERDURE_ENDING_write_at_all_begin FileCalls::write_at_all_end
#define PERDURE_ENDING_read_all_begin FileCalls::read_all_end
#define PERDURE_ENDING_write_all_begin FileCalls::write_all_end
#define PERDURE_ENDING_read_ordered_begin FileCalls::read_ordered_end
#define PERDURE_ENDING_write_ordered_begin FileCalls::write_ordered_end

#define PERDURE_TAKE_AT(x) direct<FileCalls::x>(true, Shape<FileCalls::x, name_##x>::at);
#define PERDURE_TAKE_HERE(x) direct<FileCalls::x>(true, Shape<FileCalls::x, name_##x>::here);
#define PERDURE_TAKE_AT_BEGIN(x) \
  direct<FileCalls::x>(true, SplitShape<FileCalls::x, name_##x, PERDURE_ENDING_##x>::at);
#define PERDURE_TAKE_HERE_BEGIN(x) \
  direct<FileCalls::x>(true, SplitShape<FileCalls::x, name_##x, PERDURE_ENDING_##x>::here);
#define PERDURE_TAKE_END(x) direct<FileCalls::x>(true, end_split<FileCalls::x>);

#define PERDURE_TAKE_AT_C(x) direct<FileCalls::x##_c>(true, Shape<FileCalls::x##_c, name_##x>::at);
#define PERDURE_TAKE_HERE_C(x) \
  direct<FileCalls::x##_c>(true, Shape<FileCalls::x##_c, name_##x>::here);
#define PERDURE_TAKE_AT_BEGIN_C(x) \
  direct<FileCalls::x##_c>(true, SplitShape<FileCalls::x##_c, name_##x, PERDURE_ENDING_##x>::at);
#define PERDURE_TAKE_HERE_BEGIN_C(x) \
  direct<FileCalls::x##_c>(true, SplitShape<FileCalls::x##_c, name_##x, PERDURE_ENDING_##x>::here);

void take_data_access() {
  PERDURE_CALLS_AT(PERDURE_TAKE_AT)
  PERDURE_CALLS_HERE(PERDURE_TAKE_HERE)
  PERDURE_CALLS_IAT(PERDURE_TAKE_AT)
  PERDURE_CALLS_IHERE(PERDURE_TAKE_HERE)
  PERDURE_CALLS_AT_BEGIN(PERDURE_TAKE_AT_BEGIN)
  PERDURE_CALLS_HERE_BEGIN(PERDURE_TAKE_HERE_BEGIN)
  PERDURE_CALLS_END(PERDURE_TAKE_END)
#if MPI_VERSION >= 4
  PERDURE_CALLS_AT(PERDURE_TAKE_AT_C)
  PERDURE_CALLS_HERE(PERDURE_TAKE_HERE_C)
  PERDURE_CALLS_IAT(PERDURE_TAKE_AT_C)
  PERDURE_CALLS_IHERE(PERDURE_TAKE_HERE_C)
  PERDURE_CALLS_AT_BEGIN(PERDURE_TAKE_AT_BEGIN_C)
  PERDURE_CALLS_HERE_BEGIN(PERDURE_TAKE_HERE_BEGIN_C)
#endif
}

}  // namespace perdure
