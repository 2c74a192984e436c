// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose state is a persistent window, an array and a cached file, committed in one group, and
// which is killed and started again (pool_kill.py).
//
//   pool_job PLACE SEED STEPS NODES [KILL_RANK KILL_STEP KILL_NS]
//
// Pool and parts are in PLACE, the file is in $POOL_JOB_SHARED, or there too. With POOL_JOB_NODES,
// a number for each rank, a rank is on the pretended node of that number, in whose folder of PLACE
// its pool is. With PERDURE_LEVELS the parts are where levels want them: beside the pool.
//
// A step changes all three; what they hold after it is a pure function of seed and step, so a start
// that finds them at different versions, or anything torn, sees it, and ends with 4. A version
// older than one that a rank saw committed ends it with 5, unless POOL_JOB_MAY_GO_BACK is set, as
// where nodes are lost. KILL_RANK -1 is every rank. KILL_NS 0 is
// right before the commit of the step, when all ranks have synchronised the file.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dax/acknowledge.h"
#include "perdure/perdure_mpi.h"

namespace {

constexpr std::size_t cells = 512;
constexpr std::uint64_t writes_per_step = 6;
constexpr std::uint64_t stripe_bytes = 7001;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

struct Options {
  std::string place;
  std::string shared;
  std::uint64_t seed = 1;
  std::uint64_t steps = 20;
  std::uint64_t nodes = 1;
  int kill_rank = -2;
  std::uint64_t kill_step = 0;
  std::uint64_t kill_ns = 0;
};

struct Write {
  std::uint64_t offset;
  std::vector<unsigned char> bytes;
};

// The `number`-th write of a rank in a step: small and large ones, in stripes of its own, of a file
// that grows.
Write write_of(const Options& options, int rank, int ranks, std::uint64_t step,
               std::uint64_t number) {
  const std::uint64_t drawn =
      mix(mix(mix(options.seed, step), number), static_cast<std::uint64_t>(rank));
  const std::uint64_t stripe = drawn % (6 + step / 4);
  Write write;
  write.bytes.resize(1 + (drawn >> 8) % (drawn % 3 == 0 ? 6000 : 700));
  write.offset = (stripe * static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(rank)) *
                     stripe_bytes +
                 (drawn >> 20) % (stripe_bytes - write.bytes.size());
  for (std::size_t i = 0; i < write.bytes.size(); ++i) {
    write.bytes[i] = static_cast<unsigned char>(mix(drawn, i / 8) >> (8 * (i % 8)));
  }
  return write;
}

std::vector<unsigned char> file_at(const Options& options, int ranks, std::uint64_t step) {
  std::vector<unsigned char> file;
  for (std::uint64_t s = 1; s <= step; ++s) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::uint64_t number = 0; number < writes_per_step; ++number) {
        const Write write = write_of(options, rank, ranks, s, number);
        file.resize(std::max<std::size_t>(file.size(), write.offset + write.bytes.size()));
        std::copy(write.bytes.begin(), write.bytes.end(),
                  file.begin() + static_cast<std::ptrdiff_t>(write.offset));
      }
    }
  }
  return file;
}

std::uint64_t cell_at(const Options& options, int rank, std::uint64_t step, std::size_t index) {
  return step == 0 ? 0 : mix(mix(options.seed + step, index), static_cast<std::uint64_t>(rank));
}

// What outlives the job, in shared memory: a line on its way to mpiexec may be lost when ranks die.
struct Seen {
  std::atomic<std::uint64_t> committed;  // the newest step that a rank saw committed
  std::atomic<std::uint64_t> began;      // the step that the last start went on from, plus 1
};

Seen& seen_of(const Options& options) {
  const std::string path = options.shared + "/seen";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ::ftruncate(fd, 4096) != 0) throw std::runtime_error("no " + path);
  void* base = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (base == MAP_FAILED) throw std::runtime_error("can't map " + path);
  return *static_cast<Seen*>(base);
}

void kill_after(std::uint64_t nanoseconds) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000) + 1;
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      ::timer_settime(timer, 0, &when, nullptr) != 0) {
    throw std::runtime_error("no timer to be killed by");
  }
}

void check(int code, const char* what) {
  if (code == PERDURE_OK) return;
  throw std::runtime_error(std::string(what) + ": " + perdure_last_error());
}

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

