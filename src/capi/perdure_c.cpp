// SPDX-License-Identifier: BSD-3-Clause
//
// perdure.h over the classes of pool/: checks arguments, turns Status into codes, and no more.
#include <algorithm>

#include "base/agreement.hpp"
#include "base/commit_watch.hpp"
#include "freed_buffers.hpp"
#include "levels/levels.hpp"
#include "pool_energy.hpp"
#include "pool_handle.hpp"

using perdure::check_no_objects;
using perdure::Code;
using perdure::guarded;
using perdure::guarded_on;
using perdure::PoolCall;
using perdure::quiesce;
using perdure::Status;
using perdure::WatchedCommit;

namespace {

Status need(bool holds, const char* what) {
  return holds ? Status::success() : Status(Code::invalid_argument, what);
}

Status check_ranks(int ranks) {
  return need(ranks >= 0 && ranks <= PERDURE_BY_HAND, "`ranks` is one of enum perdure_ranks, or 0");
}

template <typename T>
Status store_value(const perdure::Result<T>& result, T* place) {
  if (!result.ok()) return result.status();
  if (place != nullptr) *place = result.value();
  return Status::success();
}

// Defaults: checksums for what is copied, none for what stays in place.
perdure::Result<bool> wants_checksums(int mode, unsigned flags) {
  constexpr unsigned known =
      PERDURE_CHECKSUM | PERDURE_NO_CHECKSUM | PERDURE_MARKS | PERDURE_COMPARE;
  if ((flags & ~known) != 0) {
    return Status(Code::invalid_argument, "unknown flags in perdure_array_options.flags");
  }
  const bool yes = (flags & PERDURE_CHECKSUM) != 0;
  const bool no = (flags & PERDURE_NO_CHECKSUM) != 0;
  if (yes && no) return Status(Code::invalid_argument, "CHECKSUM contradicts NO_CHECKSUM");
  return yes || (!no && mode != PERDURE_TWIN && mode != PERDURE_FLUSH);
}

perdure::Result<perdure::ArrayShape> make_shape(int type, unsigned dimensions,
                                                const uint64_t* shape, int mode,
                                                const perdure_array_options& options) {
  PERDURE_TRY(need(perdure::element_bytes(static_cast<perdure::ArrayType>(type)) != 0,
                   "unknown type of an array"));
  PERDURE_TRY(need(mode >= PERDURE_COPY && mode <= PERDURE_FLUSH, "unknown mode"));
  PERDURE_TRY(need(dimensions >= 1 && dimensions <= perdure::dimensions_max && shape != nullptr,
                   "an array has 1 to 8 dimensions"));
  PERDURE_TRY_ASSIGN(auto checksums, wants_checksums(mode, options.flags));
  return perdure::ArrayShape{static_cast<perdure::ArrayType>(type),
                             static_cast<perdure::ArrayMode>(mode),
                             checksums,
                             {shape, shape + dimensions}};
}

perdure::Result<perdure::DeviceFunctions> functions_of(const perdure_device& device,
                                                       const perdure::ArrayShape& shape,
                                                       const void* buffer) {
  PERDURE_TRY(need(device.copy != nullptr, "a perdure_device needs at least `copy`"));
  const bool is_empty = std::ranges::find(shape.extents, 0U) != shape.extents.end();
  PERDURE_TRY(
      need(buffer != nullptr || is_empty, "an array on a perdure_device needs a `buffer` there"));
  const int mode = static_cast<int>(shape.mode);
  PERDURE_TRY(need(mode == PERDURE_COPY || mode == PERDURE_LOG,
                   "an array on a perdure_device is in copy or log mode; copy has two versions "
                   "in the pool, as twin does"));
  return perdure::DeviceFunctions{device.context, device.copy, device.follow,
                                  device.hold,    device.wait, device.allocate};
}

Status open_array(perdure_pool* pool, const char* name, perdure::ArrayShape shape,
                  const perdure_array_options& options, perdure_array** array) {
  const std::size_t element = perdure::element_bytes(shape.type);
  perdure::ArrayOptions given;
  given.buffer = options.buffer;
  given.keep_contents = true;  // programs initialise their buffers before they restart
  given.of_program = true;
  given.marks = (options.flags & PERDURE_MARKS) != 0;
  given.compare = (options.flags & PERDURE_COMPARE) != 0;
  given.ranks = static_cast<perdure::RankRule>(options.ranks);
  perdure::DeviceFunctions functions;
  if (options.device != nullptr) {
    PERDURE_TRY_ASSIGN(functions, functions_of(*options.device, shape, options.buffer));
    given.device = &functions;
  }
  PERDURE_TRY_ASSIGN(auto opened, pool->pool->open_array(name, shape, given));
  perdure::FreedBuffers::watch(*opened);
  pool->arrays.push_back(std::make_unique<perdure_array>(perdure_array{opened, pool, element}));
  *array = pool->arrays.back().get();
  return Status::success();
}

const perdure_pool* pool_of(const perdure_array* array) {
  return array == nullptr ? nullptr : array->pool;
}

// perdure_array_open() with the extents that the pool has.
perdure::Result<std::vector<std::uint64_t>> take_stored_extents(
    const perdure_pool& pool, const char* name, unsigned dimensions,
    const perdure_array_options& options) {
  PERDURE_TRY(need(dimensions == 0, "without a shape there are no dimensions: pass 0"));
  return pool.pool->stored_extents(name, static_cast<perdure::RankRule>(options.ranks));
}

perdure_array_info info_of(const perdure::Pool& pool, const perdure::ArrayEntry& entry) {
  perdure_array_info info{};
  entry.name.copy(info.name, sizeof info.name - 1);
  info.type = static_cast<int>(entry.shape.type);
  info.mode = static_cast<int>(entry.shape.mode);
  info.dimensions = static_cast<unsigned>(entry.shape.extents.size());
  std::ranges::copy(entry.shape.extents, info.shape);
  info.bytes = entry.size_bytes;
  info.checksums = entry.shape.checksums ? 1 : 0;
  info.open = pool.is_open(entry.name) ? 1 : 0;
  return info;
}

// Up to `capacity` of them. Parts of a window, or an object, are no arrays by their names alone.
size_t list_arrays(const perdure::Pool& pool, const perdure::ArrayTable& held,
                   perdure_array_info* arrays, size_t capacity) {
  size_t found = 0;
  for (auto at = held.begin(); at != held.end(); ++at) {
    if (at.shared().part != 0) continue;
    if (found < capacity) arrays[found] = info_of(pool, at.shared());
    ++found;
  }
  return found;
}

// The bytes of elements [first, first + count), checked against the array.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
perdure::Result<ByteRange> byte_range(const perdure_array* array, uint64_t first, uint64_t count) {
  const std::uint64_t elements = array->array->size_bytes() / array->element_bytes;
  if (first > elements || count > elements - first) {
    return Status(Code::invalid_argument, "elements ", first, " to ", first + count,
                  " reach beyond the ", elements, " of array ",
                  perdure::quoted(array->array->name()));
  }
  return ByteRange{first * array->element_bytes, count * array->element_bytes};
}

// Collective: rank 0's clock decides, and only it sees whether the job is to end.
perdure::Result<int> commit_due(perdure_pool& pool) {
  const bool planned = pool.energy && pool.energy->has_plan();
  if (!planned && !pool.stop_watched) return PERDURE_DUE;
  std::uint64_t due = PERDURE_NOT_DUE;
  if (pool.group->rank() == 0) {
    if (!planned || pool.energy->is_due()) due = PERDURE_DUE;
    if (pool.pool->run_page().stop_asked()) due = PERDURE_DUE_LAST;
  }
  const WatchedCommit watched(pool.watch.get(), "perdure_commit_due", WatchedCommit::Call::other);
  const perdure::CollectiveCall call(*pool.group, "perdure_commit_due");
  PERDURE_TRY(agree_max(*pool.group, Status::success(), {&due, 1}));
  if (due == PERDURE_DUE_LAST && pool.levels) pool.levels->take_next();
  return static_cast<int>(due);
}

}  // namespace

