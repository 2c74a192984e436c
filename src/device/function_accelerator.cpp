// SPDX-License-Identifier: BSD-3-Clause
#include "device/function_accelerator.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace perdure {
namespace {

void* pointer_to(DeviceAddress at) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
}

Status failed(const char* name, int result) {
  return {Code::io_error, sentence("the program's function `", name, "` of perdure_device answers ",
                                   result, ", which is a failure; the last version is whole")};
}

Status has_no_kernels() {
  return {Code::unsupported, "functions of a program have no kernels"};
}

}  // namespace

std::shared_ptr<FunctionTurn> FunctionTurn::of(const void* context) {
  static std::mutex mutex;
  static auto& turns = *new std::map<const void*, std::weak_ptr<FunctionTurn>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::erase_if(turns, [](const auto& each) { return each.second.expired(); });
  auto turn = turns[context].lock();
  if (turn == nullptr) turns[context] = turn = std::make_shared<FunctionTurn>();
  return turn;
}

Status FunctionAccelerator::call(int (*function)(void*), const char* name) {
  if (function == nullptr) return Status::success();
  const std::lock_guard<std::mutex> lock(turn_->mutex);
  const int result = function(functions_.context);
  return result == 0 ? Status::success() : failed(name, result);
}

Status FunctionAccelerator::copy(void* to, const void* from, std::uint64_t bytes,
                                 CopyDirection direction) {
  if (bytes == 0) return Status::success();
  const std::lock_guard<std::mutex> lock(turn_->mutex);
  const int result =
      functions_.copy(functions_.context, to, from, bytes, static_cast<int>(direction));
  return result == 0 ? Status::success() : failed("copy", result);
}

Result<DeviceAddress> FunctionAccelerator::allocate(std::uint64_t bytes) {
  if (functions_.allocate == nullptr) {
    return Status(Code::no_space, "perdure_device has no `allocate`");
  }
  const std::lock_guard<std::mutex> lock(turn_->mutex);
  void* const made =
      functions_.allocate(functions_.context, nullptr, std::max<std::uint64_t>(bytes, 1));
  if (made == nullptr) {
    return Status(Code::no_space, "`allocate` of perdure_device has no room for ", bytes, " bytes");
  }
  return static_cast<DeviceAddress>(reinterpret_cast<std::uintptr_t>(made));
}

void FunctionAccelerator::release(DeviceAddress memory) {
  const std::lock_guard<std::mutex> lock(turn_->mutex);
  (void)functions_.allocate(functions_.context, pointer_to(memory), 0);
}

Status FunctionAccelerator::register_host(std::byte*, std::uint64_t) {
  return {Code::unsupported, "functions of a program register no memory"};
}

Status FunctionAccelerator::finish() {
  if (functions_.wait == nullptr) return Status::success();
  const std::lock_guard<std::mutex> lock(turn_->mutex);
  const int result = functions_.wait(functions_.context);
  if (result == 0) return Status::success();
  ++turn_->failed_waits;  // before anybody else waits
  return failed("wait", result);
}

Status FunctionAccelerator::follow(const ProgramStream*) {
  return call(functions_.follow, "follow");
}

Status FunctionAccelerator::hold(const ProgramStream*, DriverHandle) {
  return call(functions_.hold, "hold");
}

Status FunctionAccelerator::copy_to_host(std::byte* to, DeviceAddress from, std::uint64_t bytes) {
  return copy(to, pointer_to(from), bytes, CopyDirection::to_host);
}

Status FunctionAccelerator::copy_from_host(DeviceAddress to, const std::byte* from,
                                           std::uint64_t bytes) {
  return copy(pointer_to(to), from, bytes, CopyDirection::to_device);
}

Status FunctionAccelerator::copy_within(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  return copy(pointer_to(to), pointer_to(from), bytes, CopyDirection::within);
}

Status FunctionAccelerator::clear(DeviceAddress to, std::uint64_t bytes) {
  static constexpr std::array<std::byte, std::size_t{64} << 10U> zeros{};
  for (std::uint64_t begin = 0; begin < bytes; begin += zeros.size()) {
    PERDURE_TRY(copy_from_host(to + begin, zeros.data(),
                               std::min<std::uint64_t>(zeros.size(), bytes - begin)));
  }
  return Status::success();
}

Status FunctionAccelerator::sum(Unit, DeviceAddress, DeviceAddress, std::uint64_t) {
  return has_no_kernels();
}

Status FunctionAccelerator::list_changed(const ChangeTables&, std::uint64_t) {
  return has_no_kernels();
}

Status FunctionAccelerator::store_listed(const ChangeTables&, DeviceAddress, std::byte*,
                                         std::uint64_t) {
  return has_no_kernels();
}

}  // namespace perdure
