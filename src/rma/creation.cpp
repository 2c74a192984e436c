// SPDX-License-Identifier: BSD-3-Clause
//
// Windows: made, extended by attached memory, and freed.
//
// Making a persistent window is collective as MPI says, in these steps, each of which succeeds on
// all ranks or on none: join the pool (which the first window opens and restarts), make the real
// window, open the array, which brings back the contents of the restored version. Nobody can reach
// the memory before its contents are there, as the last step ends with an agreement. A window that
// PERDURE_WINDOWS asked for and that a step lacks room for is made plain (plain_window.hpp).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/agreement.hpp"
#include "mpi/info.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/direct_copy.hpp"
#include "rma/plain_window.hpp"
#include "rma/window_calls.hpp"
#include "rma/window_ends.hpp"
#include "rma/window_pool.hpp"
#include "rma/window_request.hpp"

namespace perdure {
namespace {

std::atomic<int> living_windows{0};

// The program's own arguments.
struct Memory {
  void* base = nullptr;  // of MPI_Win_create
  MPI_Aint size = 0;
  MPI_Aint disp_unit = 1;
};

ArrayMode array_mode(WindowMode mode) {
  switch (mode) {
    case WindowMode::copy:
      return ArrayMode::copy;
    case WindowMode::log:
      return ArrayMode::log;
    case WindowMode::twin:
      return ArrayMode::twin;
    case WindowMode::flush:
      return ArrayMode::flush;
  }
  return ArrayMode::copy;
}

bool lives_in_pool(WindowMode mode) {
  return mode == WindowMode::twin || mode == WindowMode::flush;
}

// The displacement unit is part of the shape: a window of another unit holds another layout.
ArrayShape window_shape(const WindowOptions& options, const Memory& memory) {
  ArrayShape shape;
  shape.type = ArrayType::byte;
  shape.mode = array_mode(options.mode);
  shape.checksums = options.checksums.value_or(!lives_in_pool(options.mode));
  const auto size = static_cast<std::uint64_t>(memory.size);
  const auto unit = static_cast<std::uint64_t>(memory.disp_unit);
  if (options.box) {
    shape.extents = options.box->own;
    shape.extents.push_back(unit);
  } else if (unit != 0 && size % unit == 0) {
    shape.extents = {size / unit, unit};
  } else {
    shape.extents = {size};
  }
  return shape;
}

// The bytes of a unit are a dimension of their own.
std::optional<GlobalBox> global_box(const WindowOptions& options, const Memory& memory) {
  if (!options.box) return std::nullopt;
  GlobalBox box{options.box->global, options.box->first};
  box.global_shape.push_back(static_cast<std::uint64_t>(memory.disp_unit));
  box.first.push_back(0);
  return box;
}

Status other_size(const WindowOptions& options, const Memory& memory) {
  return Status(Code::invalid_argument, "window '", options.name, "' has ", memory.size,
                " bytes on this rank, in units of ", memory.disp_unit,
                ", which the own extents of its perdure_box, ", listed(options.box->own, {}, "x"),
                ", do not make");
}

// What is said for another number of ranks, of this window.
Status check_division(WindowOptions& options, WindowFlavor flavor, const Memory& memory) {
  if (flavor == WindowFlavor::dynamic && options.by_environment) options.ranks = RankRule::none;
  if (flavor == WindowFlavor::dynamic && (options.box || options.ranks != RankRule::none)) {
    return Status(Code::invalid_argument, "window '", options.name,
                  "' is dynamic: its regions are those of their ranks, and nothing divides them "
                  "anew; leave perdure_ranks and perdure_box out");
  }
  if (!options.box) return Status::success();
  const auto unit = static_cast<std::uint64_t>(memory.disp_unit);
  std::uint64_t left = unit == 0 ? 1 : static_cast<std::uint64_t>(memory.size) % unit;
  std::uint64_t cells = unit == 0 ? 0 : static_cast<std::uint64_t>(memory.size) / unit;
  for (const std::uint64_t extent : options.box->own) {
    if (extent == 0) return memory.size == 0 ? Status::success() : other_size(options, memory);
    left += cells % extent;
    cells /= extent;
  }
  return left == 0 && cells == 1 ? Status::success() : other_size(options, memory);
}

ArrayOptions array_options(const WindowOptions& options, void* buffer, bool keep_contents) {
  ArrayOptions with;
  with.ranks = options.ranks;
  with.buffer = buffer;
  with.compare = options.mode == WindowMode::log;
  with.staged = options.asynchronous;
  with.keep_contents = keep_contents;
  return with;
}

// What the kind of window can't do; a program that knows nothing of it gets mode copy instead.
Status fit_mode(WindowOptions& options, WindowFlavor flavor, bool contiguous) {
  if (!lives_in_pool(options.mode)) return Status::success();
  std::string reason;
  if (flavor == WindowFlavor::create) {
    reason = "the memory of MPI_Win_create is the program's own; use MPI_Win_allocate";
  } else if (flavor == WindowFlavor::dynamic) {
    reason = "memory that is attached is the program's own; use MPI_Win_allocate";
  } else if (flavor == WindowFlavor::shared && contiguous) {
    reason =
        "each rank's memory is in a file of its own, so the segments can't be contiguous; set "
        "the info key alloc_shared_noncontig=true";
  }
  if (reason.empty()) return Status::success();
  if (options.by_environment) {
    options.mode = WindowMode::copy;
    options.given["perdure_mode"] = "copy";
    return Status::success();
  }
  return Status(Code::invalid_argument, "perdure_mode='", options.given["perdure_mode"],
                "' is not possible here: ", reason);
}

std::unique_ptr<Window> new_window(const WindowOptions& options, WindowFlavor flavor,
                                   WindowPool* pool, const Memory& memory) {
  auto window = std::make_unique<Window>();
  window->options = options;
  window->flavor = flavor;
  window->pool = pool;
  window->size_bytes = memory.size;
  window->disp_unit = static_cast<int>(memory.disp_unit);
  window->create_flavor =
      flavor == WindowFlavor::shared ? MPI_WIN_FLAVOR_SHARED : MPI_WIN_FLAVOR_ALLOCATE;
  return window;
}

// Collective: the window can't be persistent. Makes it plain if the program knows nothing of it and
// one of `lacks` is the reason; otherwise raises the error.
template <typename Make>
int do_without(const WindowOptions& options, WindowPool* pool, MPI_Comm comm, const Status& status,
               const Make& make, std::initializer_list<Code> lacks = {Code::no_space}) {
  if (pool != nullptr) (void)WindowPool::leave(pool);  // report the first failure
  if (!options.by_environment || !agree_stays_plain(comm, status, lacks)) {
    return raise_on_comm(comm, status);
  }
  report_plain_window(comm, "window '" + options.name + "' of " + options.pool.path, status);
  void* base = nullptr;
  return make(&base);
}

Status enter_table(Window& window) {
  PERDURE_TRY(window_table.add(window.handle, &window));
  for (const auto& half : window.halves) PERDURE_TRY(window_table.add(half->handle, half.get()));
  return Status::success();
}

void leave_table(const Window& window) {
  window_table.remove(window.handle);
  for (const auto& half : window.halves) window_table.remove(half->handle);
}

// Local, once all ranks have it in their tables.
void take(std::unique_ptr<Window> window) {
  window->pool->add(*window);
  if (living_windows++ == 0) take_window_calls(true);
  note_made(*window);
  (void)window.release();  // until win_free
}

// Modes copy and log: `make` lets MPI make the window, and tells where its memory is.
template <typename Make>
int make_plain(const WindowOptions& options, WindowFlavor flavor, WindowPool* pool, MPI_Comm comm,
               const Memory& memory, const Make& make, MPI_Win* win) {
  void* base = nullptr;
  if (const int error = make(&base); error != MPI_SUCCESS) {
    (void)WindowPool::leave(pool);
    return error;
  }
  auto window = new_window(options, flavor, pool, memory);
  window->handle = *win;
  Status status = enter_table(*window);
  if (flavor != WindowFlavor::dynamic) {
    auto array =
        pool->pool().open_array_on_all(options.name, window_shape(options, memory),
                                       array_options(options, base, flavor == WindowFlavor::create),
                                       status, global_box(options, memory));
    status = array.status();
    if (array.ok()) window->array = array.value();
  } else {
    const CollectiveCall call(pool->group(), "the making of a window");
    status = agree(pool->group(), status);
  }
  if (status.ok()) {
    take(std::move(window));
    return MPI_SUCCESS;
  }
  leave_table(*window);
  WindowCalls::Win_free::real(win);
  return do_without(options, pool, comm, status, make);
}

ExposedPart part_of(const VersionedArray& array, const Memory& memory) {
  ExposedPart part;
  part.offset = array.copy_offset(0);
  part.copy_bytes = array.size_bytes();
  part.copies = array.copies();
  part.stride = part.copies > 1 ? array.copy_offset(1) - array.copy_offset(0) : 0;
  part.unit_bytes = static_cast<std::uint64_t>(memory.disp_unit);
  return part;
}

// What direct copies must know of the window's epochs. Collective.
void watch_epochs(Window& window) {
  window.lock_uses = std::vector<std::atomic<std::uint32_t>>(window.exposure.targets.size());
  if (mpi_copies_one_run || !window.exposure.shared) return;
  window.boards = window.pool->take_boards();
}

Status expose_half(Window& whole, std::uint32_t copy, const Memory& memory, MPI_Info info) {
  auto half = new_window(whole.options, whole.flavor, whole.pool, memory);
  ExposedPart part = part_of(*whole.array, memory);
  part.offset = whole.array->copy_offset(copy);
  part.copies = 1;
  PERDURE_TRY_ASSIGN(const ExposedPool* const pool, whole.pool->exposed());
  PERDURE_TRY_ASSIGN(half->exposure, expose(whole.pool->group(), *pool, part, info));
  half->handle = half->exposure.window;
  watch_epochs(*half);
  half->array = whole.array;
  half->whole = &whole;
  whole.halves.push_back(std::move(half));
  return Status::success();
}

Status expose_window(Window& window, const Memory& memory, MPI_Info info) {
  const CollectiveCall call(window.pool->group(), "the making of a window");
  PERDURE_TRY_ASSIGN(const ExposedPool* const pool, window.pool->exposed());
  PERDURE_TRY_ASSIGN(window.exposure,
                     expose(window.pool->group(), *pool, part_of(*window.array, memory), info));
  window.handle = window.exposure.window;
  watch_epochs(window);
  const bool alone = window.pool->group().ranks() == 1;
  if (window.flavor == WindowFlavor::shared && !window.exposure.shared && !alone) {
    return {Code::unsupported,
            "the pool's files can't be mapped over the memory of MPI_Win_allocate_shared here; use "
            "perdure_mode=copy"};
  }
  if (window.options.mode != WindowMode::twin || !window.options.halves) return Status::success();
  for (std::uint32_t copy = 0; copy < window.array->copies(); ++copy) {
    PERDURE_TRY(expose_half(window, copy, memory, info));
  }
  return Status::success();
}

void withdraw_one(Window& window) {
  withdraw(window.exposure);
  window.pool->give_back(std::move(window.boards));
}

void withdraw_all(Window& window) {
  for (const auto& half : window.halves) withdraw_one(*half);
  window.halves.clear();
  if (window.exposure.made) withdraw_one(window);
}

// Collective.
Status enter_on_all(Window& window) {
  const CollectiveCall call(window.pool->group(), "the making of a window");
  Status entered = agree(window.pool->group(), enter_table(window));
  if (!entered.ok()) leave_table(window);
  return entered;
}

// Modes twin and flush: memory in the pool. `plain` makes the window without it.
template <typename Make>
int make_exposed(const WindowOptions& options, WindowFlavor flavor, WindowPool* pool, MPI_Comm comm,
                 const Memory& memory, MPI_Info info, const Make& plain, void* base, MPI_Win* win) {
  auto window = new_window(options, flavor, pool, memory);
  auto array = pool->pool().open_array_on_all(options.name, window_shape(options, memory),
                                              array_options(options, nullptr, false),
                                              Status::success(), global_box(options, memory));
  if (!array.ok()) return do_without(options, pool, comm, array.status(), plain);
  window->array = array.value();
  Window& made = *window;
  Status status = expose_window(made, memory, info);
  const MPI_Win handle = made.handle;
  std::byte* address = status.ok() ? made.base() : nullptr;
  if (status.ok()) status = enter_on_all(made);
  if (status.ok()) {
    take(std::move(window));
  } else {
    withdraw_all(made);
    (void)pool->pool().close_array(array.value(), false);
    return do_without(options, pool, comm, status, plain, {Code::no_space, Code::unsupported});
  }
  *win = handle;
  if (base != nullptr) *static_cast<void**>(base) = address;
  return MPI_SUCCESS;
}

// What all four ways of making a window have in common. `make` as in make_plain().
template <typename Make>
int make_window(WindowRequest& request, WindowFlavor flavor, bool contiguous, MPI_Info info,
                MPI_Comm comm, const Memory& memory, const Make& make, void* base, MPI_Win* win) {
  WindowOptions& options = request.options;
  Status local = request.able.ok() ? request.status : request.able;
  if (local.ok()) local = fit_mode(options, flavor, contiguous);
  if (local.ok()) local = check_division(options, flavor, memory);
  auto found = WindowPool::find_on_all(local, options, comm);
  if (!found.ok()) return raise_on_comm(comm, found.status());
  WindowPool* pool = found.value();
  if (pool == nullptr && options.by_environment &&
      agree_stays_plain(comm, request.able, {Code::unsupported})) {
    if (local.ok()) local = {Code::peer_failed, "another of its ranks can't make it persistent"};
    report_plain_window(comm, "a window", local);
    void* at = nullptr;
    return make(&at);
  }
  name_window(request);
  if (pool == nullptr) {
    auto joined = WindowPool::join(local, options, comm);
    if (!joined.ok()) return do_without(options, nullptr, comm, joined.status(), make);
    pool = joined.value();
  }
  if (lives_in_pool(options.mode)) {
    return make_exposed(options, flavor, pool, comm, memory, info, make, base, win);
  }
  return make_plain(options, flavor, pool, comm, memory, make, win);
}

bool wants_contiguous(MPI_Info info) {
  const KeyValues keys = read_info(info);
  const auto found = keys.find("alloc_shared_noncontig");
  return found == keys.end() || found->second != "true";
}

// The part of the window that an attached region is: after a restart the program attaches again,
// and its regions are matched with those of the restored version in the order of attachment.
std::uint32_t next_part(const Window& window) {
  const auto waiting = window.pool->pool().first_closed_part(window.options.name);
  return waiting.value_or(window.last_part + 1);
}

// Local, as MPI_Win_attach is. Brings back the contents that the restored version holds.
Status attach(Window& window, void* base, MPI_Aint size) {
  ArrayOptions with = array_options(window.options, base, true);
  with.part = next_part(window);
  auto array = window.pool->pool().open_array(window.options.name,
                                              window_shape(window.options, {base, size, 1}), with);
  if (!array.ok()) return array.status();
  window.attached.emplace(base, array.value());
  window.last_part = std::max(window.last_part, with.part);
  return Status::success();
}

// After one that stayed plain all do: a later one that had room again would be taken for it when
// the program attaches its regions after a restart.
Status attach_or_refuse(Window& window, void* base, MPI_Aint size) {
  if (!window.plain_regions) return attach(window, base, size);
  return {Code::no_space, "there was no room for a region before it"};
}

// Calls whose unit of displacements is an int, and those with _c, are of one shape.
template <typename Call, typename Unit>
int create_by(void* base, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm,
              MPI_Win* win) {
  WindowRequest request = read_request(info, comm, size, disp_unit);
  if (!request.persistent) return Call::real(base, size, disp_unit, info, comm, win);
  const auto make = [&](void** at) {
    *at = base;
    return Call::real(base, size, disp_unit, info, comm, win);
  };
  return make_window(request, WindowFlavor::create, true, info, comm, {base, size, disp_unit}, make,
                     nullptr, win);
}

template <typename Call, typename Unit>
int allocate_by(WindowFlavor flavor, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm,
                void* base, MPI_Win* win) {
  WindowRequest request = read_request(info, comm, size, disp_unit);
  if (!request.persistent) return Call::real(size, disp_unit, info, comm, base, win);
  const auto make = [&](void** at) {
    const int error = Call::real(size, disp_unit, info, comm, base, win);
    if (error == MPI_SUCCESS) *at = *static_cast<void**>(base);
    return error;
  };
  const bool contiguous = flavor != WindowFlavor::shared || wants_contiguous(info);
  return make_window(request, flavor, contiguous, info, comm, {nullptr, size, disp_unit}, make,
                     base, win);
}

}  // namespace

int win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
               MPI_Win* win) {
  return create_by<WindowCalls::Win_create>(base, size, disp_unit, info, comm, win);
}

