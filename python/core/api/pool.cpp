// SPDX-License-Identifier: BSD-3-Clause
#include "api/pool.hpp"

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
    detach_views();
  }
  perdure_pool* closing = std::exchange(handle_, nullptr);
  try {
    checked(*calls_, [&] { return calls_->close(closing); });
  } catch (const Failure& failure) {
    if (failure.code == PERDURE_E_STATE) handle_ = closing;
    throw;
  }
}

void PoolState::detach_views() {
  std::vector<std::pair<SharedMemory*, Pages>> needed;
  for (const auto& array : lent_->arrays) {
    for (const auto& [place, view] : array->views) {
      if (view.use_count() > 1) needed.emplace_back(view.get(), copy_of(*view));
    }
  }
  for (const auto& array : lent_->arrays) array->guards.clear();
  for (auto& [view, copy] : needed) detach(*view, std::move(copy));
  for (const auto& array : lent_->arrays) array->views.clear();
}

ArrayState* PoolState::open_array(const std::string& name, int type,
                                  const std::vector<std::uint64_t>& shape, int mode, unsigned flags,
                                  std::shared_ptr<SharedMemory> buffer, std::size_t size_bytes) {
  perdure_pool* pool = handle();
  auto state = std::make_unique<ArrayState>();
  state->name = name;
  state->size_bytes = size_bytes;
  const bool buffered = mode == PERDURE_COPY || mode == PERDURE_LOG;
  if (buffered && buffer == nullptr) buffer = allocate(size_bytes);
  perdure_array_options options{};
  options.flags = flags;
  // One in twin or flush mode is passed on, so that the library refuses it on all ranks.
  if (buffer != nullptr) options.buffer = buffer->begin;
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
    if (!array->guards_views) continue;
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
                                                     std::string_view first) {
  auto memory = allocate(first.size());
  std::memcpy(memory->begin, first.data(), first.size());
  checked(*calls_,
          [&] { return calls_->scalar(handle(), name.c_str(), memory->begin, first.size()); });
  lent_->scalars.push_back(memory);
  return memory;
}

}  // namespace perdure::python
