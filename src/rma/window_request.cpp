// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_request.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/environment.hpp"
#include "base/files.hpp"
#include "mpi/info.hpp"
#include "mpi/mpi_library.hpp"
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

// The ranks of `comm` in MPI_COMM_WORLD; empty if some are not there.
std::vector<int> world_ranks(MPI_Comm comm) {
  MPI_Group world{};
  MPI_Group group{};
  int count = 0;
  PMPI_Comm_size(comm, &count);
  std::vector<int> own(static_cast<std::size_t>(count));
  std::vector<int> in_world(own.size());
  std::iota(own.begin(), own.end(), 0);
  PMPI_Comm_group(comm_world(), &world);
  PMPI_Comm_group(comm, &group);
  PMPI_Group_translate_ranks(group, count, own.data(), world, in_world.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  for (const int rank : in_world) {
    if (rank == MPI_UNDEFINED) return {};
  }
  return in_world;
}

// Equal for communicators of the same ranks in the same order, and for no others.
std::string communicator_name(MPI_Comm comm) {
  const std::vector<int> ranks = world_ranks(comm);
  if (ranks.empty()) return "";
  int world_size = 0;
  PMPI_Comm_size(comm_world(), &world_size);
  std::vector<int> all(static_cast<std::size_t>(world_size));
  std::iota(all.begin(), all.end(), 0);
  if (ranks == all) return "world";
  if (ranks.size() == 1) return "rank-" + std::to_string(ranks.front());
  return "ranks-" + digits_of(crc64(ranks.data(), ranks.size() * sizeof(int)));
}

std::uint64_t next_number(const std::string& pool) {
  static std::mutex mutex;
  static std::map<std::string, std::uint64_t> made;
  const std::lock_guard<std::mutex> lock(mutex);
  return made[pool]++;
}

// MPI_COMM_WORLD, by whose ranks a pool is named, is there.
Status check_world() {
  int begun = 0;
  int ended = 0;
  PMPI_Initialized(&begun);
  PMPI_Finalized(&ended);
  if (begun != 0 && ended == 0) return Status::success();
  return {Code::unsupported, "a program of Sessions has not called MPI_Init()"};
}

// As it was read last: programs don't change their environment between windows.
struct ReadEnvironment {
  std::string text;
  WindowOptions options;
};

// What PERDURE_WINDOWS says; the directory that it names is there.
Result<WindowOptions> options_of_environment(const std::string& text) {
  static std::mutex mutex;
  static ReadEnvironment read;
  const std::lock_guard<std::mutex> lock(mutex);
  if (read.text == text) return read.options;
  PERDURE_TRY_ASSIGN(auto options, parse_window_environment(text));
  // A pool's own directory is made when the pool is opened, which agrees.
  PERDURE_TRY(Directory::make(options.pool.path, trust_unless(false)).status());
  // It was made once, so that it stays where it is when the program goes to another directory.
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(options.pool.path, error);
  if (!error) options.pool.path = full.string();
  read = {text, options};
  return options;
}

// The ranks of one communicator may have begun MPI in different ways.
WindowRequest request_of_environment(const std::string& text, MPI_Comm comm) {
  WindowRequest request;
  request.persistent = true;
  request.options.by_environment = true;
  request.able = check_world();
  const std::string name = request.able.ok() ? communicator_name(comm) : "";
  if (request.able.ok() && name.empty()) {
    request.able = {Code::unsupported,
                    "no version can hold all of its ranks, which are of several jobs"};
  }
  if (!request.able.ok()) return request;
  auto options = options_of_environment(text);
  request.status = options.status();
  if (!options.ok()) return request;
  request.options = options.take();
  request.options.pool.path += "/" + name;
  return request;
}

}  // namespace

WindowRequest read_request(MPI_Info info, MPI_Comm comm, MPI_Aint size, MPI_Aint disp_unit) {
  WindowRequest request;
  if (size < 0 || disp_unit <= 0 || comm == comm_null() || CallerScope::from_library())
    return request;
  auto parsed = parse_window_info(read_info(info), environment("PERDURE_POOL"));
  const std::string forced = environment("PERDURE_WINDOWS");
  if (!parsed.ok()) {
    request.persistent = true;
    request.status = parsed.status();
  } else if (parsed.value()) {
    request.persistent = true;
    request.options = std::move(*parsed.value());
  } else if (!forced.empty()) {
    request = request_of_environment(forced, comm);
  }
  return request;
}

void name_window(WindowRequest& request) {
  WindowOptions& options = request.options;
  if (options.by_environment && request.status.ok()) {
    options.name = "window-" + std::to_string(next_number(options.pool.path));
  }
  options.given["perdure_name"] = options.name;
  options.given["perdure_pool"] = options.pool.path;
  options.given.try_emplace("perdure_mode", mode_name(options.mode));
}

}  // namespace perdure
