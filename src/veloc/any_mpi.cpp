// SPDX-License-Identifier: BSD-3-Clause
//
// libperdure_veloc.so: one library to link, whichever MPI a program has.
//
// It defines the names of perdure/veloc/veloc.h and knows no MPI. At the first call it asks the
// process's MPI library which it is, loads the libperdure_veloc_<flavour>.so that was built for its
// binary interface, from where this one is, and passes all calls on. Where there is none, a call
// says so once and returns VELOC_FAILURE.
//
// An MPI_Comm is an integer or a pointer, which are passed in the same register: what is passed on
// is as wide as a pointer.
#include <dlfcn.h>

#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi/process_mpi.hpp"

namespace {

constexpr int failure = -1;  // VELOC_FAILURE

std::string own_directory() {
  Dl_info object{};
  static const int here = 0;
  char real[PATH_MAX] = {};
  if (::dladdr(&here, &object) == 0 || ::realpath(object.dli_fname, real) == nullptr) return "";
  const std::string path = real;
  return path.substr(0, path.rfind('/') + 1);
}

void* load() {
  const perdure::ProcessMpi mpi = perdure::find_process_mpi();
  std::string name = perdure::loaded_library_for(mpi.abi);  // libperdure_mpi_<flavour>.so.0.1
  const std::size_t mark = name.find("_mpi_");
  if (mark == std::string::npos) {
    std::fprintf(stderr, "perdure veloc: %s is no MPI that a library of Perdure serves\n",
                 mpi.name.empty() ? "a program without MPI" : mpi.name.c_str());
    return nullptr;
  }
  const std::string path = own_directory() + name.replace(mark, 5, "_veloc_");
  void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (library == nullptr) {
    std::fprintf(stderr, "perdure veloc: this program has %s: %s\n", mpi.name.c_str(), ::dlerror());
  }
  return library;
}

template <typename... Arguments>
int pass_on(const char* name, Arguments... arguments) {
  static void* const library = load();
  void* const to = library == nullptr ? nullptr : ::dlsym(library, name);
  return to == nullptr ? failure : reinterpret_cast<int (*)(Arguments...)>(to)(arguments...);
}

}  // namespace

#define PERDURE_PASS_ON(call, parameters, ...)                         \
  __attribute__((visibility("default"))) int VELOC_##call parameters { \
    return pass_on("VELOC_" #call __VA_OPT__(, ) __VA_ARGS__);         \
  }

extern "C" {

PERDURE_PASS_ON(Init, (void* comm, const char* config_file), comm, config_file)
PERDURE_PASS_ON(Init_single, (unsigned unique_id, const char* config_file), unique_id, config_file)
PERDURE_PASS_ON(Finalize, (int drain), drain)
PERDURE_PASS_ON(Mem_protect, (int id, void* memory, std::size_t count, std::size_t base_size), id,
                memory, count, base_size)
PERDURE_PASS_ON(Mem_unprotect, (int id), id)
PERDURE_PASS_ON(Mem_clear, ())
PERDURE_PASS_ON(Route_file, (const char* original, char* routed), original, routed)
PERDURE_PASS_ON(Checkpoint_begin, (const char* name, int version), name, version)
PERDURE_PASS_ON(Checkpoint_mem, ())
PERDURE_PASS_ON(Checkpoint_selective, (int mode, int* ids, int id_count), mode, ids, id_count)
PERDURE_PASS_ON(Checkpoint_end, (int success), success)
PERDURE_PASS_ON(Checkpoint_wait, ())
PERDURE_PASS_ON(Checkpoint_finished, ())
PERDURE_PASS_ON(Checkpoint, (const char* name, int version), name, version)
PERDURE_PASS_ON(Restart_test, (const char* name, int max_version), name, max_version)
PERDURE_PASS_ON(Restart_begin, (const char* name, int version), name, version)
PERDURE_PASS_ON(Recover_size, (int id), id)
PERDURE_PASS_ON(Recover_selective, (int mode, int* ids, int id_count), mode, ids, id_count)
PERDURE_PASS_ON(Recover_mem, ())
PERDURE_PASS_ON(Restart_end, (int success), success)
PERDURE_PASS_ON(Restart, (const char* name, int version), name, version)

}  // extern "C"
