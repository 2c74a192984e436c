// SPDX-License-Identifier: BSD-3-Clause
#include "base/isal.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/environment.hpp"

namespace perdure {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

const Isal* load() {
  if (environment("PERDURE_ISAL") == "off") return nullptr;
  void* library = ::dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static Isal found;
  const bool all = find(library, "crc64_ecma_refl", found.crc64) &&
                   find(library, "ec_init_tables", found.init_tables) &&
                   find(library, "ec_encode_data_update", found.encode_update);
  return all ? &found : nullptr;
}

std::atomic<bool> loaded{false};

}  // namespace

const Isal* isal() {
  static const Isal* const found = load();
  loaded.store(true, std::memory_order_relaxed);
  return found;
}

bool isal_is_loaded() {
  return loaded.load(std::memory_order_relaxed);
}

}  // namespace perdure
