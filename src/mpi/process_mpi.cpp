// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/process_mpi.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/process_place.hpp"

// Where this library or program begins and ends, as its linker says.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];
[[gnu::visibility("hidden")]] extern const char _end[];
}

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

// Components that an MPI library loads by itself, and UCX, which it sends through.
bool is_mpi_component(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("mca_") || name.starts_with("libopen-") || name.starts_with("libuc");
}

int collect_mpi_libraries(dl_phdr_info* object, std::size_t, void* found) {
  if (object->dlpi_name != nullptr && is_mpi_library(object->dlpi_name)) {
    static_cast<std::vector<const char*>*>(found)->push_back(object->dlpi_name);
  }
  return 0;
}

std::vector<void*> open_private_libraries(int flags) {
  std::vector<const char*> paths;
  ::dl_iterate_phdr(collect_mpi_libraries, &paths);
  std::vector<void*> handles;
  for (const char* path : paths) {
    void* handle = ::dlopen(path, RTLD_NOLOAD | RTLD_LAZY | flags);
    if (handle != nullptr) handles.push_back(handle);
  }
  return handles;
}

// A program may have loaded its MPI for itself alone (RTLD_LOCAL, as Python does). Then nothing of
// it is found from here.
void* in_private_libraries(const char* name) {
  static std::mutex mutex;
  static std::vector<void*> handles;
  const std::lock_guard<std::mutex> lock(mutex);
  if (handles.empty()) handles = open_private_libraries(0);
  for (void* handle : handles) {
    if (void* symbol = ::dlsym(handle, name)) return symbol;
  }
  return nullptr;
}

// A library that libperdure_preload.so has loaded comes after the MPI library in the search order.
// The preloaded one, which comes before it, finds what is next.
void* next_of_preload(const char* name) {
  using Next = void*(const char*);
  static auto* const next = reinterpret_cast<Next*>(::dlsym(RTLD_DEFAULT, "perdure_preload_next"));
  return next == nullptr ? nullptr : next(name);
}

template <typename Function>
Function* mpi_function(const char* name) {
  return reinterpret_cast<Function*>(mpi_symbol(name));
}

// The first line up to a comma, of what is printable, without runs of blanks.
std::string short_name(std::string_view text) {
  std::string name;
  for (const char letter : text.substr(0, text.find_first_of(",\n"))) {
    const bool blank = letter == ' ' || letter == '\t';
    if (blank && !name.empty() && name.back() != ' ') name += ' ';
    if (letter > ' ' && letter < '\x7f') name += letter;
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.substr(0, 80);
}

}  // namespace

ProcessMpi describe_mpi(std::string_view version_text, int standard_major) {
  ProcessMpi mpi{MpiAbi::other, short_name(version_text)};
  const auto says = [&](std::string_view word) {
    return version_text.find(word) != std::string_view::npos;
  };
  if (standard_major >= 1) {
    mpi.name += " with the standard ABI " + std::to_string(standard_major);
    if (standard_major == 1) mpi.abi = MpiAbi::standard;
  } else if (version_text.starts_with("Open MPI")) {
    mpi.abi = MpiAbi::openmpi;
  } else if (says("MPICH") || says("Intel(R) MPI") || says("MVAPICH")) {
    mpi.abi = MpiAbi::mpich;
  }
  return mpi;
}

std::string library_for(MpiAbi abi) {
  switch (abi) {
    case MpiAbi::mpich:
      return "libperdure_mpi_mpich.so";
    case MpiAbi::openmpi:
      return "libperdure_mpi_openmpi.so";
    case MpiAbi::standard:
      return "libperdure_mpi_abi.so";
    case MpiAbi::none:
    case MpiAbi::other:
      break;
  }
  return "";
}

std::string loaded_library_for(MpiAbi abi) {
  const std::string name = library_for(abi);
  return name.empty() ? name : name + "." PERDURE_SOVERSION;
}

std::string reason_to_stand_aside(const ProcessMpi& mpi, MpiAbi served) {
  if (mpi.abi == MpiAbi::none || mpi.abi == served) return "";
  const std::string has = "this program has " + (mpi.name.empty() ? "an unknown MPI" : mpi.name);
  const std::string wanted = library_for(mpi.abi);
  if (wanted.empty()) return has + ", which no library of Perdure serves";
  const std::string ours = library_for(served);
  return has + ", which " + (ours.empty() ? "this library" : ours) +
         " does not serve; preload libperdure_preload.so instead, or " + wanted;
}

void say_standing_aside(const std::string& reason) {
  if (place_of_environment().rank != 0) return;
  const std::string line = "Perdure stands aside: " + reason + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

ProcessMpi find_process_mpi() {
  auto* version = mpi_function<int(char*, int*)>("PMPI_Get_library_version");
  if (version == nullptr) {
    if (mpi_symbol("PMPI_Init") == nullptr) return {};
    return {MpiAbi::other, "an MPI older than MPI 3"};
  }
  std::vector<char> text(1 << 16);  // beyond what any MPI library writes
  int length = 0;
  int major = 0;
  int minor = 0;
  version(text.data(), &length);
  text.back() = '\0';
  auto* standard = mpi_function<int(int*, int*)>("PMPI_Abi_get_version");
  if (standard != nullptr) standard(&major, &minor);
  return describe_mpi(text.data(), major);
}

void* mpi_symbol(const char* name) {
  if (void* next = ::dlsym(RTLD_NEXT, name)) return next;
  if (void* next = next_of_preload(name)) return next;
  return in_private_libraries(name);
}

void* mpi_variable(const char* name) {
  void* global = ::dlsym(RTLD_DEFAULT, name);
  return global != nullptr ? global : in_private_libraries(name);
}

void make_mpi_global() {
  if (::dlsym(RTLD_DEFAULT, "PMPI_Get_library_version") == nullptr) {
    (void)open_private_libraries(RTLD_GLOBAL);
  }
}

bool in_mpi_library(const void* address) {
  Dl_info object{};
  if (::dladdr(address, &object) == 0 || object.dli_fname == nullptr) return false;
  return is_mpi_library(object.dli_fname) || is_mpi_component(object.dli_fname);
}

bool in_perdure(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return place >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         place < reinterpret_cast<std::uintptr_t>(_end);
}

void pass_on(TakenCall& taken) {
  const std::string name = std::string("PMPI_") + taken.name;
  taken.to.store(mpi_symbol(name.c_str() + 1), std::memory_order_relaxed);
  taken.to_profiled.store(mpi_symbol(name.c_str()), std::memory_order_relaxed);
}

void* destination(const std::atomic<void*>& to, const char* name) {
  if (void* found = to.load(std::memory_order_relaxed)) return found;
  const ProcessMpi mpi = find_process_mpi();
  const std::string line =
      std::string("Perdure: the program calls ") + name + ", which " +
      (mpi.abi == MpiAbi::none ? "no library of this process has" : mpi.name + " does not have") +
      "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(127);  // as the dynamic linker does
}

}  // namespace perdure
