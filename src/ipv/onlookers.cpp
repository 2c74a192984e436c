// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/onlookers.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/files.hpp"
#include "base/guests.hpp"

namespace perdure {
namespace {

constexpr unsigned long registered_ring = 1U << 4U;  // IORING_ENTER_REGISTERED_RING, Linux 5.18

std::string read_again(FileHandle& file, const char* path) {
  if (file.fd() < 0) file = open_kernel_file(path, O_RDONLY);
  std::array<char, 8192> text{};
  const ssize_t bytes = ::pread(file.fd(), text.data(), text.size(), 0);
  return bytes <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(bytes));
}

bool kernel_knows_registered_rings() {
  static const bool known = [] {
    utsname system{};
    int major = 0;
    int minor = 0;
    return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 18));
  }();
  return known;
}

// Perdure's own, of SIGSEGV and SIGBUS, in the same library as this function; and those by which
// the library of gfortran says where a program ends.
bool is_perdures(void* handler) {
  Dl_info ours{};
  Dl_info theirs{};
  if (::dladdr(reinterpret_cast<void*>(&kernel_knows_registered_rings), &ours) == 0 ||
      ::dladdr(handler, &theirs) == 0 || theirs.dli_fname == nullptr) {
    return false;
  }
  return ours.dli_fbase == theirs.dli_fbase ||
         std::strstr(theirs.dli_fname, "/libgfortran.so") != nullptr;
}

// A thread that has used io_uring has a table of registered rings, if only an empty one.
bool has_used_io_uring() {
  const long entered = ::syscall(SYS_io_uring_enter, 0, 0, 0, registered_ring, nullptr, 0);
  if (entered >= 0 || errno == EBADF) return true;
  return errno == EINVAL && !kernel_knows_registered_rings();
}

// ipv.O1. The kernel refuses that if another task shares the memory, and else does nothing.
bool has_other_threads() {
  if (::unshare(CLONE_VM) == 0) return false;
  if (errno != EINVAL) return true;
  const std::vector<pid_t> threads = threads_of_process();
  return threads.size() < 2 || !are_guests(threads);
}

}  // namespace

// ipv.O2 to ipv.O4.
std::string Onlookers::status() {
  const std::string text = read_again(status_file_, "/proc/self/status");
  const auto tracer = number_in(text, "TracerPid", 10);
  const auto caught = number_in(text, "SigCgt", 16);
  const auto pinned = number_in(text, "VmPin", 10);
  if (!tracer || !caught || !pinned) return "the kernel does not say who looks";
  if (*tracer != 0) return "a process traces this one";
  if (*pinned > pinned_kib_of_mpi()) return "memory is pinned for a device";
  for (int signal = 1; signal <= 64; ++signal) {
    if ((*caught >> static_cast<unsigned>(signal - 1) & 1U) == 0) continue;
    void* const handler = handler_of(signal);
    if (handler == nullptr || is_perdures(handler) || is_guest_handler(signal, handler)) continue;
    return "the program handles signal " + std::to_string(signal);
  }
  return {};
}

// ipv.O6. Mostly no process of the machine has a context.
bool Onlookers::has_asynchronous_io() {
  const std::string all = read_again(contexts_file_, "/proc/sys/fs/aio-nr");
  if (all == "0\n") return false;
  const std::string maps = read_kernel_text("/proc/self/maps");
  return maps.empty() || maps.find("[aio]") != std::string::npos;
}

// ipv.O8.
bool Onlookers::has_unwatched_mpi() {
  struct Search {
    unsigned long long known;
    unsigned long long loaded = 0;
    bool found = false;
  };
  Search search{libraries_};
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* found) {
        auto& of = *static_cast<Search*>(found);
        of.loaded = library->dlpi_adds;
        if (of.loaded == of.known) return 1;  // nothing was loaded since
        const char* name = std::strrchr(library->dlpi_name, '/');
        of.found |= name != nullptr && std::strncmp(name, "/libmpi", 7) == 0;
        return 0;
      },
      &search);
  if (search.loaded != libraries_) loaded_mpi_ = search.found;
  libraries_ = search.loaded;
  return loaded_mpi_ && !mpi_is_watched();
}

std::string Onlookers::may_look(std::uintptr_t low, std::uintptr_t high) {
  if (is_lent(low, high)) return "its memory was given to MPI";
  if (has_other_threads()) return "the process has other threads";
  if (has_used_io_uring()) return "the thread has used io_uring";
  if (has_asynchronous_io()) return "the process has a context of asynchronous I/O";
  if (has_unwatched_mpi()) return "the calls of MPI do not come through libperdure_mpi";
  return status();
}

}  // namespace perdure
