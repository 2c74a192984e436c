// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that move bytes.
#include <algorithm>
#include <memory>
#include <utility>

#include "limits.hpp"
#include "session.hpp"
#include "transfer.hpp"

namespace oracle {

// Where in the view: in etypes.
struct Session::Span {
  std::int64_t at = 0;
  std::int64_t count = 0;
};

// A buffer and how it is described to MPI: etypes in a row, or items of a type made of etypes.
struct Session::Memory {
  std::vector<char> bytes;
  int count = 0;
  DrawnType drawn;
  MPI_Datatype type = MPI_BYTE;

  std::string text() const { return drawn.text.empty() ? "etypes" : drawn.text; }

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&& other) noexcept
      : bytes(std::move(other.bytes)),
        count(other.count),
        drawn(std::exchange(other.drawn, {})),
        type(other.type) {}
  ~Memory() {
    if (drawn.type != MPI_DATATYPE_NULL) MPI_Type_free(&drawn.type);
  }
};

// One access: what is asked of MPI, the memory that it uses, and what came of it.
struct Session::Asked {
  Asked(const Transfer& like, Memory drawn) : transfer(like), memory(std::move(drawn)) {}
  Transfer transfer;
  Memory memory;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  int code = MPI_SUCCESS;
};

// A span of a chunk that is this rank's own, or for reading while nothing is dirty of any. Spans of
// different turns lie in different chunks.
Session::Span Session::draw_span(Draw& draw, bool write, std::int64_t turn) {
  const View& view = handle().view;
  const std::int64_t items = (file_bytes_max - view.displacement) / view.filetype_extent;
  const std::int64_t etypes =
      std::max<std::int64_t>(items, 1) * view.filetype_bytes / view.etype_bytes;
  const std::int64_t owners = view.own ? 1 : ranks_;
  const std::int64_t chunk = std::max<std::int64_t>(
      1, std::min(access_bytes_max() / view.etype_bytes, etypes / owners / 4));
  const std::int64_t rounds = std::max<std::int64_t>(1, etypes / (chunk * owners) - 3);
  const bool anywhere = !write && !dirty_;
  const std::int64_t owner =
      anywhere ? draw.between(0, static_cast<int>(owners) - 1) : (view.own ? 0 : rank_);
  const std::int64_t round = turn + 3 * (draw.between(0, static_cast<int>((rounds - 1) / 3)));
  Span span;
  const auto inside = static_cast<int>(chunk);
  const int skipped = draw.once_in(3) ? 0 : draw.between(0, inside - 1);
  span.at = (round * owners + owner) * chunk + skipped;
  span.count = draw.once_in(10) ? 0 : draw.between(0, inside - skipped);
  return span;
}

// Whether the span lies below the end of the file, as it was at the last settle.
bool Session::is_inside(const Span& span) {
  const View& view = handle().view;
  if (!view.contiguous) return size_ >= file_bytes_max;
  return view.displacement + (span.at + span.count) * view.etype_bytes <= size_;
}

// Whether all that the ranks may read by the shared pointer, each once, does; after a settle.
bool Session::is_shared_inside() {
  const std::int64_t each = access_bytes_max() / handle().view.etype_bytes;
  MPI_Offset position = 0;
  MPI_Offset end = 0;
  MPI_File_get_position_shared(handle().file, &position);
  MPI_File_get_byte_offset(handle().file, position + each * ranks_, &end);
  MPI_Barrier(MPI_COMM_WORLD);
  return end <= size_;
}

Session::Memory Session::draw_memory(Draw& draw, const Span& span, bool may_scatter) {
  const View& view = handle().view;
  Memory memory;
  const bool bytes = view.etype.type == MPI_DATATYPE_NULL;
  memory.type = bytes ? MPI_BYTE : view.etype.type;
  memory.count = static_cast<int>(span.count);
  std::int64_t length = span.count * view.etype_bytes;
  if (may_scatter && draw.once_in(3)) {
    const DrawnType unit{memory.type, "etype"};
    memory.drawn = mpiio_test::draw_filetype(draw, unit, draw.between(1, 2));
    int size = 0;
    MPI_Aint lower_bound = 0;
    MPI_Aint extent = 0;
    MPI_Type_size(memory.drawn.type, &size);
    MPI_Type_get_extent(memory.drawn.type, &lower_bound, &extent);
    memory.type = memory.drawn.type;
    memory.count = static_cast<int>(length / size);
    // An indexed type may begin further from its origin than its extent is long.
    MPI_Aint true_extent = 0;
    MPI_Type_get_true_extent(memory.drawn.type, &lower_bound, &true_extent);
    length = memory.count * extent + lower_bound + true_extent;
  }
  memory.bytes.resize(static_cast<std::size_t>(length) + 64);
  for (char& byte : memory.bytes) byte = static_cast<char>(draw.bits());
  return memory;
}

// The form is the same on all ranks. `allowed`: the mode of the handle lets it happen.
Form Session::draw_form(Draw& draw, bool write, bool allowed) {
  while (true) {
    const auto form = static_cast<Form>(draw.between(0, 4));
    if (!allowed && !limits::may_be_refused(form)) continue;
    if (write || limits::reads_right(form, ranks_)) return form;
  }
}

