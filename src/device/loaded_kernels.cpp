// SPDX-License-Identifier: BSD-3-Clause
#include "device/loaded_kernels.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "device/kernels_text.hpp"

namespace perdure {
namespace {

// By driver and context. Never destroyed: pools may be closed while the process ends.
struct Known {
  std::mutex mutex;
  std::map<std::pair<const CudaDriver*, DriverHandle>, std::weak_ptr<const LoadedKernels>> loaded;
};

Known& known() {
  static auto& all = *new Known;
  return all;
}

}  // namespace

std::shared_ptr<const LoadedKernels> LoadedKernels::of(const CudaDriver& driver,
                                                       DriverHandle context) {
  if (*kernels_text() == '\0') return nullptr;
  // Another thread that asks for the same is to have these.
  const std::lock_guard<std::mutex> lock(known().mutex);
  auto& loaded = known().loaded;
  std::erase_if(loaded, [](const auto& each) { return each.second.expired(); });
  auto& mine = loaded[{&driver, context}];
  if (auto had = mine.lock(); had && had->is_here()) return had;
  const std::shared_ptr<LoadedKernels> made(new LoadedKernels(driver));
  if (!made->load()) return nullptr;
  made->mark();
  if (made->can_be_shared()) mine = made;
  return made;
}

bool LoadedKernels::load() {
  if (driver_.module_load(&module_, kernels_text()) != 0) {
    module_ = nullptr;
    return false;
  }
  const auto find = [this](DriverHandle& kernel, const char* name) {
    return driver_.module_function(&kernel, module_, name) == 0;
  };
  return find(block_sums_, "perdure_block_sums") && find(page_sums_, "perdure_page_sums") &&
         find(list_changed_, "perdure_list_changed") && find(store_listed_, "perdure_store");
}

// Without a numbered mark they are one pool's.
void LoadedKernels::mark() {
  if (driver_.mem_alloc(&mark_, 1) != 0) mark_ = 0;
  number_ = number_of_mark();
  if (mark_ == 0 || number_ != 0) return;
  (void)driver_.mem_free(mark_);
  mark_ = 0;
}

std::uint64_t LoadedKernels::number_of_mark() const {
  if (mark_ == 0) return 0;
  std::uint64_t number = 0;
  const int result = driver_.pointer_get_attribute(&number, allocation_attribute, mark_);
  return result == 0 ? number : 0;
}

// device.K1
LoadedKernels::~LoadedKernels() {
  if (!is_here()) return;
  if (module_ != nullptr && driver_.module_unload != nullptr) (void)driver_.module_unload(module_);
  if (mark_ != 0) (void)driver_.mem_free(mark_);
}

}  // namespace perdure
