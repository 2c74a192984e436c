#include "mpi/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <mutex>
#include <string_view>
#include <vector>

namespace perdure {
namespace {

// The C libraries of MPICH, Open MPI and the MPI ABI. Fortran bindings have other names.
bool is_mpi_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::array<std::string_view, 4> stems = {"libmpi.so", "libmpich.so", "libmpi_abi.so",
                                                     "libmpi-"};
  for (const std::string_view stem : stems) {
    if (name.starts_with(stem)) return true;
  }
  return false;
}

// Components that an MPI library loads by itself.
bool is_mpi_component(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("mca_") || name.starts_with("libopen-") || name.starts_with("libucp");
}

int collect_mpi_libraries(dl_phdr_info* object, std::size_t, void* found) {
  if (object->dlpi_name != nullptr && is_mpi_library(object->dlpi_name)) {
    static_cast<std::vector<const char*>*>(found)->push_back(object->dlpi_name);
  }
  return 0;
}

// A program may have loaded its MPI for itself alone (RTLD_LOCAL, as Python does). Then nothing of
// it is found from here, and our own calls of PMPI_* would fail: so it's made global.
std::vector<void*> open_private_libraries() {
  std::vector<const char*> paths;
  ::dl_iterate_phdr(collect_mpi_libraries, &paths);
  std::vector<void*> handles;
  for (const char* path : paths) {
    void* handle = ::dlopen(path, RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL);
    if (handle != nullptr) handles.push_back(handle);
  }
  return handles;
}

void* in_private_libraries(const char* name) {
  static std::mutex mutex;
  static std::vector<void*> handles;
  const std::lock_guard<std::mutex> lock(mutex);
  if (handles.empty()) handles = open_private_libraries();
  for (void* handle : handles) {
    if (void* symbol = ::dlsym(handle, name)) return symbol;
  }
  return nullptr;
}

}  // namespace

void* mpi_symbol(const char* name) {
  void* next = ::dlsym(RTLD_NEXT, name);
  return next != nullptr ? next : in_private_libraries(name);
}

void* mpi_variable(const char* name) {
  void* global = ::dlsym(RTLD_DEFAULT, name);
  return global != nullptr ? global : in_private_libraries(name);
}

bool in_mpi_library(const void* address) {
  Dl_info object{};
  if (::dladdr(address, &object) == 0 || object.dli_fname == nullptr) return false;
  return is_mpi_library(object.dli_fname) || is_mpi_component(object.dli_fname);
}

}  // namespace perdure
