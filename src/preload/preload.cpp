// SPDX-License-Identifier: BSD-3-Clause
//
// libperdure_preload.so: one library to preload, whichever MPI a program has.
//
// It defines the names that Perdure takes and knows no MPI. At the first of them (MPI_Init,
// usually) it asks the process's MPI library which it is, loads the library of Perdure that was
// built for its binary interface, from where this one is, and leads the names there. Where there is
// none, it stands aside: the names lead to the MPI library, and a line says so.
//
// Programs without MPI make none of these calls, so that nothing is done in them. A program that is
// linked with a library of Perdure keeps that one: the names lead on to it.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <string>

#include "mpi/exported_calls.hpp"
#include "mpi/narrow_call.hpp"
#include "mpi/process_mpi.hpp"
#include "mpi/taken_calls.hpp"

#define PERDURE_EXPORTED [[gnu::visibility("default"), gnu::used]]
#define PERDURE_NARROW_3(x) PERDURE_NARROW_IF_ABSENT(File_##x##_c, File_##x, counts({3}))
#define PERDURE_NARROW_WINDOW(x, ours, narrow, ...) PERDURE_NARROW_IF_ABSENT(x, narrow, __VA_ARGS__)
#define PERDURE_NARROW_2(x) PERDURE_NARROW_IF_ABSENT(File_##x##_c, File_##x, counts({2}))
#define PERDURE_DECLARE_FILE_CALL(x) PERDURE_DECLARE_TAKEN(File_##x)
#define PERDURE_DECLARE_WIDE_FILE_CALL(x) PERDURE_DECLARE_TAKEN(File_##x##_c)
#define PERDURE_DEFINE_FILE_CALL(x) PERDURE_DEFINE_TAKEN(File_##x)
#define PERDURE_DEFINE_WIDE_FILE_CALL(x) PERDURE_DEFINE_TAKEN(File_##x##_c)

PERDURE_INIT_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_WINDOW_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DECLARE_TAKEN)
PERDURE_FILE_CALLS(PERDURE_DECLARE_FILE_CALL)
PERDURE_CALLS_COUNTED(PERDURE_DECLARE_WIDE_FILE_CALL)
PERDURE_TEXT_CALLS(PERDURE_DECLARE_TAKEN)

PERDURE_INIT_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DEFINE_TAKEN)
PERDURE_FILE_CALLS(PERDURE_DEFINE_FILE_CALL)
PERDURE_CALLS_COUNTED(PERDURE_DEFINE_WIDE_FILE_CALL)
PERDURE_TEXT_CALLS(PERDURE_DEFINE_TAKEN)

namespace perdure {
namespace {

#define PERDURE_ADDRESS(x, ...) &perdure_taken_##x,
#define PERDURE_FILE_ADDRESS(x) &perdure_taken_File_##x,
#define PERDURE_WIDE_FILE_ADDRESS(x) &perdure_taken_File_##x##_c,
TakenCall* const taken_calls[] = {
    PERDURE_INIT_CALLS(PERDURE_ADDRESS)               //
    PERDURE_WINDOW_CALLS(PERDURE_ADDRESS)             // clang-format keeps a list a line
    PERDURE_WIDE_WINDOW_CALLS(PERDURE_ADDRESS)        //
    PERDURE_FILE_CALLS(PERDURE_FILE_ADDRESS)          //
    PERDURE_CALLS_COUNTED(PERDURE_WIDE_FILE_ADDRESS)  //
    PERDURE_TEXT_CALLS(PERDURE_ADDRESS)};

// With the slash; empty if it can't be found, so that the linker's path is searched.
std::string own_directory() {
  Dl_info object{};
  std::array<char, PATH_MAX> real{};
  const auto* here = reinterpret_cast<const void*>(&own_directory);
  if (::dladdr(here, &object) == 0 || ::realpath(object.dli_fname, real.data()) == nullptr) {
    return "";
  }
  const std::string path = real.data();
  return path.substr(0, path.rfind('/') + 1);
}

// For which MPI the library was loaded to which the names lead.
MpiAbi loaded_for = MpiAbi::none;

// Its names must be visible to ctypes, by which perdure.windows calls it.
void* load(const ProcessMpi& mpi, std::string& reason) {
  const std::string name = loaded_library_for(mpi.abi);
  if (name.empty()) {
    reason = reason_to_stand_aside(mpi, MpiAbi::none);
    return nullptr;
  }
  const std::string path = own_directory() + name;
  make_mpi_global();
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* error = ::dlerror();
    const bool there = ::access(path.c_str(), F_OK) == 0;
    reason = "this program has " + mpi.name + ", and " +
             (there && error != nullptr ? std::string(error) + "; preload that library itself"
                                        : "there is no " + path + "; build or install it");
  }
  return library;
}

// Null: no library of Perdure serves, or the program has brought its own.
void* find_library() {
  if (::dlsym(RTLD_DEFAULT, "perdure_mpi_serves") != nullptr) return nullptr;
  const ProcessMpi mpi = find_process_mpi();
  if (mpi.abi == MpiAbi::none) return nullptr;
  std::string reason;
  void* library = load(mpi, reason);
  if (library == nullptr) say_standing_aside(reason);
  if (library != nullptr) loaded_for = mpi.abi;
  return library;
}

// What the library lacks, as it was built for an older MPI, stays the MPI library's.
void lead_to(void* library, TakenCall& taken) {
  const std::string name = std::string("PMPI_") + taken.name;
  if (void* to = ::dlsym(library, name.c_str() + 1)) taken.to.store(to);
  if (void* to = ::dlsym(library, name.c_str())) taken.to_profiled.store(to);
}

void bind_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    void* library = find_library();
    for (TakenCall* taken : taken_calls) {
      if (library != nullptr) lead_to(library, *taken);
      if (taken->to.load() == nullptr) pass_on(*taken);
    }
    PERDURE_WIDE_WINDOW_CALLS(PERDURE_NARROW_WINDOW)
    PERDURE_CALLS_COUNT_3(PERDURE_NARROW_3)
    PERDURE_CALLS_COUNT_2(PERDURE_NARROW_2)
  });
}

}  // namespace
}  // namespace perdure

extern "C" {

// For a library that this one has loaded, which is searched after the MPI library.
PERDURE_EXPORTED void* perdure_preload_next(const char* name) {
  return ::dlsym(RTLD_NEXT, name);
}

// So that it need not find out again which MPI the process has: a MpiAbi.
PERDURE_EXPORTED int perdure_preload_serves() {
  return static_cast<int>(perdure::loaded_for);
}

[[gnu::used, gnu::visibility("hidden")]] void* perdure_first_call(const std::atomic<void*>* to,
                                                                  const char* name) {
  perdure::bind_all();
  return perdure::destination(*to, name);
}

}  // extern "C"

#define PERDURE_EXPORT_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x)
#define PERDURE_EXPORT_WIDE_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x##_c)
PERDURE_FIRST_CALLS(perdure_first_call)
PERDURE_INIT_CALLS(PERDURE_EXPORT_CALL)
PERDURE_WINDOW_CALLS(PERDURE_EXPORT_CALL)
PERDURE_WIDE_WINDOW_CALLS(PERDURE_EXPORT_CALL)
PERDURE_FILE_CALLS(PERDURE_EXPORT_FILE_CALL)
PERDURE_CALLS_COUNTED(PERDURE_EXPORT_WIDE_FILE_CALL)
PERDURE_TEXT_CALLS(PERDURE_EXPORT_UNPROFILED)