int win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* base,
                 MPI_Win* win) {
  return allocate_by<WindowCalls::Win_allocate>(WindowFlavor::allocate, size, disp_unit, info, comm,
                                                base, win);
}

int win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* base,
                        MPI_Win* win) {
  return allocate_by<WindowCalls::Win_allocate_shared>(WindowFlavor::shared, size, disp_unit, info,
                                                       comm, base, win);
}

int win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  WindowRequest request = read_request(info, comm, 0, 1);
  if (!request.persistent) return WindowCalls::Win_create_dynamic::real(info, comm, win);
  const auto make = [&](void**) { return WindowCalls::Win_create_dynamic::real(info, comm, win); };
  return make_window(request, WindowFlavor::dynamic, true, info, comm, {}, make, nullptr, win);
}

#if MPI_VERSION >= 4
int win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                 MPI_Win* win) {
  return create_by<WindowCalls::Win_create_c>(base, size, disp_unit, info, comm, win);
}

int win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* base,
                   MPI_Win* win) {
  return allocate_by<WindowCalls::Win_allocate_c>(WindowFlavor::allocate, size, disp_unit, info,
                                                  comm, base, win);
}

int win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                          void* base, MPI_Win* win) {
  return allocate_by<WindowCalls::Win_allocate_shared_c>(WindowFlavor::shared, size, disp_unit,
                                                         info, comm, base, win);
}
#endif

