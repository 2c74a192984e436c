// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/mpi_group.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/process_end.hpp"
#include "mpi/at_finalize.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/node_map.hpp"

namespace perdure {
namespace {

// Of MPI's counts, which are ints; both sides cut a message into the same pieces.
constexpr std::size_t piece_bytes_max = std::size_t{1} << 30U;
constexpr int message_tag = 1;
constexpr int started_tag = 2;
constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

// MPI_MAX of MPI_UINT64_T compares as signed numbers in Debian's MPICH 4.0.2. Signed numbers are
// compared right everywhere, and these are in the order of the unsigned ones.
void flip(std::span<std::uint64_t> values) {
  for (std::uint64_t& value : values) value ^= top_bit;
}

// Eight words as one element, which an agreement is (base/agreement.hpp): MPICH 4.0.2 takes twice
// as long for an Allreduce of several elements as for one of the same bytes. A group makes it,
// before it asks MPI_Finalize to end anything, so this ends last.
struct Line {
  static constexpr std::size_t words = 8;
  MPI_Datatype type = type_null();
  MPI_Op maximum{};
  int error = MPI_SUCCESS;

  static Line& of_process() {
    static Line line;
    return line;
  }
  static void take_maximum(void* from, void* to, int* lines, MPI_Datatype*) {
    const auto* mine = static_cast<const std::uint64_t*>(from);
    auto* all = static_cast<std::uint64_t*>(to);
    const std::size_t count = words * static_cast<std::size_t>(*lines);
    for (std::size_t i = 0; i < count; ++i) all[i] = std::max(all[i], mine[i]);
  }

 private:
  Line() {
    error = PMPI_Type_contiguous(static_cast<int>(words), type_int64(), &type);
    if (error == MPI_SUCCESS) error = PMPI_Type_commit(&type);
    if (error == MPI_SUCCESS) error = PMPI_Op_create(take_maximum, 1, &maximum);
    at_finalize<end>();
  }
  static void end() {
    Line& line = of_process();
    if (line.error != MPI_SUCCESS) return;
    PMPI_Type_free(&line.type);
    PMPI_Op_free(&line.maximum);
    line.error = MPI_ERR_OTHER;
  }
};

std::size_t piece(std::span<const std::byte> bytes) {
  return std::min(bytes.size(), piece_bytes_max);
}

class MpiTransfer final : public Transfer {
 public:
  // `begin` starts the requests and returns MPI's code.
  template <typename Begin>
  static Result<std::unique_ptr<Transfer>> start(const char* call, const Begin& begin) {
    auto transfer = std::make_unique<MpiTransfer>();
    const int error = begin(*transfer);
    if (error != MPI_SUCCESS) return mpi_status(call, error);
    return std::unique_ptr<Transfer>(std::move(transfer));
  }
  // A transfer that is not done is left to the message library: to cancel it would wait.

  MPI_Request* next_request() { return &requests_.emplace_back(request_null()); }
  void flip_when_done(std::span<std::uint64_t> values) {
    flip(values);
    flipped_ = values;
  }

  Result<bool> done() override {
    int all = 0;
    const int error = PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all,
                                   MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS) return mpi_status("MPI_Testall", error);
    if (all == 0) return false;
    flip(std::exchange(flipped_, {}));
    return true;
  }

 private:
  std::vector<MPI_Request> requests_;
  std::span<std::uint64_t> flipped_;
};

}  // namespace

Status mpi_status(const char* call, int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (PMPI_Error_string(error, text.data(), &length) != MPI_SUCCESS) length = 0;
  return Status(Code::peer_failed, call, ": ",
                std::string(text.data(), static_cast<std::size_t>(length)));
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

namespace {

void end_at_finalize() {
  end_open_things(ProcessEnd::finalize);
}

}  // namespace

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
  (void)Line::of_process();  // first, as what MPI_Finalize ends first may meet others' agreements
  at_finalize<end_at_finalize>();
  return std::unique_ptr<MpiGroup>(new MpiGroup(copy));
}

