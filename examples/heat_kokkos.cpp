// SPDX-License-Identifier: BSD-3-Clause
//
// The program of README.md with Kokkos: a view, wherever its memory is, is the buffer of an array
// in copy mode. On a GPU, commits take what the space has been asked for, and the space goes on
// after a snapshot (docs/gpu.md).
//
//     c++ -std=c++20 -o heat examples/heat_kokkos.cpp $(perdure config --cflags --libs) and Kokkos
//     ./heat /dev/shm/heat
#include <Kokkos_Core.hpp>
#include <cinttypes>
#include <cstdio>
#include <perdure/perdure.hpp>

using Space = Kokkos::DefaultExecutionSpace;
using View = Kokkos::View<double*, Space::memory_space>;
constexpr std::size_t cells = 1000;

static void name_stream([[maybe_unused]] perdure::Pool& pool, [[maybe_unused]] const Space& space) {
#if defined(KOKKOS_ENABLE_CUDA)
  pool.stream(PERDURE_STREAM_CUDA, space.cuda_stream());
#elif defined(KOKKOS_ENABLE_HIP)
  pool.stream(PERDURE_STREAM_HIP, space.hip_stream());
#endif
}

static void step_of(const Space& space, const View& next, const View& now) {
  Kokkos::parallel_for(
      Kokkos::RangePolicy<Space>(space, 0, cells), KOKKOS_LAMBDA(const std::size_t i) {
        next(i) = i == 0 ? 1 : (now(i - 1) + now(i) + now(i + 1 < cells ? i + 1 : i)) / 3;
      });
  Kokkos::deep_copy(space, now, next);
}

static void run(const char* path) {
  const Space space;
  const View u("u", cells);
  const View next("next", cells);
  std::uint64_t step = 0;
  perdure::Pool pool(path);
  perdure::ArrayOptions<double> options;
  options.buffer = {u.data(), u.size()};
  pool.array<double>("u", {cells}, perdure::Mode::copy, options);
  pool.scalar("iteration", step);
  name_stream(pool, space);
  pool.restart();  // u is as the version has it
  std::printf("begins at step %" PRIu64 "\n", step);
  while (step < 500) {
    step_of(space, next, u);
    ++step;
    pool.commit();
  }
  const auto answer = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), u);
  std::printf("u[10] is %.17g\n", answer(10));
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s POOL\n", argv[0]);
    return 2;
  }
  const Kokkos::ScopeGuard kokkos(argc, argv);
  run(argv[1]);
}
