// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>

#include "api/pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace perdure::python {
namespace {

using Pool = std::shared_ptr<PoolState>;

struct Array {
  Pool pool;
  ArrayState* state;

  // Throws when the pool is closed, or the array was removed.
  perdure_array* handle() const {
    (void)pool->handle();
    if (state->handle != nullptr) return state->handle;
    throw Failure{PERDURE_E_STATE, "array '" + state->name + "' was removed from its pool"};
  }
};

// perdure_options, with text that may be absent.
struct Options {
  unsigned flags;
  std::optional<std::string> job;
  std::optional<std::string> emulate;
  int delay;
  unsigned copy_threads;
  unsigned keep;
  std::optional<std::string> levels;

  perdure_options to_c() const {
    const auto text = [](const std::optional<std::string>& given) {
      return given ? given->c_str() : nullptr;
    };
    return {flags, text(job), text(emulate), delay, copy_threads, keep, text(levels)};
  }
};

Pool open_solo(const std::string& path, const Options& options) {
  const Calls& calls = solo_calls();
  const perdure_options given = options.to_c();
  perdure_pool* handle = nullptr;
  checked(calls, [&] { return calls.open(path.c_str(), &given, &handle); });
  return std::make_shared<PoolState>(calls, handle, path, PoolState::Kind::solo);
}

// Calls perdure_open_mpi() with the handle of type Comm that is at `address`.
template <typename Comm>
int call_open_mpi(const Calls& calls, const void* address, const std::string& path,
                  const perdure_options* options, perdure_pool** pool) {
  Comm comm{};
  std::memcpy(&comm, address, sizeof comm);
  using Open = int (*)(Comm, const char*, const perdure_options*, perdure_pool**);
  return reinterpret_cast<Open>(calls.open_mpi)(comm, path.c_str(), options, pool);
}

Pool open_mpi(const std::string& path, const Options& options, const nb::int_& comm,
              std::size_t handle_bytes) {
  const Calls& calls = mpi_calls();
  const void* address = PyLong_AsVoidPtr(comm.ptr());
  const perdure_options given = options.to_c();
  perdure_pool* handle = nullptr;
  checked(calls, [&] {
    return handle_bytes == sizeof(int)
               ? call_open_mpi<int>(calls, address, path, &given, &handle)
               : call_open_mpi<void*>(calls, address, path, &given, &handle);
  });
  return std::make_shared<PoolState>(calls, handle, path, PoolState::Kind::ranks);
}

// As checked(), of a call that may give the copies of arrays other roles, if it fails too.
template <typename Call>
void checked_with_roles(const Pool& pool, const Call& call) {
  try {
    checked(pool->calls(), call);
  } catch (const Failure&) {
    pool->set_saving(false);
    throw;
  }
  pool->set_saving(false);
}

// Of the calls that give a version.
std::uint64_t version_of(const Pool& pool, int (*Calls::*call)(perdure_pool*, std::uint64_t*)) {
  perdure_pool* handle = pool->handle();
  const Calls& calls = pool->calls();
  std::uint64_t version = 0;
  checked_with_roles(pool, [&] { return (calls.*call)(handle, &version); });
  return version;
}

std::vector<perdure_version_info> versions(const Pool& pool) {
  perdure_pool* handle = pool->handle();
  const Calls& calls = pool->calls();
  std::vector<perdure_version_info> kept(64);  // a pool keeps 63 at most
  std::size_t count = 0;
  checked(calls, [&] { return calls.versions(handle, kept.data(), kept.size(), &count); });
  kept.resize(count);
  return kept;
}

perdure_pool_status status(const Pool& pool) {
  perdure_pool* handle = pool->handle();
  perdure_pool_status found{};
  checked(pool->calls(), [&] { return pool->calls().status(handle, &found); });
  return found;
}

Array open_array(const Pool& pool, const std::string& name, int type,
                 const std::vector<std::uint64_t>& shape, int mode, unsigned flags, int ranks,
                 std::size_t size_bytes, const nb::object& buffer, std::uintptr_t device) {
  auto lent = buffer.is_none() ? nullptr : borrow_any(buffer, size_bytes);
  return {pool, pool->open_array(name, type, shape, mode, flags, ranks, std::move(lent), size_bytes,
                                 reinterpret_cast<const perdure_device*>(device))};
}

std::vector<std::uint64_t> stored_shape(const Pool& pool, const std::string& name, int ranks) {
  perdure_pool* const handle = pool->handle();
  std::vector<std::uint64_t> shape(8);
  unsigned dimensions = 0;
  checked(pool->calls(), [&] {
    return pool->calls().stored_shape(handle, name.c_str(), ranks, &dimensions, shape.data());
  });
  shape.resize(dimensions);
  return shape;
}

std::vector<perdure_array_info> old_arrays(const Pool& pool, unsigned old_rank) {
  perdure_pool* const handle = pool->handle();
  const Calls& calls = pool->calls();
  std::size_t count = 0;
  checked(calls, [&] { return calls.old_arrays(handle, old_rank, nullptr, 0, &count); });
  std::vector<perdure_array_info> found(count);
  checked(calls, [&] { return calls.old_arrays(handle, old_rank, found.data(), count, &count); });
  return found;
}

// `elements` has room for them, which python/perdure/api/pool.py has made.
void read_old(const Pool& pool, const std::string& name, unsigned old_rank, std::uint64_t first,
              std::uint64_t count, const nb::object& elements) {
  perdure_pool* const handle = pool->handle();
  const auto room = borrow(elements, false);
  checked(pool->calls(), [&] {
    return pool->calls().read(handle, name.c_str(), old_rank, first, count, room->begin);
  });
}

// What numpy and memoryview take; it keeps the memory.
nb::object memory_view(const std::shared_ptr<SharedMemory>& shared, bool read_only) {
  const nb::object memory = nb::cast(Memory{shared, read_only});
  return nb::steal(PyMemoryView_FromObject(memory.ptr()));
}

// A view of the copy that is at `place` in the pool, made when it is first asked for.
nb::object view_at(PoolState& pool, ArrayState& state, void* place, bool read_only) {
  if (place == nullptr) {
    throw Failure{PERDURE_E_STATE, "array '" + state.name +
                                       "' has no contents before "
                                       "Pool.restart()"};
  }
  auto& view = state.views[place];
  if (view == nullptr) {
    view = state.size_bytes == 0 ? allocate(0) : view_of_pool(place, state.size_bytes);
    pool.guard_views();
  }
  return memory_view(view, read_only);
}

nb::object working(const Array& array) {
  perdure_array* const handle = array.handle();
  ArrayState& state = *array.state;
  if (state.buffer != nullptr) return memory_view(state.buffer, false);
  return view_at(*array.pool, state, array.pool->calls().working(handle), false);
}

nb::object consistent(const Array& array) {
  perdure_array* const handle = array.handle();
  ArrayState& state = *array.state;
  if (state.buffer != nullptr) return memory_view(state.buffer, true);
  return view_at(*array.pool, state, const_cast<void*>(array.pool->calls().consistent(handle)),
                 true);
}

void write(const Array& array, std::uint64_t first, std::uint64_t count,
           const nb::object& elements) {
  perdure_array* const handle = array.handle();
  const Calls& calls = array.pool->calls();
  const bool on_gpu = nb::isinstance<nb::tuple>(elements);
  const auto source = on_gpu ? borrow_any(elements, 0) : borrow(elements, true);
  checked(calls, [&] { return calls.write(handle, first, count, source->begin); });
}

// Where the library has it, which is what it has registered with the driver of a GPU.
std::uintptr_t consistent_address(const Array& array) {
  perdure_array* const handle = array.handle();
  return reinterpret_cast<std::uintptr_t>(array.pool->calls().consistent(handle));
}

void bind_structs(nb::module_& api) {
  nb::class_<Options>(api, "Options", "perdure_options of perdure.h.")
      .def(nb::init<unsigned, std::optional<std::string>, std::optional<std::string>, int, unsigned,
                    unsigned, std::optional<std::string>>(),
           "flags"_a, "job"_a.none(), "emulate"_a.none(), "delay"_a, "copy_threads"_a, "keep"_a,
           "levels"_a.none());
  nb::class_<perdure_version_info>(api, "VersionInfo", "perdure_version_info of perdure.h.")
      .def_ro("version", &perdure_version_info::version)
      .def_ro("parent", &perdure_version_info::parent)
      .def_ro("committed_ns", &perdure_version_info::committed_ns)
      .def_prop_ro("abandoned", [](const perdure_version_info& i) { return i.abandoned != 0; });
  using Info = perdure_array_info;
  nb::class_<Info>(api, "ArrayInfo", "perdure_array_info of perdure.h.")
      .def_prop_ro("name", [](const Info& i) { return std::string(i.name); })
      .def_ro("type", &Info::type)
      .def_ro("mode", &Info::mode)
      .def_prop_ro(
          "shape",
          [](const Info& i) { return std::vector<std::uint64_t>(i.shape, i.shape + i.dimensions); })
      .def_ro("bytes", &Info::bytes)
      .def_prop_ro("checksums", [](const Info& i) { return i.checksums != 0; })
      .def_prop_ro("open", [](const Info& i) { return i.open != 0; });
  using Status = perdure_pool_status;
  nb::class_<Status>(api, "Status", "perdure_pool_status of perdure.h.")
      .def_ro("version", &Status::version)
      .def_ro("commits", &Status::commits)
      .def_ro("commit_ns", &Status::commit_ns)
      .def_ro("commit_ns_last", &Status::commit_ns_last)
      .def_ro("committed_bytes", &Status::committed_bytes)
      .def_ro("restart_ns", &Status::restart_ns)
      .def_ro("model_ns", &Status::model_ns)
      .def_prop_ro("survives_power_failure",
                   [](const Status& s) { return s.survives_power_failure != 0; })
      .def_prop_ro("fell_back", [](const Status& s) { return s.fell_back != 0; })
      .def_prop_ro("levels_under_way", [](const Status& s) { return s.levels_under_way != 0; })
      .def_ro("old_ranks", &Status::old_ranks)
      .def_ro("lacking_snapshots", &Status::lacking_snapshots);
}

// Both have as many extents as the array, which python/perdure/api/array.py has checked.
void box(const Array& array, const std::vector<std::uint64_t>& global_shape,
         const std::vector<std::uint64_t>& first) {
  perdure_array* const handle = array.handle();
  const Calls& calls = array.pool->calls();
  checked(calls, [&] { return calls.box(handle, global_shape.data(), first.data()); });
}

void resize(const Array& array, const std::vector<std::uint64_t>& shape, std::size_t size_bytes,
            const nb::object& buffer) {
  (void)array.handle();
  auto lent = buffer.is_none() ? nullptr : borrow_any(buffer, size_bytes);
  array.pool->resize_array(*array.state, shape, std::move(lent), size_bytes);
}

void name_stream(const Pool& pool, int kind, std::uintptr_t stream) {
  perdure_pool* const handle = pool->handle();
  const Calls& calls = pool->calls();
  auto* const address = reinterpret_cast<void*>(stream);
  checked(calls, [&] { return calls.stream(handle, kind, address); });
}

std::vector<perdure_array_info> arrays(const Pool& pool, std::uint64_t version) {
  perdure_pool* const handle = pool->handle();
  const Calls& calls = pool->calls();
  std::size_t count = 0;
  checked(calls, [&] { return calls.arrays(handle, version, nullptr, 0, &count); });
  std::vector<perdure_array_info> found(count);
  checked(calls, [&] { return calls.arrays(handle, version, found.data(), count, &count); });
  return found;
}

// `resized`: arrays that have other extents in `version`.
void restore(const Pool& pool, std::uint64_t version,
             const std::vector<std::pair<Array, std::vector<std::uint64_t>>>& resized,
             const std::vector<std::size_t>& bytes) {
  std::vector<PoolState::Resized> given;
  for (std::size_t i = 0; i < resized.size(); ++i) {
    given.push_back({resized[i].first.state, resized[i].second, bytes.at(i)});
  }
  try {
    pool->restore(version, given);
  } catch (const Failure&) {
    pool->set_saving(false);
    throw;
  }
  pool->set_saving(false);
}

void bind_array(nb::module_& api) {
  nb::class_<Array>(api, "Array", "perdure_array of perdure.h.")
      .def("working", working, nb::sig("def working(self) -> memoryview"))
      .def("consistent", consistent, nb::sig("def consistent(self) -> memoryview"))
      .def("consistent_address", consistent_address)
      .def("write", write, "first"_a, "count"_a, "elements"_a)
      .def("box", box, "global_shape"_a, "first"_a)
      .def(
          "mark",
          [](const Array& array, std::uint64_t first, std::uint64_t count) {
            perdure_array* const handle = array.handle();
            const Calls& calls = array.pool->calls();
            checked(calls, [&] { return calls.mark(handle, first, count); });
          },
          "first"_a, "count"_a)
      .def("before_write",
           [](const Array& array) {
             perdure_array* const handle = array.handle();
             const Calls& calls = array.pool->calls();
             checked(calls, [&] { return calls.before_write(handle); });
           })
      .def("resize", resize, "shape"_a, "size_bytes"_a, "buffer"_a.none())
      .def("remove", [](const Array& array) {
        (void)array.handle();
        array.pool->remove_array(*array.state);
      });
}

}  // namespace