namespace {

using SharedGroup = std::shared_ptr<MpiGroup>;

// The attribute of a communicator that holds its SharedGroup. A duplicate of it has its own.
int group_key() {
  static const int key = [] {
    const auto copy = [](MPI_Comm, int, void*, void*, void*, int* flag) -> int {
      *flag = 0;
      return MPI_SUCCESS;
    };
    const auto drop = [](MPI_Comm, int, void* group, void*) -> int {
      delete static_cast<SharedGroup*>(group);
      return MPI_SUCCESS;
    };
    int made = 0;
    const int error = PMPI_Comm_create_keyval(copy, drop, &made, nullptr);
    return error == MPI_SUCCESS ? made : MPI_KEYVAL_INVALID;
  }();
  return key;
}

// Before MPI ends: what it does with the attributes of MPI_COMM_WORLD then is its own affair.
void drop_group_of_world() {
  SharedGroup* group = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm_world(), group_key(), static_cast<void*>(&group), &found) !=
      MPI_SUCCESS) {
    return;
  }
  if (found != 0) PMPI_Comm_delete_attr(comm_world(), group_key());
}

}  // namespace

Result<std::shared_ptr<MpiGroup>> MpiGroup::shared(MPI_Comm comm) {
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  const bool sharing = provided != MPI_THREAD_MULTIPLE && group_key() != MPI_KEYVAL_INVALID;
  SharedGroup* known = nullptr;
  int found = 0;
  if (sharing &&
      PMPI_Comm_get_attr(comm, group_key(), static_cast<void*>(&known), &found) == MPI_SUCCESS &&
      found != 0) {
    return *known;
  }
  PERDURE_TRY_ASSIGN(SharedGroup group, create(comm));
  if (!sharing) return group;
  at_finalize<drop_group_of_world>();
  auto kept = std::make_unique<SharedGroup>(group);
  if (PMPI_Comm_set_attr(comm, group_key(), kept.get()) == MPI_SUCCESS) (void)kept.release();
  return group;
}

int max_over_ranks(MPI_Comm comm, std::span<std::uint64_t> values) {
  const Line& line = Line::of_process();
  if (values.size() == Line::words && line.error == MPI_SUCCESS) {
    return PMPI_Allreduce(MPI_IN_PLACE, values.data(), 1, line.type, line.maximum, comm);
  }
  flip(values);
  const int error = PMPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                                   type_int64(), op_max(), comm);
  flip(values);
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

Result<std::unique_ptr<Transfer>> MpiGroup::start_send(std::uint32_t to,
                                                       std::span<const std::byte> bytes) {
  PERDURE_TRY(check_other(to));
  return MpiTransfer::start("MPI_Isend", [&](MpiTransfer& transfer) -> int {
    for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes))) {
      const int error =
          PMPI_Isend(bytes.data(), static_cast<int>(piece(bytes)), type_byte(),
                     static_cast<int>(to), started_tag, comm_, transfer.next_request());
      if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
  });
}

Result<std::unique_ptr<Transfer>> MpiGroup::start_receive(std::uint32_t from,
                                                          std::span<std::byte> bytes) {
  PERDURE_TRY(check_other(from));
  return MpiTransfer::start("MPI_Irecv", [&](MpiTransfer& transfer) -> int {
    for (; !bytes.empty(); bytes = bytes.subspan(piece(bytes))) {
      const int error =
          PMPI_Irecv(bytes.data(), static_cast<int>(piece(bytes)), type_byte(),
                     static_cast<int>(from), started_tag, comm_, transfer.next_request());
      if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
  });
}

Result<std::unique_ptr<Transfer>> MpiGroup::start_all_max(std::span<std::uint64_t> values) {
  return MpiTransfer::start("MPI_Iallreduce", [&](MpiTransfer& transfer) -> int {
    transfer.flip_when_done(values);
    return PMPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()),
                           type_int64(), op_max(), comm_, transfer.next_request());
  });
}

Result<std::vector<std::uint32_t>> MpiGroup::nodes() {
  PERDURE_TRY_ASSIGN(const NodeMap map, map_nodes(comm_));
  std::vector<char> gathered;
  PERDURE_TRY(gather_all(comm_, &map.node, sizeof map.node, gathered));
  std::vector<std::uint32_t> nodes(ranks_);
  std::memcpy(nodes.data(), gathered.data(), gathered.size());
  return nodes;
}

}  // namespace perdure
