// SPDX-License-Identifier: BSD-3-Clause
//
// bench_window_operations MILLISECONDS BYTES [whole]: nanoseconds of one-sided operations between
// two ranks, as one JSON object, in sizes up to BYTES, with so much time for each; or of epochs in
// which a window of twice BYTES is written or read whole. Plain MPI: it is run as it is, with
// Perdure preloaded, and with its window made persistent by the environment
// (python/perdure_bench/windows_micro.py).
//
// Of each operation the fastest of many short batches counts: what a batch takes longer was spent
// by the machine on something else.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Size {
  const char* name;
  int bytes;
  int times;  // in a batch
};
constexpr MPI_Aint rest_bytes = 4 << 10;  // of the window, beside twice the largest size
constexpr Size sizes[] = {{"8 B", 8, 200},
                          {"4 KiB", 4 << 10, 50},
                          {"64 KiB", 64 << 10, 8},
                          {"1 MiB", 1 << 20, 2},
                          {"16 MiB", 16 << 20, 1}};

// Where an operation's bytes are: `count` items of `type`, at the origin and at the target.
struct Layout {
  int words;
  int origin_count;
  MPI_Datatype origin;
  int target_count;
  MPI_Datatype target;
};

class Bench {
 public:
  Bench(MPI_Win window, double budget_s, int bytes_max, int rank)
      : window_(window),
        budget_s_(budget_s),
        rank_(rank),
        memory_((2 * static_cast<std::size_t>(bytes_max) + rest_bytes) / 8),
        result_(memory_.size()) {}

