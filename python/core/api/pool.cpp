// SPDX-License-Identifier: BSD-3-Clause
#include "api/pool.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure::python {
namespace {

// A value that is wrong is refused by the library.
bool guards_stores() {
  const auto wanted = checks_stores();
  return wanted.ok() && wanted.value();
}

void require(const Status& status) {
  if (!status.ok()) throw Failure{static_cast<int>(status.code()), status.message()};
}

}  // namespace

PoolState::PoolState(const Calls& calls, perdure_pool* handle, std::string path, Kind kind)
    : calls_(&calls), handle_(handle), path_(std::move(path)), kind_(kind) {}

PoolState::~PoolState() {
  if (handle_ == nullptr) return;
  perdure_pool_status status;
  const bool ours = kind_ == Kind::solo && calls_->status(handle_, &status) == PERDURE_OK;
  if (ours && closes_quietly()) return;
  // The library goes on using buffers and scalars, but a view keeps the rank's file locked.
  for (const auto& array : lent_->arrays) {
    array->guards.clear();
    array->views.clear();
  }
  [[maybe_unused]] const LentMemory* kept = lent_.release();
}

// If closing fails, what was begun is not committed: so it is for a program that does not close.
bool PoolState::closes_quietly() {
  try {
    close();
    return true;
  } catch (const Failure&) {
    return handle_ == nullptr;
  }
}

perdure_pool* PoolState::handle() const {
  if (handle_ != nullptr) return handle_;
  throw Failure{PERDURE_E_STATE, "the pool " + path_ + " is closed; perdure.open() opens it again"};
}

// In this order: 1. no other thread is in a call; 2. arrays that are still needed are copied, which
// may fail and leave all as it was; 3. nobody finds the pool open any more; 4. it is closed.
void PoolState::close() {
  if (handle_ == nullptr) return;
  if (kind_ != Kind::windows) {
    perdure_pool_status status;
    const int code = calls_->status(handle_, &status);
    if (code != PERDURE_OK) throw Failure{code, calls_->last_error()};
    detach_views(nullptr);
  }
  perdure_pool* closing = std::exchange(handle_, nullptr);
  try {
    checked(*calls_, [&] { return calls_->close(closing); });
  } catch (const Failure& failure) {
    if (failure.code == PERDURE_E_STATE) handle_ = closing;
    throw;
  }
}

void PoolState::detach_views(const ArrayState* of) {
  std::vector<std::pair<SharedMemory*, Pages>> needed;
  std::vector<ArrayState*> arrays;
  for (const auto& array : lent_->arrays) {
    if (of == nullptr || of == array.get()) arrays.push_back(array.get());
  }
  for (const ArrayState* array : arrays) {
    for (const auto& [place, view] : array->views) {
      if (view.use_count() > 1) needed.emplace_back(view.get(), copy_of(*view));
    }
  }
  for (ArrayState* array : arrays) array->guards.clear();
  for (auto& [view, copy] : needed) detach(*view, std::move(copy));
  for (ArrayState* array : arrays) array->views.clear();
}

void PoolState::set_size(ArrayState& state, const std::vector<std::uint64_t>& shape,
                         std::shared_ptr<SharedMemory> buffer, std::size_t size_bytes) {
  checked(*calls_, [&] {
    return calls_->array_resize(state.handle, shape.data(),
                                buffer == nullptr ? nullptr : buffer->begin);
  });
  state.buffer = std::move(buffer);
  state.size_bytes = size_bytes;
}

void PoolState::resize_array(ArrayState& state, const std::vector<std::uint64_t>& shape,
                             std::shared_ptr<SharedMemory> buffer, std::size_t size_bytes) {
  (void)handle();
  const bool lent = buffer != nullptr;
  if (state.buffer != nullptr && !lent) {
    buffer = allocate(size_bytes);
    const std::size_t kept = std::min(size_bytes, state.size_bytes);
    if (kept != 0) std::memcpy(buffer->begin, state.buffer->begin, kept);
  }
  detach_views(&state);
  set_size(state, shape, std::move(buffer), size_bytes);
  state.lent = lent;
  guard_views();
}

