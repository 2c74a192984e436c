// SPDX-License-Identifier: BSD-3-Clause
//
// windows.hpp: persistent windows of perdure_mpi.h for C++20. Link libperdure_mpi_<flavour> before
// the MPI library.
//
//     perdure::Window<double> u(MPI_COMM_WORLD, cells, {.name = "u", .pool = "/mnt/pmem/heat"});
//     if (u.restart() == 0) fill(u.memory());            // else filled from the newest version
//     while (…) {
//       MPI_Put(…, u.handle());                          // MPI's own calls, as ever
//       MPI_Win_fence(0, u.handle());
//       u.commit();                                      // all windows of the pool, one version
//     }
//
// Conventions of perdure.hpp, and
//   - A window is made, committed and freed by all ranks of its communicator.
//   - What MPI refuses while a window is made or freed throws MpiError, whatever the
//     communicator's error handler is. Calls of MPI on handle() go through the handlers you set.
//   - The destructor frees the window, unless MPI is finalised: it waits for the other ranks. Where
//     one rank alone throws, end the job.
#ifndef PERDURE_WINDOWS_HPP
#define PERDURE_WINDOWS_HPP

#include <mpi.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/perdure.hpp"
#include "perdure/perdure_mpi.h"

namespace perdure {
inline namespace interface {

// What a call of MPI failed with; for a persistent window what() is Perdure's sentence.
class MpiError : public std::runtime_error {
 public:
  explicit MpiError(int code) : std::runtime_error(text_of(code)), code_(code) {}
  int code() const noexcept { return code_; }  // of MPI

 private:
  static std::string text_of(int code) {
    std::string text(MPI_MAX_ERROR_STRING, '\0');
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return text.substr(0, static_cast<std::size_t>(length));
  }
  int code_;
};

// The info keys of perdure_mpi.h.
struct WindowOptions {
  std::string name;                           // of the window; unique in the pool
  std::string pool = {};                      // its directory; empty: $PERDURE_POOL
  Mode mode = Mode::copy;                     // how a version is made
  std::string commit = {};                    // which calls of MPI commit, "fence/2"; empty: none
  unsigned keep = 0;                          // versions that are kept; 0: as the pool has it, or 1
  bool async = false;                         // copy, log: a commit stages the contents and returns
  bool delete_at_free = false;                // freeing the window deletes its contents
  std::optional<std::uint64_t> restore = {};  // this version instead of the newest
  bool discard = false;                       // start anew
  std::optional<bool> checksums = {};         // of every block; default: yes for copy and log
  // Of the window that opens the pool, as in Options.
  bool allow_older = false;
  std::string job = {};
  std::string emulate = {};
  std::optional<Delay> delay = {};
  unsigned copy_threads = 0;
  std::string levels = {};
  // More keys, MPI's own for example.
  std::vector<std::pair<std::string, std::string>> info = {};

  // Every key that says something, with its value.
  std::vector<std::pair<std::string, std::string>> keys() const {
    constexpr const char* modes[] = {"", "copy", "twin", "log", "flush"};
    constexpr const char* delays[] = {"virtual", "wait", "drain"};
    std::vector<std::pair<std::string, std::string>> keys = info;
    const auto add = [&keys](const char* key, const std::string& value) {
      if (!value.empty()) keys.emplace_back(key, value);
    };
    add("perdure_name", name);
    add("perdure_pool", pool);
    add("perdure_mode", modes[static_cast<int>(mode)]);
    add("perdure_commit", commit);
    if (restore) add("perdure_restore", std::to_string(*restore));
    if (discard) add("perdure_restore", "discard");
    if (keep != 0) add("perdure_keep", std::to_string(keep));
    if (async) add("perdure_async", "true");
    if (checksums) add("perdure_checksum", *checksums ? "true" : "false");
    if (delete_at_free) add("perdure_free", "delete");
    if (delay) add("perdure_delay", delays[static_cast<int>(*delay)]);
    add("perdure_job", job);
    add("perdure_emulate", emulate);
    if (copy_threads != 0) add("perdure_threads", std::to_string(copy_threads));
    if (allow_older) add("perdure_allow_older", "true");
    add("perdure_levels", levels);
    return keys;
  }
};

// A persistent window of elements T on each rank. Move-only.
template <typename T>
class Window {
  static_assert(std::is_trivially_copyable_v<T>, "the memory of a window is bytes");

 public:
  // Of `elements` elements on this rank, in memory of MPI, or of the pool (twin, flush): its
  // contents are those of the restored version, or zero. Collective. Errors: MpiError.
  Window(MPI_Comm comm, std::size_t elements, const WindowOptions& options) : elements_(elements) {
    void* base = nullptr;
    make(comm, options, [&](MPI_Info info) {
      return MPI_Win_allocate(static_cast<MPI_Aint>(elements * sizeof(T)), sizeof(T), info, comm,
                              &base, &window_);
    });
    base_ = static_cast<T*>(base);
  }
  // On the program's own memory, which must outlive it; modes copy and log. Contents stay when the
  // pool is new.
  Window(MPI_Comm comm, std::span<T> memory, const WindowOptions& options)
      : elements_(memory.size()), base_(memory.data()) {
    make(comm, options, [&](MPI_Info info) {
      return MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size_bytes()), sizeof(T),
                            info, comm, &window_);
    });
  }
  ~Window() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (window_ != MPI_WIN_NULL && finalized == 0) (void)release();
  }
  Window(Window&& other) noexcept { *this = std::move(other); }
  Window& operator=(Window&& other) noexcept {
    std::swap(window_, other.window_);
    std::swap(elements_, other.elements_);
    std::swap(base_, other.base_);
    std::swap(twin_, other.twin_);
    return *this;
  }

  // Frees it; the last window of a pool closes the pool. Collective. What was not committed is not
  // kept. Errors: MpiError.
  void free() {
    if (window_ != MPI_WIN_NULL) check_mpi(release());
  }

  MPI_Win handle() const noexcept { return window_; }
  std::size_t size() const noexcept { return elements_; }

  // This rank's memory where the program writes; twin: in the working half, another after each
  // commit. Local.
  std::span<T> memory() const { return {twin_ ? base_of(half(false)) : base_, elements_}; }
  // Twin: this rank's memory in the half of the last committed version; otherwise as memory().
  std::span<const T> consistent() const { return {twin_ ? base_of(half(true)) : base_, elements_}; }
  // Twin: windows on the two halves, with epochs of their own, which go with this one. Local.
  MPI_Win consistent_half() const { return half(true); }
  MPI_Win working_half() const { return half(false); }

  // The version that the contents were restored from, the same on all ranks; 0: a new pool. Local.
  std::uint64_t restart() const {
    std::uint64_t version = 0;
    check(perdure_win_restart(window_, &version));
    return version;
  }
  // Makes all windows, arrays and scalars of the pool durable as one version and returns its
  // number. Collective over the pool. Completes operations of an open passive-target epoch.
  std::uint64_t commit() {
    std::uint64_t version = 0;
    check(perdure_win_commit(window_, &version));
    return version;
  }

  // The pool, for scalars, arrays, versions and status. It was restarted, and is closed with the
  // last window, not by this object. Local.
  Pool pool() const {
    perdure_pool* handle = nullptr;
    check(perdure_win_pool(window_, &handle));
    return Pool::borrowed(handle);
  }

 private:
  static void check_mpi(int code) {
    if (code != MPI_SUCCESS) throw MpiError(code);
  }

  template <typename Call>
  void make(MPI_Comm comm, const WindowOptions& options, const Call& call) {
    MPI_Info info = MPI_INFO_NULL;
    check_mpi(MPI_Info_create(&info));
    for (const auto& [key, value] : options.keys()) MPI_Info_set(info, key.c_str(), value.c_str());
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int code = call(info);
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) window_ = MPI_WIN_NULL;
    check_mpi(code);
    twin_ = options.mode == Mode::twin;
  }

  int release() {
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    const int code = MPI_Win_free(&window_);
    window_ = MPI_WIN_NULL;
    return code;
  }

  MPI_Win half(bool consistent) const {
    MPI_Win half = MPI_WIN_NULL;
    check(perdure_win_halves(window_, consistent ? &half : nullptr, consistent ? nullptr : &half));
    return half;
  }

  static T* base_of(MPI_Win window) {
    T* base = nullptr;
    int found = 0;
    check_mpi(MPI_Win_get_attr(window, MPI_WIN_BASE, &base, &found));
    return base;
  }

  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t elements_ = 0;
  T* base_ = nullptr;
  bool twin_ = false;
};

}  // namespace interface
}  // namespace perdure
#endif
