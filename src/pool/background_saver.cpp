// SPDX-License-Identifier: BSD-3-Clause
#include "pool/background_saver.hpp"

namespace perdure {

BackgroundSaver::BackgroundSaver(Device& device, IoToken* token)
    : device_(device), token_(token), thread_([this] { run(); }) {}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundSaver::start(const std::vector<VersionedArray*>& arrays) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    PERDURE_ASSERT(!busy_);
    arrays_ = arrays;
    saved_ = 0;
    bytes_ = 0;
    status_ = Status::success();
    busy_ = true;
  }
  changed_.notify_all();
}

void BackgroundSaver::wait_for(const VersionedArray& array) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::size_t position = array.place();
  if (position >= arrays_.size() || arrays_[position] != &array) return;  // it has no part in it
  changed_.wait(lock, [&] { return !busy_ || saved_ > position; });
}

void BackgroundSaver::wait_until_idle() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
}

Status BackgroundSaver::wait_all(std::uint64_t& bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
  bytes = bytes_;
  return status_;
}

void BackgroundSaver::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return busy_ || stop_; });
    if (!busy_) return;
    lock.unlock();
    save_all();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void BackgroundSaver::save_all() {
  const TokenScope token(token_, IoKind::write);
  Status status;
  for (VersionedArray* array : arrays_) {
    auto saved = array->save();
    status = saved.status();
    if (!status.ok()) break;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++saved_;
    bytes_ += saved.value();
    changed_.notify_all();
  }
  if (status.ok()) status = device_.fence();  // orders this thread's copies; the pool's cannot
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = status;
}

}  // namespace perdure