extern "C" {

int perdure_open(const char* path, const perdure_options* options, perdure_pool** pool) {
  return guarded([&] {
    return perdure::open_handle(std::make_unique<perdure::SoloGroup>(), path, options, pool);
  });
}

int perdure_close(perdure_pool* pool) {
  if (pool == nullptr) return PERDURE_OK;
  if (pool->of_windows) {
    return perdure::report(Status(Code::wrong_state,
                                  "the pool belongs to persistent windows: it is closed when "
                                  "MPI_Win_free frees the last of them"));
  }
  if (Status state = check_no_objects(pool); !state.ok()) return perdure::report(state);
  PoolCall call(pool);
  if (!call.status().ok()) return perdure::report(call.status());  // what the parent has stays
  const int code = guarded([&] { return perdure::close_with_others(*pool); });
  call.forget();
  delete pool;
  return code;
}

int perdure_array_open(perdure_pool* pool, const char* name, int type, unsigned dimensions,
                       const uint64_t* shape, int mode, const perdure_array_options* options,
                       perdure_array** array) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(
        need(name != nullptr && array != nullptr, "a name and a place for the array are needed"));
    quiesce(pool);
    const perdure_array_options given = options == nullptr ? perdure_array_options{} : *options;
    PERDURE_TRY(check_ranks(given.ranks));
    std::vector<std::uint64_t> stored;
    if (shape == nullptr) {
      PERDURE_TRY_ASSIGN(stored, take_stored_extents(*pool, name, dimensions, given));
      dimensions = static_cast<unsigned>(stored.size());
      shape = stored.data();
    }
    PERDURE_TRY_ASSIGN(auto made, make_shape(type, dimensions, shape, mode, given));
    return open_array(pool, name, std::move(made), given, array);
  });
}

