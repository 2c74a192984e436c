// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "limits.hpp"

namespace oracle {

int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}

std::uint32_t checksum(const void* bytes, std::size_t count) {  // FNV-1a
  std::uint32_t sum = 2166136261U;
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < count; ++i) sum = (sum ^ at[i]) * 16777619U;
  return sum;
}

std::vector<char> read_whole(const std::string& path, bool& exists) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  exists = file.good();
  if (!exists) return {};
  std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), std::ssize(bytes));
  return bytes;
}

Session::Session(std::string path, const Program& program, Hints hints, bool planted)
    : path_(std::move(path)), program_(program), hints_(std::move(hints)), planted_(planted) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
}

Session::~Session() {
  for (Handle& one : handles_) free_view(one);
}

// With PERDURE_ORACLE_TRACE it is printed at once, to see the last one before a hang.
void Session::note(const std::string& text) {
  static const bool trace = std::getenv("PERDURE_ORACLE_TRACE") != nullptr;
  if (trace) std::fprintf(stderr, "rank %d step %zu: %s\n", rank_, step_, text.c_str());
  log_.push_back({step_, text, ""});
}

void Session::note(const std::string& call, int code) {
  note(call + ": class " + std::to_string(class_of(code)));
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> said{};
  int length = 0;
  MPI_Error_string(code, said.data(), &length);
  log_.back().said = said.data();
}

Draw Session::draw_own(const Step& step) const {
  return Draw(step.seed ^ (0xD1B54A32D192ED03U * static_cast<std::uint64_t>(rank_ + 1)));
}

MPI_Comm Session::comm_of(const Handle& one) const {
  return one.alone ? MPI_COMM_SELF : MPI_COMM_WORLD;
}

bool Session::shares_pointer() {
  return !handle().view.own && handle().has_shared_pointer;
}

// A file that stands aside is cached by the rank that has made so many accesses.
std::string Session::own_from() const {
  const int drawn = draw_own({Kind::open, program_.seed}).between(1, 45);
  return drawn > 40 ? "never" : std::to_string(drawn);
}

MPI_Info Session::make_hints() const {
  MPI_Info hints = MPI_INFO_NULL;
  MPI_Info_create(&hints);
  for (const auto& [key, value] : hints_) {
    MPI_Info_set(hints, key.c_str(), value == hint_of_rank ? own_from().c_str() : value.c_str());
  }
  // ROMIO writes gaps of a view along with what lies around them, and so undoes what others write
  // there without its lock; past the end of the file it fills them with what is in its buffer.
  MPI_Info_set(hints, "romio_ds_write", "disable");
  MPI_Info_set(hints, "romio_cb_write", "disable");
  // Two-phase reads say that all was read, past the end of the file too, and return chance there.
  MPI_Info_set(hints, "romio_cb_read", "disable");
  // Reads with gaps of the individual pointer misplace bytes where a filetype reaches beyond its
  // extent.
  MPI_Info_set(hints, "romio_ds_read", "disable");
  return hints;
}

void Session::free_view(Handle& one) {
  if (one.view.etype.type != MPI_DATATYPE_NULL) {
    MPI_Type_free(&one.view.etype.type);
    MPI_Type_free(&one.view.filetype.type);
  }
  one.view = View{};
}

void Session::make_file() {
  if (rank_ == 0) {
    ::unlink(path_.c_str());
    if (program_.exists) {
      std::vector<char> bytes(static_cast<std::size_t>(program_.bytes_before));
      Draw draw(program_.seed);
      for (char& byte : bytes) byte = static_cast<char>(draw.bits());
      std::ofstream(path_, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    }
  }
  size_ = program_.bytes_before;
  MPI_Barrier(MPI_COMM_WORLD);
}

// After it, every rank may read every byte, and the size of the file is known.
void Session::settle() {
  for (int turn = 0; turn < 2; ++turn) {
    for (Handle& one : handles_) {
      if (one.file != MPI_FILE_NULL) note("sync", MPI_File_sync(one.file));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (Handle& one : handles_) {
    if (one.file == MPI_FILE_NULL) continue;
    MPI_Offset size = -1;
    note("get_size", MPI_File_get_size(one.file, &size));
    note("size " + std::to_string(size));
    size_ = size;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  dirty_ = false;
  looked_ = false;
}

void Session::before_write() {
  if (looked_) MPI_Barrier(MPI_COMM_WORLD);
  looked_ = false;
}

void Session::run_step(const Step& step) {
  const Draw draw(step.seed);
  if (step.kind == Kind::open) return open(draw);
  if (step.kind == Kind::choose) return choose();
  if (handle().file == MPI_FILE_NULL) return;
  switch (step.kind) {
    case Kind::close:
      return close(chosen_);
    case Kind::set_view:
      return set_view(draw);
    case Kind::access:
      return access(draw, draw_own(step));
    case Kind::shared:
      return access_shared(draw, draw_own(step));
    case Kind::ordered:
      return access_ordered(draw, draw_own(step));
    case Kind::seek:
      return seek(draw, draw_own(step));
    case Kind::seek_shared:
      return seek_shared(draw);
    case Kind::query:
      return query(draw, draw_own(step));
    case Kind::set_size:
      return set_size(draw);
    case Kind::preallocate:
      return preallocate(draw);
    case Kind::settle:
      return settle();
    case Kind::atomicity:
      return atomicity(draw);
    case Kind::hints:
      return set_hints(draw);
    case Kind::wrong:
      return wrong(draw);
    case Kind::reread:
      return reread();
    default:
      return;
  }
}

void Session::run() {
  make_file();
  for (step_ = 0; step_ < program_.steps.size(); ++step_) run_step(program_.steps[step_]);
  for (const std::size_t slot : {1U, 0U}) {
    if (handles_[slot].file != MPI_FILE_NULL) close(slot);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace oracle
