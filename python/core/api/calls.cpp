// SPDX-License-Identifier: BSD-3-Clause
#include "api/calls.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <optional>

#include "mpi/process_mpi.hpp"

namespace perdure::python {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) {
    throw Failure{PERDURE_E_UNSUPPORTED,
                  std::string(name) +
                      " is not in the library of Perdure that is loaded, which is "
                      "of another version; build or install both again"};
  }
}

Calls calls_of(void* library) {
  Calls calls;
  find(library, "perdure_open", calls.open);
  find(library, "perdure_close", calls.close);
  find(library, "perdure_array_open", calls.array_open);
  find(library, "perdure_old_arrays", calls.old_arrays);
  find(library, "perdure_stored_shape", calls.stored_shape);
  find(library, "perdure_read", calls.read);
  find(library, "perdure_array_resize", calls.array_resize);
  find(library, "perdure_array_shape", calls.array_shape);
  find(library, "perdure_array_remove", calls.array_remove);
  find(library, "perdure_arrays", calls.arrays);
  find(library, "perdure_scalar_typed", calls.scalar);
  find(library, "perdure_file", calls.file);
  find(library, "perdure_restart", calls.restart);
  find(library, "perdure_versions", calls.versions);
  find(library, "perdure_restore", calls.restore);
  find(library, "perdure_delete_version", calls.delete_version);
  find(library, "perdure_working", calls.working);
  find(library, "perdure_consistent", calls.consistent);
  find(library, "perdure_mark", calls.mark);
  find(library, "perdure_write", calls.write);
  find(library, "perdure_array_box", calls.box);
  find(library, "perdure_commit", calls.commit);
  find(library, "perdure_commit_begin", calls.commit_begin);
  find(library, "perdure_before_write", calls.before_write);
  find(library, "perdure_commit_wait", calls.commit_wait);
  find(library, "perdure_commit_due", calls.commit_due);
  find(library, "perdure_stream", calls.stream);
  find(library, "perdure_levels_wait", calls.levels_wait);
  find(library, "perdure_status", calls.status);
  find(library, "perdure_last_error", calls.last_error);
  return calls;
}

Calls with_mpi(void* library) {
  Calls calls = calls_of(library);
  find(library, "perdure_open_mpi", calls.open_mpi);
  find(library, "perdure_win_commit_f", calls.win_commit);
  find(library, "perdure_win_restart_f", calls.win_restart);
  find(library, "perdure_win_halves_f", calls.win_halves);
  find(library, "perdure_win_pool_f", calls.win_pool);
  return calls;
}

// The file that has libperdure's calls: not what a preloaded library defines in its place.
std::string libperdure() {
  const Calls& calls = solo_calls();
  Dl_info object{};
  std::array<char, PATH_MAX> real{};
  if (::dladdr(reinterpret_cast<const void*>(calls.open), &object) == 0 ||
      ::realpath(object.dli_fname, real.data()) == nullptr) {
    return "";
  }
  return real.data();
}

bool is_preloaded() {
  return ::dlsym(RTLD_DEFAULT, "perdure_open_mpi") != nullptr;
}

// The library stays private: the program's MPI calls must not find those that it defines, half of
// which the program has bound already. Only its own calls of PMPI_* must find the MPI library.
void* load_mpi_library() {
  const ProcessMpi mpi = find_process_mpi();
  if (mpi.abi == MpiAbi::none) {
    throw Failure{PERDURE_E_STATE,
                  "this process has no MPI library; import mpi4py.MPI before the pool is opened"};
  }
  const std::string name = loaded_library_for(mpi.abi);
  if (name.empty()) {
    throw Failure{PERDURE_E_UNSUPPORTED, reason_to_stand_aside(mpi, MpiAbi::none)};
  }
  const std::string beside = libperdure();
  const std::string path = beside.substr(0, beside.rfind('/') + 1) + name;
  make_mpi_global();
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* error = ::dlerror();
  const bool there = ::access(path.c_str(), F_OK) == 0;
  throw Failure{PERDURE_E_UNSUPPORTED,
                "this program has " + mpi.name + ", and " +
                    (there && error != nullptr ? std::string(error)
                                               : "there is no " + path + "; build or install it")};
}

}  // namespace

const Calls& solo_calls() {
  static const Calls calls = [] {
    void* library = ::dlopen(PERDURE_SONAME, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) {
      throw Failure{PERDURE_E_UNSUPPORTED, std::string(PERDURE_SONAME) + " is not loaded"};
    }
    return calls_of(library);
  }();
  return calls;
}

const Calls& mpi_calls() {
  static const Calls calls = with_mpi(is_preloaded() ? RTLD_DEFAULT : load_mpi_library());
  return calls;
}

const Calls& window_calls() {
  static std::optional<Calls> calls;
  if (!calls && is_preloaded()) calls = with_mpi(RTLD_DEFAULT);
  if (!calls) {
    throw Failure{PERDURE_E_UNSUPPORTED,
                  "no library of Perdure takes this program's MPI calls; start the program with "
                  "LD_PRELOAD=libperdure_preload.so"};
  }
  return *calls;
}

}  // namespace perdure::python