int perdure_array_resize(perdure_array* array, const uint64_t* shape, void* buffer) {
  return guarded_on(pool_of(array), [&]() -> Status {
    PERDURE_TRY(need(shape != nullptr, "a shape is needed"));
    quiesce(array->pool);
    perdure::VersionedArray& resized = *array->array;
    const std::vector<std::uint64_t> extents(shape, shape + resized.entry().shape.extents.size());
    return perdure::FreedBuffers::change(
        resized, [&] { return array->pool->pool->resize_array(resized, extents, buffer); });
  });
}

int perdure_array_shape(const perdure_array* array, unsigned* dimensions, uint64_t* shape) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need(array != nullptr, "an array is needed"));
    const auto& extents = array->array->entry().shape.extents;
    if (dimensions != nullptr) *dimensions = static_cast<unsigned>(extents.size());
    if (shape != nullptr) std::ranges::copy(extents, shape);
    return Status::success();
  });
}

int perdure_array_remove(perdure_array* array) {
  return guarded_on(pool_of(array), [&]() -> Status {
    perdure_pool& pool = *array->pool;
    quiesce(&pool);
    perdure::FreedBuffers::forget(*array->array);
    const Status status = pool.pool->close_array(array->array, true);
    if (!status.ok()) {
      perdure::FreedBuffers::watch(*array->array);
      return status;
    }
    std::erase_if(pool.arrays, [array](const auto& each) { return each.get() == array; });
    return Status::success();
  });
}

int perdure_arrays(const perdure_pool* pool, uint64_t version, perdure_array_info* arrays,
                   size_t capacity, size_t* count) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(count != nullptr && (arrays != nullptr || capacity == 0),
                     "a place for the count, and one for the arrays are needed"));
    quiesce(pool);
    PERDURE_TRY_ASSIGN(const auto held, pool->pool->arrays_of(version));
    *count = list_arrays(*pool->pool, held, arrays, capacity);
    return Status::success();
  });
}

int perdure_stored_shape(const perdure_pool* pool, const char* name, int ranks,
                         unsigned* dimensions, uint64_t* shape) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(name != nullptr, "a name is needed"));
    PERDURE_TRY(check_ranks(ranks));
    PERDURE_TRY_ASSIGN(const auto extents,
                       pool->pool->stored_extents(name, static_cast<perdure::RankRule>(ranks)));
    if (dimensions != nullptr) *dimensions = static_cast<unsigned>(extents.size());
    if (shape != nullptr) std::ranges::copy(extents, shape);
    return Status::success();
  });
}

