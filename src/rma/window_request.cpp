// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_request.hpp"

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
#include "rma/plain_window.hpp"
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

void describe(WindowOptions& options, const std::string& mode) {
  options.given["perdure_name"] = options.name;
  options.given["perdure_pool"] = options.pool.path;
  options.given.try_emplace("perdure_mode", mode);
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

// Collective, as the ranks of one communicator may have begun MPI in different ways.
WindowRequest request_of_environment(const std::string& text, MPI_Comm comm) {
  WindowRequest request;
  Status able = check_world();
  const std::string name = able.ok() ? communicator_name(comm) : "";
  if (able.ok() && name.empty()) {
    able = {Code::unsupported, "no version can hold all of its ranks, which are of several jobs"};
  }
  if (agree_stays_plain(comm, able, {Code::unsupported})) {
    if (able.ok()) able = {Code::peer_failed, "another of its ranks can't make it persistent"};
    report_plain_window(comm, "a window", able);
    return request;
  }
  request.persistent = true;
  auto parsed = parse_window_environment(text);
  request.status = parsed.status();
  if (!parsed.ok()) return request;
  request.options = parsed.take();
  // The directory that was named; a pool's own is made when the pool is opened, which agrees.
  request.status = Directory::make(request.options.pool.path, trust_unless(false)).status();
  request.options.pool.path += "/" + name;
  request.options.name = "window-" + std::to_string(next_number(request.options.pool.path));
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
  constexpr const char* modes[] = {"copy", "log", "twin", "flush"};
  if (request.persistent) describe(request.options, modes[static_cast<int>(request.options.mode)]);
  return request;
}

}  // namespace perdure
