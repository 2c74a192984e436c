// Steps that move bytes.
#include <algorithm>
#include <memory>
#include <utility>

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

// A span of a chunk that is this rank's own, or for reading while nothing is dirty of any. Spans of
// different turns lie in different chunks.
Session::Span Session::draw_span(Draw& draw, bool write, std::int64_t turn) {
  const View& view = handle().view;
  const std::int64_t items = (file_bytes_max - view.displacement) / view.filetype_extent;
  const std::int64_t etypes =
      std::max<std::int64_t>(items, 1) * view.filetype_bytes / view.etype_bytes;
  const std::int64_t owners = view.own ? 1 : ranks_;
  const std::int64_t wanted = program_.seed % 3 == 0 ? 20000 : 2000;  // the same for all ranks
  const std::int64_t chunk =
      std::max<std::int64_t>(1, std::min(wanted / view.etype_bytes, etypes / owners / 4));
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
  // While others write, the file may grow at any time: what is read then lies below its end.
  const bool straight = view.contiguous;
  if (!write && (dirty_ || !straight)) {
    const std::int64_t end = view.displacement + (span.at + span.count) * view.etype_bytes;
    if (straight ? end > size_ : size_ < file_bytes_max) span.count = 0;
  }
  return span;
}

// Lets a read ask for nothing where an MPI is wrong about the end of the file. ROMIO says that all
// was read through a view with gaps, and by nonblocking collective calls; so does Open MPI 4.1 of
// collective ones, and it never completes a nonblocking or split read past the end.
void Session::keep_inside(Span& span, Form form) {
  const View& view = handle().view;
  if (!view.contiguous && size_ < file_bytes_max) span.count = 0;
#ifdef OPEN_MPI
  const bool wrong = form != Form::blocking;
#else
  const bool wrong = form == Form::nonblocking_collective;
#endif
  const std::int64_t end = view.displacement + (span.at + span.count) * view.etype_bytes;
  if (wrong && view.contiguous && end > size_) span.count = 0;
}

Session::Memory Session::draw_memory(Draw& draw, const Span& span, bool write) {
  const View& view = handle().view;
  Memory memory;
  const bool bytes = view.etype.type == MPI_DATATYPE_NULL;
  memory.type = bytes ? MPI_BYTE : view.etype.type;
  memory.count = static_cast<int>(span.count);
  std::int64_t length = span.count * view.etype_bytes;
  // ROMIO says of scattered memory that all of it was read, even past the end of the file.
  const bool inside = view.displacement + (span.at + span.count) * view.etype_bytes <= size_;
  if (draw.once_in(3) && (write || inside || !view.contiguous)) {
    const DrawnType unit{memory.type, "etype"};
    memory.drawn = mpiio_test::draw_filetype(draw, unit, draw.between(1, 2));
    int size = 0;
    MPI_Aint lower_bound = 0;
    MPI_Aint extent = 0;
    MPI_Type_size(memory.drawn.type, &size);
    MPI_Type_get_extent(memory.drawn.type, &lower_bound, &extent);
    memory.type = memory.drawn.type;
    memory.count = static_cast<int>(length / size);
    length = (memory.count + 1) * extent;
  }
  memory.bytes.resize(static_cast<std::size_t>(length) + 64);
  for (char& byte : memory.bytes) byte = static_cast<char>(draw.bits());
  return memory;
}

void Session::note_transfer(const char* what, int code, MPI_Status& status, Memory& memory,
                            bool write) {
  note(what, code);
  if (code != MPI_SUCCESS) return;
  int bytes = -1;
  int count = -1;
  int elements = -1;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  MPI_Get_count(&status, memory.type, &count);
  // MPICH 4.0 asserts that it is not asked about a darray.
  if (!memory.drawn.made_by("darray")) MPI_Get_elements(&status, memory.type, &elements);
  note("moved " + std::to_string(bytes) + " bytes, " + std::to_string(count) + " items, " +
       std::to_string(elements) + " elements");
  if (write || bytes <= 0) return;
  int size = 0;
  MPI_Type_size(memory.type, &size);
  std::size_t compared = memory.bytes.size();  // gaps too, which must be left alone
  if (memory.drawn.type == MPI_DATATYPE_NULL) compared = static_cast<std::size_t>(bytes);
  if (std::exchange(planted_, false)) ++memory.bytes[0];
  note("sum " + std::to_string(checksum(memory.bytes.data(), compared)));
}

void Session::access_explicit(Draw& draw, Draw& own, bool write) {
  Transfer transfer;
  transfer.write = write;
  transfer.form = static_cast<Form>(draw.between(0, 4));
  transfer.wide = draw.once_in(3);
  const int turns = transfer.form == Form::nonblocking ? draw.between(1, 3) : 1;
  std::vector<Memory> memories;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(turns), MPI_REQUEST_NULL);
  std::vector<MPI_Status> statuses(static_cast<std::size_t>(turns));
  std::vector<int> codes;
  memories.reserve(3);
  for (int turn = 0; turn < turns; ++turn) {
    const auto i = static_cast<std::size_t>(turn);
    Span span = draw_span(own, write, turn);
    if (!write) keep_inside(span, transfer.form);
    memories.push_back(draw_memory(own, span, write));
    transfer.at = span.at;
    transfer.memory = memories.back().bytes.data();
    transfer.count = memories.back().count;
    transfer.type = memories.back().type;
    note("at " + std::to_string(span.at) + " " + std::to_string(transfer.count) + " of " +
         memories.back().text() + ", " + name_of(transfer.form));
    codes.push_back(start(handle().file, transfer, requests[i], statuses[i]));
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (requests[i] != MPI_REQUEST_NULL) codes[i] = MPI_Wait(&requests[i], &statuses[i]);
    note_transfer(name_of(transfer.form), codes[i], statuses[i], memories[i], write);
  }
}

