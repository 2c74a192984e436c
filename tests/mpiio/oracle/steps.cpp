// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that move no bytes.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "limits.hpp"
#include "session.hpp"

namespace oracle {
namespace {

// Modes that may fail on the file as it is are drawn too. No MPI_MODE_SEQUENTIAL: ROMIO lets it do
// what the standard forbids.
int draw_mode(Draw& draw, bool second) {
  int mode = MPI_MODE_RDWR | MPI_MODE_CREATE;
  if (draw.once_in(6)) mode = MPI_MODE_RDONLY;
  if (draw.once_in(8)) mode = MPI_MODE_WRONLY | MPI_MODE_CREATE;
  if (draw.once_in(10)) mode |= MPI_MODE_APPEND;
  if (second) return mode;
  if (draw.once_in(12) && (mode & MPI_MODE_CREATE) != 0) mode |= MPI_MODE_EXCL;
  if (draw.once_in(12)) mode |= MPI_MODE_DELETE_ON_CLOSE;
  if (draw.once_in(12)) mode |= MPI_MODE_UNIQUE_OPEN;
  return mode;
}

}  // namespace

void Session::open(Draw draw) {
  const std::size_t slot = handles_[0].file == MPI_FILE_NULL ? 0 : 1;
  constexpr int exclusive = MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN;
  if (handles_[slot].file != MPI_FILE_NULL) return;
  const Handle& other = handles_[1 - slot];
  if (other.file != MPI_FILE_NULL && (other.mode & exclusive) != 0) return;
  settle();
  Handle& made = handles_[slot];
  const bool second = other.file != MPI_FILE_NULL;
  made.mode = draw_mode(draw, second);
  if (second) made.mode = limits::mode_of_second(made.mode);
  made.mode = limits::possible_mode(made.mode, ::access(path_.c_str(), F_OK) == 0, ranks_);
  MPI_Barrier(MPI_COMM_WORLD);
  made.alone = slot == 1 && draw.once_in(2);
  MPI_Info hints = make_hints();
  note("open mode " + std::to_string(made.mode));
  MPI_File file = MPI_FILE_NULL;
  const int code = MPI_File_open(comm_of(made), path_.c_str(), made.mode, hints, &file);
  MPI_Info_free(&hints);
  note("open", code);
  made.file = code == MPI_SUCCESS ? file : MPI_FILE_NULL;
  made.atomic = false;
  made.has_shared_pointer = limits::has_shared_pointer(ranks_, second);
  if (second && limits::second_takes_pointer()) handles_[1 - slot].has_shared_pointer = false;
  chosen_ = made.file == MPI_FILE_NULL ? chosen_ : slot;
  if (made.file == MPI_FILE_NULL) return;
  ++opened();
  MPI_Offset position = -1;
  MPI_File_get_position(made.file, &position);
  note("position " + std::to_string(position));
  settle();
}

void Session::close(std::size_t slot) {
  settle();
  note("close", MPI_File_close(&handles_[slot].file));
  handles_[slot].file = MPI_FILE_NULL;
  free_view(handles_[slot]);
  MPI_Barrier(MPI_COMM_WORLD);
}

void Session::choose() {
  if (handles_[1 - chosen_].file == MPI_FILE_NULL) return;
  settle();
  chosen_ = 1 - chosen_;
}

void Session::set_view(Draw draw) {
  settle();
  Handle& one = handle();
  View view;
  view.etype = mpiio_test::draw_etype(draw);
  MPI_Type_size(view.etype.type, &view.etype_bytes);
  view.displacement = draw.once_in(3) ? draw.between(0, 5000) : 0;
  view.own = draw.once_in(4);
  if (view.own) {  // blocks of the ranks in turn
    const int block = draw.between(1, 200);
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(block, view.etype.type, &part);
    MPI_Type_create_resized(part, 0, MPI_Aint{block} * view.etype_bytes * ranks_,
                            &view.filetype.type);
    MPI_Type_free(&part);
    MPI_Type_commit(&view.filetype.type);
    view.displacement += MPI_Offset{rank_} * block * view.etype_bytes;
  } else {
    view.filetype = mpiio_test::draw_filetype(draw, view.etype, draw.between(0, 2));
  }
  MPI_Aint lower_bound = 0;
  MPI_Type_size(view.filetype.type, &view.filetype_bytes);
  MPI_Type_get_extent(view.filetype.type, &lower_bound, &view.filetype_extent);
  MPI_Aint true_extent = 0;
  MPI_Type_get_true_extent(view.filetype.type, &lower_bound, &true_extent);
  view.contiguous = view.filetype_bytes == view.filetype_extent && lower_bound == 0 &&
                    view.filetype_bytes == true_extent;
  note("view at " + std::to_string(view.displacement) + ", " + view.etype.text + ", " +
       view.filetype.text);
  MPI_Info hints = make_hints();
  const int code = MPI_File_set_view(one.file, view.displacement, view.etype.type,
                                     view.filetype.type, "native", hints);
  MPI_Info_free(&hints);
  note("set_view", code);
  free_view(one);
  one.view = view;
  // ROMIO says of a view with gaps that all was read, even past the end of the file.
  if (!view.contiguous && size_ < file_bytes_max && one.writable()) {
    note("set_size", MPI_File_set_size(one.file, file_bytes_max));
  }
  settle();
}

void Session::seek(Draw draw, Draw own) {
  settle();
  constexpr std::array whences = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
  const View& view = handle().view;
  const bool to_end = limits::seeks_to_end(
      view.etype.type != MPI_DATATYPE_NULL,
      size_ < view.displacement + (view.contiguous ? 0 : view.filetype_extent));
  const int last = to_end ? 2 : 1;
  const int whence = whences[static_cast<std::size_t>(draw.between(0, last))];
  const MPI_Offset offset = whence == MPI_SEEK_SET ? own.between(0, 2000) : own.between(-20, 20);
  note("seek", MPI_File_seek(handle().file, offset, whence));
  MPI_Offset position = -1;
  MPI_File_get_position(handle().file, &position);
  note("position " + std::to_string(position));
  looked_ = true;
}

void Session::seek_shared(Draw draw) {
  if (!shares_pointer()) return;
  settle();
  const bool relative = draw.once_in(3);
  const MPI_Offset offset = draw.between(0, 1000);
  note("seek_shared",
       MPI_File_seek_shared(handle().file, offset, relative ? MPI_SEEK_CUR : MPI_SEEK_SET));
  note_shared_position();
  MPI_Barrier(MPI_COMM_WORLD);
}

void Session::note_shared_position() {
  MPI_Offset position = -1;
  note("get_position_shared", MPI_File_get_position_shared(handle().file, &position));
  note("shared position " + std::to_string(position));
}

void Session::query_view() {
  MPI_Offset displacement = -1;
  MPI_Datatype etype = MPI_DATATYPE_NULL;
  MPI_Datatype filetype = MPI_DATATYPE_NULL;
  std::array<char, MPI_MAX_DATAREP_STRING + 1> representation{};
  note("get_view",
       MPI_File_get_view(handle().file, &displacement, &etype, &filetype, representation.data()));
  for (MPI_Datatype* type : {&etype, &filetype}) {
    int size = 0;
    MPI_Type_size(*type, &size);
    note("size " + std::to_string(size));
    int counts[3];
    int combiner = MPI_COMBINER_NAMED;
    MPI_Type_get_envelope(*type, &counts[0], &counts[1], &counts[2], &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(type);
  }
  note("view at " + std::to_string(displacement) + " " + representation.data());
}

void Session::query(Draw draw, Draw own) {
  MPI_File file = handle().file;
  int mode = 0;
  note("get_amode", MPI_File_get_amode(file, &mode));
  int atomic = 0;
  note("get_atomicity", MPI_File_get_atomicity(file, &atomic));
  MPI_Aint extent = -1;
  note("get_type_extent", MPI_File_get_type_extent(file, MPI_DOUBLE_INT, &extent));
  MPI_Offset offset = -1;
  note("get_byte_offset", MPI_File_get_byte_offset(file, own.between(0, 3000), &offset));
  MPI_Group group = MPI_GROUP_NULL;
  int members = 0;
  note("get_group", MPI_File_get_group(file, &group));
  MPI_Group_size(group, &members);
  MPI_Group_free(&group);
  note(std::to_string(mode) + " " + std::to_string(atomic) + " " + std::to_string(extent) + " " +
       std::to_string(offset) + " " + std::to_string(members));
  if (draw.once_in(2)) query_view();
}

void Session::set_size(Draw draw) {
  settle();
  // A view with gaps is only read below the end of the file, which so must stay where it is.
  for (const Handle& one : handles_) {
    if (one.file != MPI_FILE_NULL && !one.view.contiguous) return;
  }
  const MPI_Offset size = draw.once_in(4) ? 0 : draw.between(1, 200000);
  note("set_size", MPI_File_set_size(handle().file, size));
  settle();
}

void Session::preallocate(Draw draw) {
  if (!limits::preallocates()) return;
  settle();
  if (!handle().readable()) return;  // ROMIO reads what it allocates
  if (!handle().writable()) return;  // the standard forbids it, ROMIO only where there is work
  note("preallocate", MPI_File_preallocate(handle().file, draw.between(1, 200000)));
  settle();
}

void Session::atomicity(Draw draw) {
  settle();
  const int wanted = draw.between(0, 1);
  note("set_atomicity", MPI_File_set_atomicity(handle().file, wanted));
  handle().atomic = wanted != 0;
}

void Session::set_hints(Draw draw) {
  MPI_Info hints = make_hints();
  MPI_Info_set(hints, "cb_buffer_size", draw.once_in(2) ? "65536" : "1048576");
  note("set_info", MPI_File_set_info(handle().file, hints));
  MPI_Info_free(&hints);
  note("get_info", MPI_File_get_info(handle().file, &hints));
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int found = 0;
  MPI_Info_get(hints, "cb_buffer_size", MPI_MAX_INFO_VAL, value.data(), &found);
  note(std::string("cb_buffer_size ") + (found != 0 ? value.data() : "not set"));
  MPI_Info_free(&hints);
}

void Session::wrong(Draw draw) {
  char byte = 0;
  MPI_Status status{};
  MPI_File file = handle().file;
  const int which = draw.between(0, 3);
  if (which == 0) note("count -1", MPI_File_read_at(file, 0, &byte, -1, MPI_BYTE, &status));
  if (which == 1) note("offset -5", MPI_File_read_at(file, -5, &byte, 1, MPI_BYTE, &status));
  if (which == 2) note("no whence", MPI_File_seek(file, 0, 12345));
  if (which == 3) note("seek -9", MPI_File_seek(file, -9, MPI_SEEK_SET));
}

void Session::reread() {
  settle();
  if (program_.cache.at("perdure_cache_sync") != "file") return;
  bool exists = false;
  const std::vector<char> bytes = read_whole(path_, exists);
  note("POSIX reads " + std::to_string(bytes.size()) + " bytes, sum " +
       std::to_string(checksum(bytes.data(), bytes.size())));
  looked_ = true;
}

}  // namespace oracle