class Job {
 public:
  explicit Job(const Options& options) : options_(options), seen_(seen_of(options)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    open_window();
    perdure_pool* pool = nullptr;
    check(perdure_win_pool(window_, &pool), "perdure_win_pool");
    const std::uint64_t shape = cells;
    check(
        perdure_array_open(pool, "array", PERDURE_INT64, 1, &shape, PERDURE_TWIN, nullptr, &array_),
        "perdure_array_open");
    check(perdure_scalar(pool, "iteration", &step_, sizeof step_), "perdure_scalar");
    open_file();
  }

  // 0, or what the job ends with.
  int verify() {
    int wrong = 0;
    const bool may_go_back = std::getenv("POOL_JOB_MAY_GO_BACK") != nullptr;
    if (step_ < seen_.committed && !may_go_back)
      wrong = say(5, "the version is older than one that was committed");
    const auto* array = static_cast<const std::uint64_t*>(perdure_consistent(array_));
    for (std::size_t i = 0; i < cells && wrong == 0; ++i) {
      if (base_[i] != cell_at(options_, rank_, step_, i)) wrong = say(4, "the window differs");
      if (array[i] != cell_at(options_, rank_, step_, i + cells))
        wrong = say(4, "the array differs");
    }
    const auto expected = file_at(options_, ranks_, step_);
    std::vector<unsigned char> got(expected.size() + 100);
    MPI_Status status;
    int count = 0;
    MPI_Offset size = 0;
    MPI_File_get_size(file_, &size);
    check_mpi(
        MPI_File_read_at(file_, 0, got.data(), static_cast<int>(got.size()), MPI_BYTE, &status),
        "read");
    MPI_Get_count(&status, MPI_BYTE, &count);
    got.resize(static_cast<std::size_t>(count));
    if (wrong == 0 && (size != count || got != expected)) {
      const auto differs = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
      wrong =
          say(4, "the file differs at byte " + std::to_string(differs.first - got.begin()) +
                     " of " + std::to_string(expected.size()) + ", it has " + std::to_string(size));
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return wrong;
  }

  void run() {
    const std::uint64_t began = step_;
    perdure_pool* pool = nullptr;
    check(perdure_win_pool(window_, &pool), "perdure_win_pool");
    if (rank_ == 0) {
      seen_.began = began + 1;
      say_restarted(pool, began);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double began_s = MPI_Wtime();
    while (step_ < options_.steps) {
      const bool dies = step_ - began == options_.kill_step &&
                        (options_.kill_rank == rank_ || options_.kill_rank == -1);
      if (dies && options_.kill_ns != 0) kill_after(options_.kill_ns);
      one_step(dies && options_.kill_ns == 0);
    }
    if (rank_ != 0 || step_ == began) return;
    std::printf("%.0f ns a step\n",
                (MPI_Wtime() - began_s) * 1e9 / static_cast<double>(step_ - began));
  }

  // The plain file holds what all steps made of it.
  int close() {
    check_mpi(MPI_File_close(&file_), "close");
    MPI_Win_free(&window_);
    if (rank_ != 0) return 0;
    std::ifstream plain(options_.shared + "/file", std::ios::binary);
    const std::vector<unsigned char> bytes(std::istreambuf_iterator<char>(plain), {});
    return bytes == file_at(options_, ranks_, step_) ? 0 : say(4, "the plain file differs");
  }

 private:
  int say(int code, const std::string& what) const {
    std::fprintf(stderr, "pool_job: rank %d at step %llu: %s\n", rank_,
                 static_cast<unsigned long long>(step_), what.c_str());
    return code;
  }

  void open_window() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "perdure_name", "window");
    MPI_Info_set(info, "perdure_pool", (options_.place + "/pool").c_str());
    check_mpi(MPI_Win_allocate(static_cast<MPI_Aint>(cells * 8), 8, info, MPI_COMM_WORLD,
                               static_cast<void*>(&base_), &window_),
              "MPI_Win_allocate");
    MPI_Info_free(&info);
  }

