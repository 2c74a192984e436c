// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_service.hpp"

#include <limits>
#include <string>

namespace perdure {
namespace {

constexpr std::uint64_t lock_owner_max = (std::uint64_t{1} << 54) - 1;
constexpr std::uint64_t file_bytes_max = std::numeric_limits<std::int64_t>::max();

Status refuse(const std::string& what) {
  return Status(Code::invalid_argument, what, "; the processes of the job differ in their Perdure");
}

Status check_size(std::uint64_t bytes) {
  if (bytes <= file_bytes_max) return Status::success();
  return Status(Code::invalid_argument, "a file of ", bytes,
                " bytes is larger than any file can be");
}

}  // namespace

Status PartService::check_shape(const RequestFormat& request) {
  if (request.verb < static_cast<std::uint32_t>(Verb::read) ||
      request.verb > static_cast<std::uint32_t>(Verb::write_pieces)) {
    return refuse("there is no request " + std::to_string(request.verb));
  }
  const Verb verb{request.verb};
  const bool has_pieces = verb == Verb::read_pieces || verb == Verb::write_pieces;
  if (!has_pieces && verb != Verb::read && verb != Verb::write) return Status::success();
  if (request.bytes > payload_bytes_max) {
    return refuse("a request of " + std::to_string(request.bytes) + " bytes, more than " +
                  std::to_string(payload_bytes_max));
  }
  const std::uint64_t runs_max = (payload_bytes_max - request.bytes) / sizeof(PiecesFormat);
  if (has_pieces && (request.value == 0 || request.value > runs_max)) {
    return refuse("a request of " + std::to_string(request.value) + " runs of pieces and " +
                  std::to_string(request.bytes) + " bytes, where there may be 1 to " +
                  std::to_string(runs_max) + " runs");
  }
  return Status::success();
}

Status PartService::check_acknowledge(const RequestFormat& request) {
  if (request.option <= static_cast<std::uint32_t>(Acknowledge::durable)) return Status::success();
  return refuse("there is no acknowledgement " + std::to_string(request.option));
}

Status PartService::check_range(std::uint64_t offset, std::uint64_t bytes) const {
  PERDURE_TRY(check_size(offset));
  if (bytes > file_bytes_max - offset) return check_size(file_bytes_max + 1);
  const Layout& layout = part_.layout();
  for (std::uint64_t at = offset; at < offset + bytes;) {
    const std::uint32_t owner = place_of(layout, at).node;
    if (owner != part_.node()) {
      return refuse(sentence("byte ", at, " of ", part_.header().path, " is kept by node ", owner,
                             ", not by node ", part_.node()));
    }
    at += run_on_node(layout, at, offset + bytes - at);
  }
  return Status::success();
}

Result<bool> PartService::prepare_read(const RequestFormat& request) {
  PERDURE_TRY(check_range(request.offset, request.bytes));
  return part_.fill(request.offset, request.bytes);
}

Status PartService::write(const RequestFormat& request, const void* payload) {
  PERDURE_TRY(check_acknowledge(request));
  PERDURE_TRY(check_range(request.offset, request.bytes));
  const Status written =
      part_.write(request.offset, payload, request.bytes, static_cast<Acknowledge>(request.option));
  part_.journal().give_entry_of_thread();  // more connections than entries are possible
  return written;
}

// Nothing of a request is done before all of it is right.
Status PartService::check_pieces_here(const RequestFormat& request,
                                      std::span<const PiecesFormat> runs) const {
  if (const Status right = check_pieces(runs, request.bytes); !right.ok()) {
    return refuse(right.message());
  }
  for (const PiecesFormat& run : runs) {
    PERDURE_TRY(
        for_each_block_of(part_.layout(), run, [&](std::uint64_t offset, std::uint64_t here) {
          return check_range(offset, here == 0 ? run.bytes : (here - 1) * run.stride + run.bytes);
        }));
  }
  return Status::success();
}

Status PartService::write_pieces(const RequestFormat& request, std::span<const PiecesFormat> runs,
                                 const std::byte* payload) {
  PERDURE_TRY(check_acknowledge(request));
  PERDURE_TRY(check_pieces_here(request, runs));
  Status written;
  for (const PiecesFormat& run : runs) {
    written = part_.write_pieces(run, payload, static_cast<Acknowledge>(request.option));
    if (!written.ok()) break;
    payload += std::uint64_t{run.bytes} * run.count;
  }
  part_.journal().give_entry_of_thread();  // more connections than entries are possible
  return written;
}

// As prepare_read(): what another node asks for has its room at once.
Status PartService::read_pieces(const RequestFormat& request, std::span<const PiecesFormat> runs,
                                std::byte* payload) {
  PERDURE_TRY(check_pieces_here(request, runs));
  for (const PiecesFormat& run : runs) {
    PERDURE_TRY(
        for_each_block_of(part_.layout(), run, [&](std::uint64_t offset, std::uint64_t here) {
          return part_.fill(offset, here == 0 ? run.bytes : 1).status();
        }));
    PERDURE_TRY(part_.read_pieces(run, payload));
    payload += std::uint64_t{run.bytes} * run.count;
  }
  return Status::success();
}

Status PartService::unlock(std::uint64_t owner) {
  if (owner != 0 && part_.unlock(owner & lock_owner_max)) return Status::success();
  return Status(Code::wrong_state, part_.header().path,
                ": unlocked by a process that does not hold the lock");
}

Status PartService::write_back(const RequestFormat& request, std::uint64_t (&values)[2]) {
  PERDURE_TRY_ASSIGN(auto tally, part_.write_back(request.value, request.option != 0));
  values[0] = tally.bytes;
  values[1] = tally.writes;
  return Status::success();
}

Status PartService::set_base_version(const RequestFormat& request, std::uint64_t& file_bytes) {
  PERDURE_TRY(check_size(request.offset));
  PERDURE_TRY_ASSIGN(file_bytes, part_.set_base_version(request.value, request.offset));
  return Status::success();
}

Status PartService::perform_pointer(const RequestFormat& request, std::uint64_t (&values)[2]) {
  if (request.option >= shared_pointers_max) {
    return refuse("there is no shared file pointer " + std::to_string(request.option));
  }
  const auto slot = static_cast<int>(request.option);
  switch (Verb{request.verb}) {
    case Verb::give_pointer:
      part_.pointers().give(slot);
      break;
    case Verb::add_to_pointer:
      values[0] = part_.pointers().at(slot).fetch_add(request.value);
      break;
    case Verb::store_pointer:
      part_.pointers().at(slot).store(request.value);
      break;
    default:
      values[0] = part_.pointers().at(slot).load();
  }
  return Status::success();
}

Status PartService::perform(const RequestFormat& request, std::uint64_t (&values)[2]) {
  switch (Verb{request.verb}) {
    case Verb::size:
      values[0] = part_.size_bytes();
      return Status::success();
    case Verb::grow_size:
      PERDURE_TRY(check_size(request.value));
      part_.grow_size(request.value);
      return Status::success();
    case Verb::set_size:
      PERDURE_TRY(check_size(request.value));
      return part_.set_size(request.value);
    case Verb::write_back:
      return write_back(request, values);
    case Verb::persist:
      return part_.persist();
    case Verb::take_pointer:
      values[0] = static_cast<std::uint64_t>(std::int64_t{part_.take_pointer()});
      return Status::success();
    case Verb::try_lock:
      if (request.value == 0) return refuse("a lock for nobody");
      values[0] = part_.try_lock(request.value & lock_owner_max) ? 1 : 0;
      return Status::success();
    case Verb::unlock:
      return unlock(request.value);
    case Verb::set_base_version:
      return set_base_version(request, values[0]);
    default:
      return perform_pointer(request, values);
  }
}

}  // namespace perdure