void Session::access_individual(Draw& draw, Draw& own, bool write) {
  Transfer transfer;
  transfer.write = write;
  transfer.where = Where::individual;
  transfer.form = static_cast<Form>(draw.between(0, 4));
  transfer.wide = draw.once_in(3);
  Span span = draw_span(own, write, 0);
  if (!write) keep_inside(span, transfer.form);
  Memory memory = draw_memory(own, span, write);
  transfer.memory = memory.bytes.data();
  transfer.count = memory.count;
  transfer.type = memory.type;
  note("seek", MPI_File_seek(handle().file, span.at, MPI_SEEK_SET));
  note("from " + std::to_string(span.at) + " " + std::to_string(transfer.count) + " of " +
       memory.text() + ", " + name_of(transfer.form));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  int code = start(handle().file, transfer, request, status);
  if (request != MPI_REQUEST_NULL) code = MPI_Wait(&request, &status);
  note_transfer(name_of(transfer.form), code, status, memory, write);
  // Where a read ends with the file, ROMIO leaves the pointer where its strategy of the moment
  // ended: at the end, or at what was asked for.
  int moved = 0;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &moved);
  MPI_Type_size(memory.type, &size);
  if (!write && moved < size * static_cast<int>(transfer.count)) return;
  MPI_Offset position = -1;
  note("get_position", MPI_File_get_position(handle().file, &position));
  note("position " + std::to_string(position));
}

void Session::access(Draw draw, Draw own) {
  const bool other_way = draw.once_in(12);  // what the mode forbids must be refused
  bool write = draw.once_in(2);
  if (!other_way && !handle().writable()) write = false;
  if (!other_way && !handle().readable()) write = true;
  if (handle().alone && handle().view.own == false && ranks_ > 1 && write && dirty_) settle();
  if (write) before_write();
  const bool explicit_offset = draw.once_in(2);
  note(std::string(write ? "write " : "read ") + (explicit_offset ? "at" : "individual"));
  explicit_offset ? access_explicit(draw, own, write) : access_individual(draw, own, write);
  if (write && handle().writable()) dirty_ = true;
  if (!write) looked_ = true;
}

// Where a shared read would end, at most, by the pointer as all ranks see it after a settle.
bool Session::shared_inside(std::int64_t etypes_each) {
  MPI_Offset position = 0;
  MPI_Offset end = 0;
  MPI_File_get_position_shared(handle().file, &position);
  MPI_File_get_byte_offset(handle().file, position + etypes_each * ranks_, &end);
  MPI_Barrier(MPI_COMM_WORLD);
  return end <= size_;
}

// Ranks take turns, because their order would be chance.
void Session::access_shared(Draw draw, Draw own) {
  if (!shares_pointer()) return;
  Transfer transfer;
  transfer.write = handle().writable() && (!handle().readable() || draw.once_in(2));
  transfer.where = Where::shared;
  transfer.form = draw.once_in(2) ? Form::blocking : Form::nonblocking;
  transfer.wide = draw.once_in(3);
  settle();
  Span span = draw_span(own, true, 0);
  span.at =
      file_bytes_max /
      handle().view.etype_bytes;  // where it will be is known to MPI only: not surely below the end
  if (!transfer.write) keep_inside(span, transfer.form);
  if (!transfer.write && !handle().view.contiguous && !shared_inside(20000)) span.count = 0;
  Memory memory = draw_memory(own, span, transfer.write);
  transfer.memory = memory.bytes.data();
  transfer.count = memory.count;
  transfer.type = memory.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  for (int turn = 0; turn < ranks_; ++turn) {
    if (turn == rank_) {
      int code = start(handle().file, transfer, request, status);
      if (request != MPI_REQUEST_NULL) code = MPI_Wait(&request, &status);
      note_transfer(transfer.write ? "write_shared" : "read_shared", code, status, memory,
                    transfer.write);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Offset position = -1;
  note("get_position_shared", MPI_File_get_position_shared(handle().file, &position));
  note("shared position " + std::to_string(position));
  settle();
}

void Session::access_ordered(Draw draw, Draw own) {
  if (!shares_pointer()) return;
  Transfer transfer;
  transfer.write = handle().writable() && (!handle().readable() || draw.once_in(2));
  transfer.where = Where::shared;
  transfer.form = draw.once_in(2) ? Form::collective : Form::split;
  transfer.wide = draw.once_in(3);
  settle();
  before_write();
  Span span = draw_span(own, true, 0);
  span.at = file_bytes_max / handle().view.etype_bytes;
  if (!transfer.write) keep_inside(span, transfer.form);
  if (!transfer.write && !handle().view.contiguous && !shared_inside(20000)) span.count = 0;
  Memory memory = draw_memory(own, span, transfer.write);
  transfer.memory = memory.bytes.data();
  transfer.count = memory.count;
  transfer.type = memory.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  const int code = start(handle().file, transfer, request, status);
  note_transfer(transfer.write ? "write_ordered" : "read_ordered", code, status, memory,
                transfer.write);
  settle();
}

}  // namespace oracle