  void open_file() {
    MPI_Info hints = MPI_INFO_NULL;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "perdure_cache", "on");
    if (std::getenv("PERDURE_LEVELS") == nullptr) {
      MPI_Info_set(hints, "perdure_cache_directory", (options_.place + "/parts").c_str());
    }
    MPI_Info_set(hints, "perdure_cache_block", options_.seed % 2 == 0 ? "4096" : "65536");
    MPI_Info_set(hints, "perdure_cache_ack", options_.seed % 3 == 0 ? "async" : "sync");
    MPI_Info_set(hints, "perdure_cache_pool", (options_.place + "/pool").c_str());
    check_mpi(MPI_File_open(MPI_COMM_WORLD, (options_.shared + "/file").c_str(),
                            MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file_),
              "MPI_File_open");
    MPI_Info_free(&hints);
  }

  // Puts what the right neighbour's window is to hold, writes array and file, and commits all.
  void one_step(bool dies) {
    const std::uint64_t next = step_ + 1;
    const int right = (rank_ + 1) % ranks_;
    std::vector<std::uint64_t> put(cells);
    for (std::size_t i = 0; i < cells; ++i) put[i] = cell_at(options_, right, next, i);
    MPI_Win_fence(0, window_);
    MPI_Put(put.data(), cells, MPI_UINT64_T, right, 0, cells, MPI_UINT64_T, window_);
    auto* array = static_cast<std::uint64_t*>(perdure_working(array_));
    for (std::size_t i = 0; i < cells; ++i) array[i] = cell_at(options_, rank_, next, i + cells);
    for (std::uint64_t number = 0; number < writes_per_step; ++number) {
      const Write write = write_of(options_, rank_, ranks_, next, number);
      check_mpi(
          MPI_File_write_at(file_, static_cast<MPI_Offset>(write.offset), write.bytes.data(),
                            static_cast<int>(write.bytes.size()), MPI_BYTE, MPI_STATUS_IGNORE),
          "write");
    }
    if (dies || mix(options_.seed, next) % 3 == 0) check_mpi(MPI_File_sync(file_), "sync");
    if (dies) {
      MPI_Barrier(MPI_COMM_WORLD);
      ::raise(SIGKILL);
    }
    step_ = next;
    check_mpi(MPI_Win_fence(PERDURE_MODE_COMMIT, window_), "commit");
    if (rank_ == 0) say_committed(next);
    std::uint64_t seen = seen_.committed;
    while (seen < next && !seen_.committed.compare_exchange_weak(seen, next)) {
    }
  }

  const Options& options_;
  Seen& seen_;
  int rank_ = 0;
  int ranks_ = 1;
  std::uint64_t step_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;
  std::uint64_t* base_ = nullptr;
  perdure_array* array_ = nullptr;
  MPI_File file_ = MPI_FILE_NULL;
};

// Before MPI begins: which of the pretended nodes this rank is on.
void pretend_node(Options& options) {
  const char* rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) return;
  std::string node = std::to_string(std::stoull(rank) % options.nodes);
  if (const char* const given = std::getenv("POOL_JOB_NODES")) {
    std::istringstream nodes(given);
    for (std::uint64_t i = 0; i <= std::stoull(rank); ++i) nodes >> node;
    options.place += "/node-" + node;
  } else if (options.nodes < 2) {
    return;
  }
  ::setenv("PERDURE_NODE_ID", node.c_str(), 1);
}

Options parse(int count, char** words) {
  if (count != 5 && count != 8) throw std::runtime_error("see the top of pool_job.cpp");
  Options options;
  options.place = words[1];
  const char* const shared = std::getenv("POOL_JOB_SHARED");
  options.shared = shared != nullptr ? shared : options.place;
  options.seed = std::strtoull(words[2], nullptr, 0);
  options.steps = std::strtoull(words[3], nullptr, 0);
  options.nodes = std::strtoull(words[4], nullptr, 0);
  if (count == 5) return options;
  options.kill_rank = std::atoi(words[5]);
  options.kill_step = std::strtoull(words[6], nullptr, 0);
  options.kill_ns = std::strtoull(words[7], nullptr, 0);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options = parse(argc, argv);
    pretend_node(options);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int wrong = 0;
    {
      Job job(options);
      wrong = job.verify();
      if (wrong == 0) job.run();
      if (wrong == 0) wrong = job.close();
    }
    MPI_Finalize();
    return wrong;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pool_job: %s\n", error.what());
    std::_Exit(3);
  }
}