void PoolState::restore(std::uint64_t version, const std::vector<Resized>& resized) {
  perdure_pool* const pool = handle();
  struct Before {
    ArrayState* state;
    std::vector<std::uint64_t> shape;
    std::shared_ptr<SharedMemory> buffer;
    std::size_t size_bytes;
  };
  std::vector<Before> befores;
  try {
    for (const Resized& each : resized) {
      ArrayState& state = *each.state;
      detach_views(&state);
      if (state.buffer == nullptr || state.lent) continue;  // it follows, or is refused
      std::vector<std::uint64_t> shape(8);
      unsigned dimensions = 0;
      checked(*calls_,
              [&] { return calls_->array_shape(state.handle, &dimensions, shape.data()); });
      befores.push_back({&state, shape, state.buffer, state.size_bytes});
      set_size(state, each.shape, allocate(each.size_bytes), each.size_bytes);
    }
    checked(*calls_, [&] { return calls_->restore(pool, version); });
  } catch (const Failure&) {
    for (Before& before : befores) {
      set_size(*before.state, before.shape, std::move(before.buffer), before.size_bytes);
    }
    throw;
  }
  for (const Resized& each : resized) each.state->size_bytes = each.size_bytes;
}

void PoolState::remove_array(ArrayState& state) {
  (void)handle();
  detach_views(&state);
  checked(*calls_, [&] { return calls_->array_remove(state.handle); });
  state.handle = nullptr;
  state.guards_views = false;
}

ArrayState* PoolState::open_array(const std::string& name, int type,
                                  const std::vector<std::uint64_t>& shape, int mode, unsigned flags,
                                  int ranks, std::shared_ptr<SharedMemory> buffer,
                                  std::size_t size_bytes, const perdure_device* device) {
  perdure_pool* pool = handle();
  auto state = std::make_unique<ArrayState>();
  state->name = name;
  state->size_bytes = size_bytes;
  const bool lent = buffer != nullptr;
  const bool buffered = mode == PERDURE_COPY || mode == PERDURE_LOG;
  if (buffered && buffer == nullptr) buffer = allocate(size_bytes);
  perdure_array_options options{};
  options.flags = flags;
  options.ranks = ranks;
  options.device = device;
  // One in twin or flush mode is passed on, so that the library refuses it on all ranks.
  if (buffer != nullptr) options.buffer = buffer->begin;
  state->lent = lent;
  state->buffer = std::move(buffer);
  state->guards_views = mode == PERDURE_TWIN && size_bytes != 0 && guards_stores();
  checked(*calls_, [&] {
    return calls_->array_open(pool, name.c_str(), type, static_cast<unsigned>(shape.size()),
                              shape.data(), mode, &options, &state->handle);
  });
  lent_->arrays.push_back(std::move(state));
  return lent_->arrays.back().get();
}

void PoolState::set_saving(bool saving) {
  saving_ = saving;
  guard_views();
}

void PoolState::guard_views() {
  if (handle_ == nullptr) return;
  for (const auto& array : lent_->arrays) {
    if (!array->guards_views || array->handle == nullptr) continue;
    const void* const working = saving_ ? nullptr : calls_->working(array->handle);
    for (const auto& [place, view] : array->views) {
      auto& guard = array->guards[place];
      if (guard == nullptr) {
        auto made = StoreGuard::create(view->pages.begin(), view->pages.size_bytes(), view->begin,
                                       array->name);
        require(made.status());
        guard = made.take();
      }
      require(guard->allow(place == working));
    }
  }
}

std::shared_ptr<SharedMemory> PoolState::bind_scalar(const std::string& name,
                                                     std::string_view first, int type) {
  auto memory = allocate(first.size());
  std::memcpy(memory->begin, first.data(), first.size());
  checked(*calls_, [&] {
    return calls_->scalar(handle(), name.c_str(), type, memory->begin, first.size());
  });
  lent_->scalars.push_back(memory);
  return memory;
}

}  // namespace perdure::python
