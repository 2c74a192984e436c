// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose ranks write to a cached file and are killed (perdure bench kill_cache).
//
//   cache_job --make     makes the file, with its first contents
//   cache_job            writes, syncs, grows, closes and opens the file again, under mpiexec
//   cache_job --reopen   only opens and closes it: recovers what a killed job left
//   cache_job --verify   compares the file with what the log says; one JSON object
//
// A kill is a timer of the kernel that is set when a rank comes to a stage, and sends it SIGKILL:
// no other process has to be quick enough to hit a sync that takes microseconds.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cache_job_plan.hpp"

namespace {

using namespace cache_job;  // NOLINT(google-build-using-namespace): its own header

struct Options {
  Shape shape;
  std::string file;
  std::string pool;
  std::string log;
  std::string acknowledge = "sync";
  std::string from = "0";
  std::string sync = "file";
  int kill_rank = -1;
  bool kill_all = false;
  std::uint64_t kill_stage = stages;
  std::uint64_t kill_ns = 0;  // after the stage began
  bool make = false;
  bool reopen = false;
  bool verify = false;
};

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// What it holds stays in the file when the process is killed.
Log& map_log(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Log)) != 0) throw std::runtime_error("no log " + path);
  void* base = ::mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (base == MAP_FAILED) throw std::runtime_error("can't map " + path);
  return *static_cast<Log*>(base);
}

void kill_at(std::uint64_t deadline_ns) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      ::timer_settime(timer, TIMER_ABSTIME, &when, nullptr) != 0) {
    throw std::runtime_error("no timer to be killed by");
  }
}