int win_attach(MPI_Win win, void* base, MPI_Aint size) {
  const int error = WindowCalls::Win_attach::real(win, base, size);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  const Status attached = attach_or_refuse(*window, base, size);
  if (attached.ok()) return MPI_SUCCESS;
  if (window->options.by_environment && attached.code() == Code::no_space) {
    report_plain("a region attached to window '" + window->options.name + "'", attached);
    window->plain_regions = true;
    return MPI_SUCCESS;
  }
  WindowCalls::Win_detach::real(win, base);
  return raise_on_window(win, attached);
}

int win_detach(MPI_Win win, const void* base) {
  const int error = WindowCalls::Win_detach::real(win, base);
  Window* window = find_window(win);
  if (error != MPI_SUCCESS || window == nullptr) return error;
  const auto found = window->attached.find(base);
  if (found == window->attached.end()) return MPI_SUCCESS;
  const Status closed = window->pool->detach(*window, *found->second);
  window->attached.erase(found);
  if (window->attached.empty()) window->last_part = 0;
  return closed.ok() ? MPI_SUCCESS : raise_on_window(win, closed);
}

int win_free(MPI_Win* win) {
  Window* found = win == nullptr ? nullptr : find_window(*win);
  if (found == nullptr) return WindowCalls::Win_free::real(win);
  if (found->whole != nullptr) {
    return raise_on_window(
        *win, {Code::invalid_argument, "half of a twin window; it is freed with its window"});
  }
  if (Status all = found->pool->agree_to_free(*found); !all.ok()) return raise_on_window(*win, all);
  const std::unique_ptr<Window> window(found);
  Status status = window->pool->remove(*window);
  leave_table(*window);
  note_freed(*window);
  int error = MPI_SUCCESS;
  if (window->exposure.made) {
    withdraw_all(*window);
    *win = win_null();
  } else {
    error = WindowCalls::Win_free::real(win);
  }
  if (Status left = WindowPool::leave(window->pool); status.ok()) status = left;
  if (--living_windows == 0) take_window_calls(false);
  if (error != MPI_SUCCESS || status.ok()) return error;
  return raise_on_comm(comm_world(), status);
}

}  // namespace perdure
