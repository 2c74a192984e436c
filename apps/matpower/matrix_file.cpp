// SPDX-License-Identifier: BSD-3-Clause
#include "matrix_file.hpp"

#include "job/collective.hpp"
#include "job/stopwatch.hpp"

namespace matpower {
namespace {

// A row of a block: counts of rows fit an int where counts of cells do not.
class RowType {
 public:
  explicit RowType(std::size_t columns) {
    MPI_Type_contiguous(static_cast<int>(columns), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  RowType& operator=(const RowType&) = delete;

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace

void Traffic::agree() const {
  job::on_every_rank([&] {
    if (!problem.empty()) throw job::SharedError(problem);
  });
}

Hints::Hints(const Options& options) {
  if (options.hints.empty()) return;
  MPI_Info_create(&info_);
  for (const auto& [key, value] : options.hints) MPI_Info_set(info_, key.c_str(), value.c_str());
}

Hints::~Hints() {
  if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
}

MatrixFile::MatrixFile(const std::string& path, int mode, std::uint64_t nodes, Access access,
                       const Hints& hints, Traffic& traffic)
    : path_(path), nodes_(nodes), access_(access), info_(hints.get()), traffic_(traffic) {
  const job::Stopwatch watch;
  note(MPI_File_open(MPI_COMM_WORLD, path.c_str(), mode, info_, &file_), "MPI_File_open");
  if (traffic_.problem.empty() && (mode & MPI_MODE_CREATE) != 0) {
    const std::uint64_t bytes = nodes * nodes;
    note(MPI_File_set_size(file_, static_cast<MPI_Offset>(bytes)), "MPI_File_set_size");
  }
  traffic_.open_s += watch.seconds();
  traffic_.agree();  // closing is collective: a file that only some ranks have open stays open
}

MatrixFile::~MatrixFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

void MatrixFile::read(const Block& block, Cell* cells) {
  const job::Stopwatch watch;
  access_ == Access::rows ? access_rows(block, cells, nullptr) : access_view(block, cells, nullptr);
  traffic_.transfer_s += watch.seconds();
  traffic_.read_bytes += block.cells();
  traffic_.read_calls += access_ == Access::rows ? block.rows.size() : 1;
}

void MatrixFile::write(const Block& block, const Cell* cells) {
  const job::Stopwatch watch;
  access_ == Access::rows ? access_rows(block, nullptr, cells) : access_view(block, nullptr, cells);
  traffic_.transfer_s += watch.seconds();
  traffic_.written_bytes += block.cells();
  traffic_.write_calls += access_ == Access::rows ? block.rows.size() : 1;
}

void MatrixFile::publish(bool sync) {
  const job::Stopwatch watch;
  if (sync) note(MPI_File_sync(file_), "MPI_File_sync");
  const double first_s = watch.seconds();
  MPI_Barrier(MPI_COMM_WORLD);
  const job::Stopwatch again;
  if (sync) note(MPI_File_sync(file_), "MPI_File_sync");
  if (sync) traffic_.sync_s += first_s + again.seconds();
}

void MatrixFile::close() {
  const job::Stopwatch watch;
  note(MPI_File_close(&file_), "MPI_File_close");
  traffic_.close_s += watch.seconds();
}

void MatrixFile::access_rows(const Block& block, Cell* to, const Cell* from) {
  const auto width = static_cast<int>(block.columns.size());
  for (std::size_t row = 0; row < block.rows.size(); ++row) {
    const std::uint64_t place = (block.rows.begin + row) * nodes_ + block.columns.begin;
    const auto offset = static_cast<MPI_Offset>(place);
    const std::size_t at = row * block.columns.size();
    const char* call = to != nullptr ? "MPI_File_read_at" : "MPI_File_write_at";
    MPI_Status status;
    const int code = to != nullptr
                         ? MPI_File_read_at(file_, offset, to + at, width, MPI_BYTE, &status)
                         : MPI_File_write_at(file_, offset, from + at, width, MPI_BYTE, &status);
    note(code, call);
    if (code == MPI_SUCCESS) check_count(status, MPI_BYTE, block.columns.size(), call);
  }
}

void MatrixFile::set_view(const Block& block) {
  const int sizes[] = {static_cast<int>(nodes_), static_cast<int>(nodes_)};
  const int parts[] = {static_cast<int>(block.rows.size()), static_cast<int>(block.columns.size())};
  const int starts[] = {static_cast<int>(block.rows.begin), static_cast<int>(block.columns.begin)};
  MPI_Datatype view = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &view);
  MPI_Type_commit(&view);
  note(MPI_File_set_view(file_, 0, MPI_BYTE, view, "native", info_), "MPI_File_set_view");
  MPI_Type_free(&view);
}

void MatrixFile::access_view(const Block& block, Cell* to, const Cell* from) {
  set_view(block);
  const RowType row(block.columns.size());
  const auto rows = static_cast<int>(block.rows.size());
  const bool together = access_ == Access::collective;
  MPI_Status status;
  int code = MPI_SUCCESS;
  if (to != nullptr) {
    const auto call = together ? MPI_File_read_at_all : MPI_File_read_at;
    code = call(file_, 0, to, rows, row.get(), &status);
  } else {
    const auto call = together ? MPI_File_write_at_all : MPI_File_write_at;
    code = call(file_, 0, from, rows, row.get(), &status);
  }
  const char* name = to != nullptr ? (together ? "MPI_File_read_at_all" : "MPI_File_read_at")
                                   : (together ? "MPI_File_write_at_all" : "MPI_File_write_at");
  note(code, name);
  if (code == MPI_SUCCESS) check_count(status, row.get(), block.rows.size(), name);
}

void MatrixFile::note(int code, const char* call) {
  if (code == MPI_SUCCESS || !traffic_.problem.empty()) return;
  traffic_.problem = path_ + ": " + call + ": " + job::mpi_text(code);
}

void MatrixFile::check_count(const MPI_Status& status, MPI_Datatype type, std::size_t count,
                             const char* call) {
  int moved = 0;
  MPI_Get_count(&status, type, &moved);
  if (moved == static_cast<int>(count) || !traffic_.problem.empty()) return;
  const std::string seen = moved == MPI_UNDEFINED ? "a part" : std::to_string(moved);
  traffic_.problem = path_ + ": " + call + " moved " + seen + " of " + std::to_string(count) +
                     (type == MPI_BYTE ? " bytes" : " rows") +
                     "; was the file cut off, or is its file system full?";
}

}  // namespace matpower
