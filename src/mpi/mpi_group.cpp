#include "mpi/mpi_group.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "mpi/mpi_library.hpp"

namespace perdure {
namespace {

// Of MPI's counts, which are ints; both sides cut a message into the same pieces.
constexpr std::size_t piece_bytes_max = std::size_t{1} << 30U;
constexpr int message_tag = 1;

std::size_t piece(std::span<const std::byte> bytes) {
  return std::min(bytes.size(), piece_bytes_max);
}

}  // namespace

Status mpi_status(const char* call, int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (PMPI_Error_string(error, text.data(), &length) != MPI_SUCCESS) length = 0;
  return {Code::peer_failed,
          std::string(call) + ": " + std::string(text.data(), static_cast<std::size_t>(length))};
}

MpiGroup::MpiGroup(MPI_Comm own) : comm_(own) {
  PMPI_Comm_set_errhandler(comm_, errors_return());
  int rank = 0;
  int ranks = 0;
  PMPI_Comm_rank(comm_, &rank);
  PMPI_Comm_size(comm_, &ranks);
  rank_ = static_cast<std::uint32_t>(rank);
  ranks_ = static_cast<std::uint32_t>(ranks);
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  beside_ = provided == MPI_THREAD_MULTIPLE;
}

Result<std::unique_ptr<MpiGroup>> MpiGroup::create(MPI_Comm comm) {
  int initialized = 0;
  PMPI_Initialized(&initialized);
  if (initialized == 0) {
    return Status(Code::wrong_state, "perdure_open_mpi() needs MPI_Init() before it");
  }
  if (comm == comm_null()) return Status(Code::invalid_argument, "the communicator is null");
  MPI_Comm copy = comm_null();
  if (const int error = PMPI_Comm_dup(comm, &copy); error != MPI_SUCCESS) {
    return mpi_status("MPI_Comm_dup", error);
  }
  return std::unique_ptr<MpiGroup>(new MpiGroup(copy));
}

// MPI_MAX of MPI_UINT64_T compares as signed numbers in Debian's MPICH 4.0.2. Signed numbers are
// compared right everywhere, and these are in the order of the unsigned ones.
int max_over_ranks(MPI_Comm comm, std::span<std::uint64_t> values) {
  constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;
  for (std::uint64_t& value : values) value ^= top_bit;
  const int error = PMPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                                   type_int64(), op_max(), comm);
  for (std::uint64_t& value : values) value ^= top_bit;
  return error;
}

MpiGroup::~MpiGroup() {
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (finalized == 0) PMPI_Comm_free(&comm_);
}

Status MpiGroup::all_max(std::span<std::uint64_t> values) {
  const int error = max_over_ranks(comm_, values);
  return error == MPI_SUCCESS ? Status::success() : mpi_status("MPI_Allreduce", error);
}

Status MpiGroup::send(std::uint32_t to, std::span<const std::byte> bytes) {
  PERDURE_TRY(check_other(to));
  for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes))) {
    const int error = PMPI_Send(bytes.data(), static_cast<int>(piece(bytes)), type_byte(),
                                static_cast<int>(to), message_tag, comm_);
    if (error != MPI_SUCCESS) return mpi_status("MPI_Send", error);
  }
  return Status::success();
}

Status MpiGroup::receive(std::uint32_t from, std::span<std::byte> bytes) {
  PERDURE_TRY(check_other(from));
  for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes))) {
    const int error = PMPI_Recv(bytes.data(), static_cast<int>(piece(bytes)), type_byte(),
                                static_cast<int>(from), message_tag, comm_, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) return mpi_status("MPI_Recv", error);
  }
  return Status::success();
}

Result<std::unique_ptr<Group>> MpiGroup::split(std::uint32_t part) {
  MPI_Comm own = comm_null();
  const int error = PMPI_Comm_split(comm_, static_cast<int>(part), static_cast<int>(rank_), &own);
  if (error != MPI_SUCCESS) return mpi_status("MPI_Comm_split", error);
  return std::unique_ptr<Group>(new MpiGroup(own));
}

}  // namespace perdure