  // Prints how long an action of rank 0 takes; `other` is rank 1's part of it.
  template <typename Action, typename Other>
  void time_pair(const std::string& name, int times, const Action& action, const Other& other) {
    time_batches(
        name, times, [&](int i) { rank_ == 0 ? action(i) : other(i); },
        [](double& spent_s) { MPI_Bcast(&spent_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
  }

  // Of rank 0 alone, in an epoch of its own; rank 1 waits inside MPI.
  template <typename Action>
  void time_alone(const std::string& name, int times, const Action& action) {
    if (rank_ == 0) time_batches(name, times, action, [](double&) {});
  }

  // Rank 0 acts on rank 1 in a passive-target epoch.
  void passive(const Size& size) {
    MPI_Win_lock_all(0, window_);
    transfers(size);
    strided(size);
    accumulates(size);
    MPI_Win_unlock_all(window_);
  }

  // Rank 0 writes, or reads, all of rank 1's window in one epoch; `base` is this rank's. `floor`:
  // what it takes if each rank copies its window then, and waits for the other.
  void whole(const void* base) {
    const std::string size = std::to_string((memory_.size() * 8) >> 20) + " MiB, ";
    const auto fence = [&] { MPI_Win_fence(0, window_); };
    const auto copy = [&] {
      std::memcpy(result_.data(), base, result_.size() * 8);
      int come = 1;
      MPI_Allreduce(MPI_IN_PLACE, &come, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    };
    fence();
    time_pair(
        "put-whole " + size + "fence", 1, [&](int) { put_all(), fence(); }, [&](int) { fence(); });
    time_pair(
        "get-whole " + size + "fence", 1, [&](int) { get_all(), fence(); }, [&](int) { fence(); });
    time_pair(
        "put-whole " + size + "floor", 1, [&](int) { put_all(), fence(), copy(); },
        [&](int) { fence(), copy(); });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window_);
  }

  void active(const Size& size) {
    const Layout all = straight(size);
    const auto put_it = [&](int i) { put(all, place(i)); };
    const auto get_it = [&](int i) { get(all, place(i)); };
    const auto fence = [&] { MPI_Win_fence(0, window_); };
    fence();
    time_pair(
        named("put", size, "fence"), size.times, [&](int i) { put_it(i), fence(); },
        [&](int) { fence(); });
    time_pair(
        named("get", size, "fence"), size.times, [&](int i) { get_it(i), fence(); },
        [&](int) { fence(); });
    if (size.bytes == 8) {
      time_pair("fence", size.times, [&](int) { fence(); }, [&](int) { fence(); });
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window_);
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group other = MPI_GROUP_NULL;
    const int peer = 1 - rank_;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    time_pair(
        named("put", size, "complete"), size.times,
        [&](int i) {
          MPI_Win_start(other, 0, window_);
          put_it(i);
          MPI_Win_complete(window_);
        },
        [&](int) {
          MPI_Win_post(other, 0, window_);
          MPI_Win_wait(window_);
        });
    MPI_Group_free(&other);
    MPI_Group_free(&world);
  }

 private:
  template <typename Turn, typename Agree>
  void time_batches(const std::string& name, int times, const Turn& turn, const Agree& agree) {
    double best_s = 1e9;
    double spent_s = 0;
    for (int batch = 0; batch < 3 || spent_s < budget_s_; ++batch) {
      const double begin = MPI_Wtime();
      for (int i = 0; i < times; ++i) turn(i);
      const double batch_s = MPI_Wtime() - begin;
      best_s = std::min(best_s, batch_s / times);
      spent_s += batch_s;
      agree(spent_s);
    }
    print(name, best_s);
  }

  static std::string named(const char* kind, const Size& size, const char* end) {
    return std::string(kind) + " " + size.name + ", " + end;
  }
  // All over a page: where both sides lie at nearly the same place of their pages, many processors
  // copy at a third of the speed, and buffers begin where the MPI library likes.
  static MPI_Aint place(int i) { return i * 167 % 512; }

  void print(const std::string& name, double seconds) {
    if (rank_ == 0) std::printf("%s\"%s\": %.2f", first_ ? "{" : ", ", name.c_str(), seconds * 1e9);
    first_ = false;
  }

  static Layout straight(const Size& size) {
    const int words = size.bytes / 8;
    return {words, words, MPI_INT64_T, words, MPI_INT64_T};
  }

  void put(const Layout& of, MPI_Aint at) {
    MPI_Put(memory_.data(), of.origin_count, of.origin, 1, at, of.target_count, of.target, window_);
  }
  void get(const Layout& of, MPI_Aint at) {
    MPI_Get(memory_.data(), of.origin_count, of.origin, 1, at, of.target_count, of.target, window_);
  }
  void flush() { MPI_Win_flush(1, window_); }

  static constexpr std::size_t piece_words = 8 << 10;

  // Every piece is the same, and no line of it what it was before.
  void put_all() {
    ++stamp_;
    for (std::size_t word = 0; word < piece_words; word += 8) memory_[word] = stamp_;
    for (std::size_t at = 0; at < memory_.size(); at += piece_words) {
      const int words = words_at(at);
      MPI_Put(memory_.data(), words, MPI_INT64_T, 1, static_cast<MPI_Aint>(at), words, MPI_INT64_T,
              window_);
    }
  }
  void get_all() {
    for (std::size_t at = 0; at < memory_.size(); at += piece_words) {
      const int words = words_at(at);
      MPI_Get(memory_.data() + at, words, MPI_INT64_T, 1, static_cast<MPI_Aint>(at), words,
              MPI_INT64_T, window_);
    }
  }
  int words_at(std::size_t at) const {
    return static_cast<int>(std::min(piece_words, memory_.size() - at));
  }

  void put_and_get(const char* put_name, const char* get_name, const Size& size, const Layout& of) {
    time_alone(named(put_name, size, "flush"), size.times,
               [&](int i) { put(of, place(i)), flush(); });
    time_alone(named(get_name, size, "flush"), size.times,
               [&](int i) { get(of, place(i)), flush(); });
  }

  void transfers(const Size& size) {
    const Layout all = straight(size);
    put_and_get("put", "get", size, all);
    MPI_Request request = MPI_REQUEST_NULL;
    time_alone(named("rput", size, "flush"), size.times, [&](int i) {
      MPI_Rput(memory_.data(), all.words, MPI_INT64_T, 1, place(i), all.words, MPI_INT64_T, window_,
               &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);  // NOLINT(*.MPI-Checker): it knows no MPI_Rput
      flush();
    });
    time_alone(named("rget", size, "wait"), size.times, [&](int i) {
      MPI_Rget(memory_.data(), all.words, MPI_INT64_T, 1, place(i), all.words, MPI_INT64_T, window_,
               &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);  // NOLINT(*.MPI-Checker): nor MPI_Rget
    });
  }

  // rows: runs of 64 bytes, 128 apart, on both sides. column: at the target one word in 16, at the
  // origin all together.
  void strided(const Size& size) {
    if (size.bytes == 8) return;
    const int words = size.bytes / 8;
    MPI_Datatype rows = MPI_DATATYPE_NULL;
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(words / 8, 8, 16, MPI_INT64_T, &rows);
    MPI_Type_vector(words / 8, 1, 16, MPI_INT64_T, &column);
    MPI_Type_commit(&rows);
    MPI_Type_commit(&column);
    const Layout both = {words, 1, rows, 1, rows};
    const Layout one = {words / 8, words / 8, MPI_INT64_T, 1, column};
    put_and_get("put-rows", "get-rows", size, both);
    put_and_get("put-column", "get-column", size, one);
    MPI_Type_free(&column);
    MPI_Type_free(&rows);
  }

  void accumulates(const Size& size) {
    const Layout all = straight(size);
    time_alone(named("accumulate", size, "flush"), size.times, [&](int i) {
      MPI_Accumulate(memory_.data(), all.words, MPI_INT64_T, 1, place(i), all.words, MPI_INT64_T,
                     MPI_SUM, window_);
      flush();
    });
    time_alone(named("get_accumulate", size, "flush"), size.times, [&](int i) {
      MPI_Get_accumulate(memory_.data(), all.words, MPI_INT64_T, result_.data(), all.words,
                         MPI_INT64_T, 1, place(i), all.words, MPI_INT64_T, MPI_SUM, window_);
      flush();
    });
    if (size.bytes != 8) return;
    // No MPI_Compare_and_swap: as Debian configures Open MPI 4.1.4, it crashes in plain windows.
    time_alone("fetch_and_op 8 B, flush", size.times, [&](int i) {
      MPI_Fetch_and_op(memory_.data(), result_.data(), MPI_INT64_T, 1, place(i), MPI_SUM, window_);
      flush();
    });
  }

  MPI_Win window_;
  double budget_s_;
  int rank_;
  bool first_ = true;
  std::int64_t stamp_ = 0;
  std::vector<std::int64_t> memory_;  // twice what is transferred: rows have gaps
  std::vector<std::int64_t> result_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool whole = argc == 4 && std::strcmp(argv[3], "whole") == 0;
  const bool understood = argc == 3 || whole;
  const int budget_ms = understood ? std::atoi(argv[1]) : 0;
  const int bytes_max = understood ? std::atoi(argv[2]) : 0;
  if (budget_ms < 1 || bytes_max < 64 << 10 || bytes_max > 16 << 20 || ranks != 2) {
    std::fprintf(stderr,
                 "usage: mpiexec -n 2 bench_window_operations MILLISECONDS BYTES [whole]\n"
                 "BYTES: from 65536 to 16777216\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const MPI_Aint window_bytes = 2 * static_cast<MPI_Aint>(bytes_max) + rest_bytes;
  MPI_Win_allocate(window_bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base),
                   &window);
  {
    Bench bench(window, budget_ms * 1e-3, bytes_max, rank);
    if (whole) bench.whole(base);
    for (const Size& size : sizes) {
      if (whole || size.bytes > bytes_max) break;
      bench.passive(size);
      MPI_Barrier(MPI_COMM_WORLD);
      bench.active(size);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  if (rank == 0) std::printf("}\n");
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