int perdure_old_arrays(const perdure_pool* pool, unsigned old_rank, perdure_array_info* arrays,
                       size_t capacity, size_t* count) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(count != nullptr && (arrays != nullptr || capacity == 0),
                     "a place for the count, and one for the arrays are needed"));
    PERDURE_TRY_ASSIGN(const auto held, pool->pool->arrays_of_old(old_rank));
    *count = list_arrays(*pool->pool, held, arrays, capacity);
    return Status::success();
  });
}

int perdure_read(perdure_pool* pool, const char* name, unsigned old_rank, uint64_t first,
                 uint64_t count, void* elements) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(name != nullptr && (elements != nullptr || count == 0),
                     "a name and a place for the elements are needed"));
    return pool->pool->read_old(name, old_rank, first, count, elements);
  });
}

int perdure_scalar(perdure_pool* pool, const char* name, void* address, size_t bytes) {
  return perdure_scalar_typed(pool, name, 0, address, bytes);
}

int perdure_scalar_typed(perdure_pool* pool, const char* name, int type, void* address,
                         size_t bytes) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(name != nullptr, "a name is needed"));
    const auto known = perdure::known_scalar_type(static_cast<std::uint32_t>(type));
    if (type != 0 && known == perdure::ScalarType::none) {
      return Status(Code::invalid_argument, type, " is no perdure_type; 0 says that none is known");
    }
    quiesce(pool);
    return pool->pool->bind_scalar(name, address, bytes, known);
  });
}

int perdure_file(perdure_pool* pool, const char* path, FILE* stream) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(path != nullptr && *path != '\0', "a path is needed"));
    quiesce(pool);
    return pool->pool->name_file(path, stream);
  });
}

int perdure_restart(perdure_pool* pool, uint64_t* version) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(check_no_objects(pool));
    const WatchedCommit watched(pool->watch.get(), "perdure_restart", WatchedCommit::Call::other);
    return store_value(pool->pool->restart(), version);
  });
}

int perdure_versions(const perdure_pool* pool, perdure_version_info* versions, size_t capacity,
                     size_t* count) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(count != nullptr && (versions != nullptr || capacity == 0),
                     "a place for the count, and one for the versions are needed"));
    quiesce(pool);
    const auto held = pool->pool->versions();
    for (std::size_t i = 0; i < std::min(capacity, held.size()); ++i) {
      versions[i] = {held[i].version, held[i].parent, held[i].committed_ns,
                     held[i].abandoned ? 1 : 0};
    }
    *count = held.size();
    return Status::success();
  });
}

int perdure_restore(perdure_pool* pool, uint64_t version) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(check_no_objects(pool));
    const WatchedCommit watched(pool->watch.get(), "perdure_restore", WatchedCommit::Call::other);
    return pool->pool->restore(version);
  });
}

int perdure_delete_version(perdure_pool* pool, uint64_t version) {
  return guarded_on(pool, [&]() -> Status {
    quiesce(pool);
    const WatchedCommit watched(pool->watch.get(), "perdure_delete_version",
                                WatchedCommit::Call::other);
    return pool->pool->delete_version(version);
  });
}

void* perdure_working(perdure_array* array) {
  if (array == nullptr || !array->pool->pool->restarted()) return nullptr;
  return array->array->working();
}

const void* perdure_consistent(const perdure_array* array) {
  if (array == nullptr || !array->pool->pool->restarted()) return nullptr;
  return array->array->consistent();
}

int perdure_mark(perdure_array* array, uint64_t first, uint64_t count) {
  return guarded_on(pool_of(array), [&]() -> Status {
    PERDURE_TRY_ASSIGN(auto range, byte_range(array, first, count));
    return array->array->mark(range.first, range.count);
  });
}