// What is read past the end of the file, where the end may be moving, or MPI is wrong about it, is
// nothing.
Session::Asked Session::ask(Draw& own, const Transfer& like, Span span, bool inside) {
  const bool counted = handle().view.contiguous && limits::tells_short_reads(like.form, atomic());
  if (!like.write && !inside && (dirty_ || !counted)) span.count = 0;
  Asked asked(like, draw_memory(own, span, like.write || inside));
  asked.transfer.at = span.at;
  asked.transfer.memory = asked.memory.bytes.data();
  asked.transfer.count = asked.memory.count;
  asked.transfer.type = asked.memory.type;
  note((like.where == Where::shared ? "" : "at " + std::to_string(span.at) + " ") +
       std::to_string(asked.memory.count) + " of " + asked.memory.text() + ", " +
       name_of(like.form));
  return asked;
}

void Session::begin(Asked& asked) {
  asked.code = start(handle().file, asked.transfer, asked.request, asked.status);
}

void Session::end(Asked& asked) {
  if (asked.request != MPI_REQUEST_NULL) asked.code = MPI_Wait(&asked.request, &asked.status);
  note(std::string(asked.transfer.write ? "write " : "read ") + name_of(asked.transfer.where),
       asked.code);
  if (asked.code == MPI_SUCCESS) note_moved(asked);
}

void Session::note_moved(Asked& asked) {
  Memory& memory = asked.memory;
  int bytes = -1;
  int count = -1;
  int elements = -1;
  MPI_Get_count(&asked.status, MPI_BYTE, &bytes);
  MPI_Get_count(&asked.status, memory.type, &count);
  // MPICH 4.0 asserts that it is not asked about a darray.
  if (!memory.drawn.made_by("darray")) {
    MPI_Get_elements(&asked.status, memory.type, &elements);
  }
  note("moved " + std::to_string(bytes) + " bytes, " + std::to_string(count) + " items, " +
       std::to_string(elements) + " elements");
  if (asked.transfer.write || bytes <= 0) return;
  std::size_t compared = memory.bytes.size();  // gaps too, which must be left alone
  if (memory.drawn.type == MPI_DATATYPE_NULL) compared = static_cast<std::size_t>(bytes);
  if (std::exchange(planted_, false)) ++memory.bytes[0];
  note("sum " + std::to_string(checksum(memory.bytes.data(), compared)));
}

void Session::access_explicit(Draw& draw, Draw& own, Transfer transfer) {
  const int turns = transfer.form == Form::nonblocking ? draw.between(1, 3) : 1;
  std::vector<Asked> all;
  for (int turn = 0; turn < turns; ++turn) {
    const Span span = draw_span(own, transfer.write, turn);
    all.push_back(ask(own, transfer, span, is_inside(span)));
  }
  for (Asked& asked : all) begin(asked);
  for (Asked& asked : all) end(asked);
}

void Session::access_individual(Draw& own, Transfer transfer) {
  transfer.where = Where::individual;
  const Span span = draw_span(own, transfer.write, 0);
  Asked asked = ask(own, transfer, span, is_inside(span));
  note("seek", MPI_File_seek(handle().file, span.at, MPI_SEEK_SET));
  begin(asked);
  end(asked);
  // Where a read ends with the file, ROMIO leaves the pointer where its strategy of the moment
  // ended: at the end, or at what was asked for.
  int moved = 0;
  int size = 0;
  MPI_Get_count(&asked.status, MPI_BYTE, &moved);
  MPI_Type_size(asked.memory.type, &size);
  const bool is_short = !transfer.write && moved < size * asked.memory.count;
  if (is_short || !limits::tells_position(!handle().view.contiguous)) {
    note("seek", MPI_File_seek(handle().file, span.at, MPI_SEEK_SET));
    return;
  }
  MPI_Offset position = -1;
  note("get_position", MPI_File_get_position(handle().file, &position));
  note("position " + std::to_string(position));
}

void Session::access(Draw draw, Draw own) {
  const bool other_way = draw.once_in(12);  // what the mode forbids must be refused
  Transfer transfer;
  transfer.write = draw.once_in(2);
  if (!other_way && !handle().writable()) transfer.write = false;
  if (!other_way && !handle().readable()) transfer.write = true;
  const bool allowed = transfer.write ? handle().writable() : handle().readable();
  transfer.form = draw_form(draw, transfer.write, allowed);
  transfer.wide = draw.once_in(3);
  if (handle().alone && !handle().view.own && ranks_ > 1 && transfer.write && dirty_) settle();
  if (transfer.write) before_write();
  if (draw.once_in(2)) {
    access_explicit(draw, own, transfer);
  } else {
    access_individual(own, transfer);
  }
  if (transfer.write && allowed) dirty_ = true;
  if (!transfer.write) looked_ = true;
  if (dirty_ && limits::settles_after_writes(ranks_)) settle();
}

// By the shared pointer; what is at it is known to MPI only.
Session::Asked Session::ask_shared(Draw& draw, Draw& own, Form one, Form other) {
  Transfer transfer;
  transfer.write = handle().writable() && (!handle().readable() || draw.once_in(2));
  transfer.where = Where::shared;
  transfer.form = draw.once_in(2) ? one : other;
  transfer.wide = draw.once_in(3);
  settle();
  const bool inside = is_shared_inside();
  return ask(own, transfer, draw_span(own, true, 0), inside);
}

// Ranks take turns, because their order would be chance.
void Session::access_shared(Draw draw, Draw own) {
  if (!shares_pointer()) return;
  Asked asked = ask_shared(draw, own, Form::blocking, Form::nonblocking);
  for (int turn = 0; turn < ranks_; ++turn) {
    if (turn == rank_) {
      begin(asked);
      end(asked);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  note_shared_position();
  settle();
}

void Session::access_ordered(Draw draw, Draw own) {
  if (!shares_pointer()) return;
  Asked asked = ask_shared(draw, own, Form::collective, Form::split);
  begin(asked);
  end(asked);
  settle();
}

}  // namespace oracle