void bind_pool(nb::module_& api) {
  bind_structs(api);
  bind_array(api);
  const auto of_version = [](int (*Calls::*call)(perdure_pool*, std::uint64_t*)) {
    return [call](const Pool& pool) { return version_of(pool, call); };
  };
  const auto with_version = [](int (*Calls::*call)(perdure_pool*, std::uint64_t)) {
    return [call](const Pool& pool, std::uint64_t version) {
      perdure_pool* handle = pool->handle();
      checked_with_roles(pool, [&] { return (pool->calls().*call)(handle, version); });
    };
  };
  nb::class_<PoolState>(api, "Pool", "perdure_pool of perdure.h.")
      .def_prop_ro("is_open", &PoolState::is_open)
      .def_prop_ro("is_of_one_process", &PoolState::is_of_one_process)
      .def_prop_ro("is_of_windows", &PoolState::is_of_windows)
      .def("close", &PoolState::close)
      .def("array", open_array, "name"_a, "type"_a, "shape"_a, "mode"_a, "flags"_a, "ranks"_a,
           "size_bytes"_a, "buffer"_a.none(), "device"_a = 0)
      .def("stored_shape", stored_shape, "name"_a, "ranks"_a)
      .def("old_arrays", old_arrays, "old_rank"_a)
      .def("read", read_old, "name"_a, "old_rank"_a, "first"_a, "count"_a, "elements"_a)
      .def(
          "scalar",
          [](const Pool& pool, const std::string& name, const nb::bytes& first, int type) {
            return memory_view(pool->bind_scalar(name, {first.c_str(), first.size()}, type), false);
          },
          "name"_a, "first"_a, "type"_a = 0,
          nb::sig("def scalar(self, name: str, first: bytes, type: int = 0) -> memoryview"))
      .def(
          "file",
          [](const Pool& pool, const nb::bytes& path) {
            perdure_pool* handle = pool->handle();
            const std::string named(path.c_str(), path.size());
            checked(pool->calls(),
                    [&] { return pool->calls().file(handle, named.c_str(), nullptr); });
          },
          "path"_a)
      .def("restart", of_version(&Calls::restart))
      .def("commit", of_version(&Calls::commit))
      .def("commit_wait", of_version(&Calls::commit_wait))
      .def("stream", name_stream, "kind"_a, "stream"_a)
      .def("levels_wait", of_version(&Calls::levels_wait))
      .def("arrays", arrays, "version"_a)
      .def("restore", restore, "version"_a, "resized"_a, "bytes"_a)
      .def("delete_version", with_version(&Calls::delete_version), "version"_a)
      .def("commit_begin",
           [](const Pool& pool) {
             perdure_pool* handle = pool->handle();
             checked(pool->calls(), [&] { return pool->calls().commit_begin(handle); });
             pool->set_saving(true);
           })
      .def("due",
           [](const Pool& pool) {
             perdure_pool* handle = pool->handle();
             int due = 0;
             checked(pool->calls(), [&] { return pool->calls().commit_due(handle, &due); });
             return due;
           })
      .def("versions", versions)
      .def("status", status);
  api.def("open", open_solo, "path"_a, "options"_a);
  api.def("open_mpi", open_mpi, "path"_a, "options"_a, "comm"_a, "handle_bytes"_a);
}

}  // namespace perdure::python
