// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates: what a step of window_job does to its right neighbour's landing cells with each of
// MPI's four atomic calls, and a death within one of these calls.
//
// PERDURE_KILL=rank=R,iteration=N,point=CALL, with the name of a call in small letters, makes R die
// in that call of step N. The memory that the call reads its operand from, or returns the old
// contents in, becomes inaccessible: from its middle on for the two calls on many cells, all of it
// for those on one. So whoever makes the accumulate is stopped after half of the cells, or after it
// has read the target's one and before it has written it, and the process is sent SIGKILL there.
// An MPI that looks at this memory at another time, or hands it to another process, goes on; then
// the rank dies right after the call, before it is complete. What it was is said on stderr.
//
// Threads: one. Failure: throws.
#pragma once

#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

class Accumulates {
 public:
  static constexpr std::size_t many = 4096;  // cells of a call on many of them
  static constexpr std::size_t landing = 2 * many + 1;

  Accumulates(int rank, int right) : right_(right) {
    origin_ = make_memory();
    result_ = make_memory();
    read_kill(rank);
  }
  Accumulates(const Accumulates&) = delete;
  Accumulates& operator=(const Accumulates&) = delete;

  // In a passive-target epoch. `values`: as many as a call on many cells has. All is complete when
  // it returns; returns what the calls gave of the contents before them.
  std::uint64_t run(MPI_Win window, const std::uint64_t* values, std::uint64_t step) {
    std::memcpy(origin_, values, many * sizeof *values);
    constexpr int count = static_cast<int>(many);
    within("accumulate", step, origin_ + many / 2, [&] {
      MPI_Accumulate(origin_, count, MPI_UINT64_T, right_, 0, count, MPI_UINT64_T, MPI_SUM, window);
    });
    within("get_accumulate", step, result_ + many / 2, [&] {
      MPI_Get_accumulate(origin_, count, MPI_UINT64_T, result_, count, MPI_UINT64_T, right_,
                         static_cast<MPI_Aint>(many), count, MPI_UINT64_T, MPI_BXOR, window);
    });
    MPI_Win_flush(right_, window);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < many; ++i) seen = seen * 31 + result_[i];
    return seen * 31 + run_on_one(window, step);
  }

 private:
  // The last landing cell gets a number added, and is then exchanged for another, which nobody
  // else may have changed meanwhile.
  std::uint64_t run_on_one(MPI_Win window, std::uint64_t step) {
    constexpr auto at = static_cast<MPI_Aint>(2 * many);
    std::uint64_t* result = result_ + many / 2;
    within("fetch_and_op", step, result,
           [&] { MPI_Fetch_and_op(origin_, result, MPI_UINT64_T, right_, at, MPI_SUM, window); });
    MPI_Win_flush(right_, window);
    const std::uint64_t before = *result;
    const std::uint64_t expected = before + origin_[0];
    const std::uint64_t wanted = expected ^ origin_[1];
    within("compare_and_swap", step, result, [&] {
      MPI_Compare_and_swap(&wanted, &expected, result, MPI_UINT64_T, right_, at, window);
    });
    MPI_Win_flush(right_, window);
    if (*result != expected) throw std::runtime_error("a swap found another sum");
    return before;
  }

  static constexpr std::size_t bytes = many * sizeof(std::uint64_t);

  static std::uint64_t* make_memory() {
    void* made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) throw std::runtime_error("no memory for accumulates");
    std::memset(made, 0, bytes);
    return static_cast<std::uint64_t*>(made);
  }

  void read_kill(int rank) {
    const char* kill = std::getenv("PERDURE_KILL");
    if (kill == nullptr) return;
    const std::string asked = std::string(kill) + ",";
    const auto value = [&](const std::string& key) {
      const std::size_t at = asked.find(key + "=");
      if (at == std::string::npos) return std::string();
      const std::size_t begin = at + key.size() + 1;
      return asked.substr(begin, asked.find(',', begin) - begin);
    };
    if (value("rank") != std::to_string(rank)) return;
    kill_call_ = value("point");
    kill_step_ = std::strtoull(value("iteration").c_str(), nullptr, 10);
  }

  template <typename Call>
  void within(const char* name, std::uint64_t step, std::uint64_t* from, const Call& call) {
    if (kill_call_ != name || step < kill_step_) {
      call();
      return;
    }
    forbid(from);
    call();
    static constexpr char text[] = "window_job: killed after the call\n";
    (void)!::write(2, text, sizeof text - 1);
    ::kill(::getpid(), SIGKILL);
  }

  struct Forbidden {
    const char* begin;
    struct sigaction before;  // the library's own, of arrays in log mode
  };
  static Forbidden& forbidden() {
    static Forbidden where{};
    return where;
  }

  // To the middle of its memory, which is where a page begins.
  static void forbid(std::uint64_t* from) {
    forbidden().begin = reinterpret_cast<const char*>(from);
    struct sigaction action{};
    action.sa_sigaction = at_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGSEGV, &action, &forbidden().before);
    if (::mprotect(from, bytes / 2, PROT_NONE) != 0) throw std::runtime_error("mprotect");
  }

  static void at_fault(int number, siginfo_t* info, void* context) {
    const char* at = static_cast<const char*>(info->si_addr);
    const Forbidden& where = forbidden();
    if (at < where.begin || at >= where.begin + bytes / 2) {
      if ((where.before.sa_flags & SA_SIGINFO) == 0) ::abort();
      where.before.sa_sigaction(number, info, context);
      return;
    }
    static constexpr char text[] = "window_job: killed within the call\n";
    (void)!::write(2, text, sizeof text - 1);
    ::kill(::getpid(), SIGKILL);
  }

  int right_;
  std::uint64_t* origin_ = nullptr;
  std::uint64_t* result_ = nullptr;
  std::string kill_call_;
  std::uint64_t kill_step_ = 0;
};