class Job {
 public:
  Job(const Options& options, int rank)
      : options_(options),
        rank_(static_cast<std::uint64_t>(rank)),
        all_(map_log(options.log)),
        log_(all_.ranks[rank]),
        buffer_(large_bytes_max) {
    MPI_Info_create(&hints_);
    MPI_Info_set(hints_, "perdure_cache", "on");
    MPI_Info_set(hints_, "perdure_cache_directory", options.pool.c_str());
    MPI_Info_set(hints_, "perdure_cache_ack", options.acknowledge.c_str());
    MPI_Info_set(hints_, "perdure_cache_sync", options.sync.c_str());
    MPI_Info_set(hints_, "perdure_cache_from", options.from.c_str());
    MPI_Info_set(hints_, "perdure_cache_evict", "4");  // of use where there is little room
    const std::string block = std::to_string(options.shape.block_bytes);
    MPI_Info_set(hints_, "perdure_cache_block", block.c_str());
  }
  ~Job() { MPI_Info_free(&hints_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void reopen() {
    open(Stage::open);
    close(Stage::close);
    enter(Stage::end);
  }

  void run() {
    open(Stage::open);
    write(Stage::write);
    sync(Stage::sync);
    write(Stage::write_unsynced);
    grow();
    write(Stage::write_grown);
    sync(Stage::sync_again);
    close(Stage::close);
    open(Stage::reopen);
    write(Stage::write_reopened);
    close(Stage::close_again);
    enter(Stage::end);
  }

 private:
  void enter(Stage stage) {
    const auto number = static_cast<std::uint64_t>(stage);
    const std::uint64_t now = now_ns();
    log_.stage_ns[number] = now;
    log_.stage = number;
    if (number != options_.kill_stage) return;
    std::uint64_t deadline = now + options_.kill_ns;
    if (options_.kill_all) {
      std::uint64_t nobody = 0;
      if (!all_.all_killed_ns.compare_exchange_strong(nobody, deadline)) deadline = nobody;
    } else if (options_.kill_rank != static_cast<int>(rank_)) {
      return;
    }
    log_.killed_ns = deadline;
    kill_at(deadline);
  }

  // The launcher ends this rank too; what it says comes of the other's death.
  void check(int error, const char* what) {
    if (error == MPI_SUCCESS) return;
    log_.failed_ns = now_ns();
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(error, text, &length);
    std::fprintf(stderr, "cache_job: rank %d: %s: %s\n", static_cast<int>(rank_), what, text);
    // The launcher ends the others at once, and one of them may have more to say.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::_Exit(3);
  }

  void open(Stage stage) {
    enter(stage);
    check(MPI_File_open(MPI_COMM_WORLD, options_.file.c_str(), MPI_MODE_RDWR, hints_, &file_),
          "open");
  }
  void write(Stage stage) {
    enter(stage);
    for (std::uint64_t i = 0; i < options_.shape.writes; ++i, ++number_) {
      const Write each = write_of(options_.shape, rank_, number_);
      for (std::uint64_t at = 0; at < each.bytes; ++at) {
        buffer_[at] = byte_of(each.pattern, each.offset + at);
      }
      log_.started = number_ + 1;
      check(MPI_File_write_at(file_, static_cast<MPI_Offset>(each.offset), buffer_.data(),
                              static_cast<int>(each.bytes), MPI_BYTE, MPI_STATUS_IGNORE),
            "write");
      log_.acknowledged = number_ + 1;
    }
  }
  void sync(Stage stage) {
    enter(stage);
    check(MPI_File_sync(file_), "sync");
    log_.synced = number_;
  }
  void grow() {
    enter(Stage::grow);
    log_.growing = 1;
    check(MPI_File_set_size(file_, static_cast<MPI_Offset>(bytes_at_last(options_.shape))),
          "set_size");
    log_.grown = 1;
  }
  void close(Stage stage) {
    enter(stage);
    check(MPI_File_close(&file_), "close");
    log_.synced = number_;
  }

  const Options& options_;
  std::uint64_t rank_;
  Log& all_;
  RankLog& log_;
  std::vector<unsigned char> buffer_;
  MPI_Info hints_ = MPI_INFO_NULL;
  MPI_File file_ = MPI_FILE_NULL;
  std::uint64_t number_ = 0;
};

void make_file(const Options& options) {
  std::vector<char> bytes(bytes_at_first(options.shape));
  const std::uint64_t pattern = first_pattern(options.shape);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<char>(byte_of(pattern, at));
  }
  std::ofstream file(options.file, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("can't write " + options.file);
}

void print_verdict(const Options& options) {
  std::ifstream file(options.file, std::ios::binary);
  const std::vector<unsigned char> bytes(std::istreambuf_iterator<char>(file), {});
  const Log& log = map_log(options.log);
  const Findings found = verify(options.shape, log, options.acknowledge == "async", bytes);
  std::uint64_t writes = 0;
  for (const RankLog& rank : log.ranks) writes += rank.acknowledged;
  std::printf(
      "{\"program\": \"cache_job\", \"lost\": %llu, \"wrong\": %llu, \"first\": %llu, "
      "\"bytes\": %llu, \"acknowledged\": %llu}\n",
      static_cast<unsigned long long>(found.lost), static_cast<unsigned long long>(found.wrong),
      static_cast<unsigned long long>(found.first), static_cast<unsigned long long>(bytes.size()),
      static_cast<unsigned long long>(writes));
}

// Before MPI begins: which of the pretended nodes this rank is on.
void pretend_node(std::uint64_t nodes) {
  const char* rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr || nodes < 2) return;
  ::setenv("PERDURE_NODE_ID", std::to_string(std::stoull(rank) % nodes).c_str(), 1);
}

int run_ranks(const Options& options, int argc, char** argv) {
  pretend_node(options.shape.nodes);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    Job job(options, rank);
    options.reopen ? job.reopen() : job.run();
  }
  MPI_Finalize();
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("A job that writes to a cached file, to be killed");
  app.add_flag("--make", options.make);
  app.add_flag("--reopen", options.reopen);
  app.add_flag("--verify", options.verify);
  app.add_option("--file", options.file)->required();
  app.add_option("--pool", options.pool);
  app.add_option("--log", options.log);
  app.add_option("--seed", options.shape.seed);
  app.add_option("--ranks", options.shape.ranks)->check(CLI::Range(1, 15));
  app.add_option("--nodes", options.shape.nodes)->check(CLI::Range(1, 15));
  app.add_option("--block", options.shape.block_bytes);
  app.add_option("--writes", options.shape.writes);
  app.add_option("--from", options.from, "Accesses of a rank before the file is cached.");
  app.add_option("--ack", options.acknowledge)->check(CLI::IsMember({"async", "sync", "durable"}));
  app.add_option("--sync", options.sync)->check(CLI::IsMember({"file", "nvm"}));
  app.add_option("--kill-rank", options.kill_rank);
  app.add_flag("--kill-all", options.kill_all);
  app.add_option("--kill-stage", options.kill_stage);
  app.add_option("--kill-ns", options.kill_ns);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (options.make) {
      make_file(options);
    } else if (options.verify) {
      print_verdict(options);
    } else {
      return run_ranks(options, argc, argv);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cache_job: %s\n", error.what());
    return 1;
  }
}