int perdure_write(perdure_array* array, uint64_t first, uint64_t count, const void* elements) {
  return guarded_on(pool_of(array), [&]() -> Status {
    PERDURE_TRY(need(elements != nullptr, "elements are needed"));
    PERDURE_TRY_ASSIGN(auto range, byte_range(array, first, count));
    return array->pool->pool->write(*array->array, range.first, range.count, elements);
  });
}

int perdure_array_box(perdure_array* array, const uint64_t* global_shape, const uint64_t* first) {
  return guarded_on(pool_of(array), [&]() -> Status {
    PERDURE_TRY(
        need(global_shape != nullptr && first != nullptr, "a shape and a place are needed"));
    const std::size_t dimensions = array->array->entry().shape.extents.size();
    return array->pool->pool->set_box(
        *array->array, {{global_shape, global_shape + dimensions}, {first, first + dimensions}});
  });
}

int perdure_commit(perdure_pool* pool, uint64_t* version) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(check_no_objects(pool));
    const WatchedCommit watched(pool->watch.get(), "perdure_commit");
    return store_value(pool->pool->commit(), version);
  });
}

int perdure_stream(perdure_pool* pool, int kind, void* stream) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(kind >= PERDURE_STREAM_NONE && kind <= PERDURE_STREAM_HIP,
                     "`kind` is one of enum perdure_stream_kind"));
    PERDURE_TRY(need(kind != PERDURE_STREAM_NONE || stream == nullptr,
                     "without a kind there is no stream: pass NULL"));
    if (kind == PERDURE_STREAM_NONE) return pool->pool->set_stream(std::nullopt);
    return pool->pool->set_stream(
        perdure::ProgramStream{stream, static_cast<perdure::DriverKind>(kind)});
  });
}

int perdure_commit_due(perdure_pool* pool, int* due) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(due != nullptr, "a place is needed"));
    return store_value(commit_due(*pool), due);
  });
}

int perdure_commit_begin(perdure_pool* pool) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(check_no_objects(pool));
    const bool waits = pool->pool->commit_pending();  // for the version before
    const WatchedCommit watched(waits ? pool->watch.get() : nullptr, "perdure_commit_begin");
    return pool->pool->commit_begin();
  });
}

int perdure_before_write(perdure_array* array) {
  return guarded_on(pool_of(array),
                    [&]() -> Status { return array->pool->pool->before_write(*array->array); });
}

int perdure_commit_wait(perdure_pool* pool, uint64_t* version) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(check_no_objects(pool));
    const WatchedCommit watched(pool->watch.get(), "perdure_commit_wait");
    return store_value(pool->pool->commit_wait(), version);
  });
}

int perdure_levels_wait(perdure_pool* pool, uint64_t* version) {
  return guarded_on(pool, [&]() -> Status {
    quiesce(pool);
    const WatchedCommit watched(pool->watch.get(), "perdure_levels_wait",
                                WatchedCommit::Call::other);
    const perdure::CollectiveCall call(*pool->group, "perdure_levels_wait");
    PERDURE_TRY(agree(*pool->group, pool->pool->usable()));
    if (!pool->levels) return store_value(perdure::Result<uint64_t>(uint64_t{0}), version);
    return store_value(pool->levels->wait(), version);
  });
}

int perdure_status(const perdure_pool* pool, perdure_pool_status* status) {
  return guarded_on(pool, [&]() -> Status {
    PERDURE_TRY(need(status != nullptr, "a place is needed"));
    quiesce(pool);
    const perdure::PoolStatus from = pool->pool->status();
    *status = {from.version,           from.commits,
               from.commit_ns,         from.commit_ns_last,
               from.committed_bytes,   from.restart_ns,
               from.model_ns,          from.survives_power_failure ? 1 : 0,
               from.fell_back ? 1 : 0, pool->levels && pool->levels->is_under_way() ? 1 : 0,
               from.old_ranks,         from.lacking_snapshots};
    return Status::success();
  });
}

const char* perdure_strerror(int code) {
  return perdure::code_text(static_cast<Code>(code));
}

const char* perdure_library_version(void) {
  return PERDURE_VERSION;
}

}  // extern "C"
