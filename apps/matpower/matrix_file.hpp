// SPDX-License-Identifier: BSD-3-Clause
//
// MatrixFile: an n x n matrix of one-byte cells, row by row in a file that all ranks have open,
// read and written in blocks through MPI-IO. How a block is accessed is options.access:
//
//   rows        one MPI_File_read_at or _write_at for each row of the block, at explicit offsets
//   views       the block is the rank's file view; one independent call
//   collective  the same with one collective call
//
// Setting a view is collective, so read() and write() are to be called by all ranks, in one order.
// What goes wrong in them is kept in Traffic::problem, and they go on: ranks that stopped would
// leave the others waiting. agree() then makes it the error of all.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "adjacency.hpp"
#include "grid.hpp"
#include "options.hpp"

namespace matpower {

// What this rank's calls of MPI-IO took and moved, of all its files.
struct Traffic {
  double open_s = 0, close_s = 0;
  double transfer_s = 0;  // reading and writing, with what it takes to set views
  double sync_s = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::uint64_t read_calls = 0, write_calls = 0;
  std::string problem;  // the first one

  // Collective: throws SharedError if a rank has a problem.
  void agree() const;
};

// The hints of the command line as an MPI_Info.
class Hints {
 public:
  explicit Hints(const Options& options);
  ~Hints();
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;

  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

class MatrixFile {
 public:
  // Collective. Opens `path` with the bits MPI_MODE_… of `mode`; a file that is created gets its
  // size. Throws SharedError. `hints` and `traffic` must outlive the file.
  MatrixFile(const std::string& path, int mode, std::uint64_t nodes, Access access,
             const Hints& hints, Traffic& traffic);
  // Collective: closes the file, if close() has not.
  ~MatrixFile();
  MatrixFile(const MatrixFile&) = delete;
  MatrixFile& operator=(const MatrixFile&) = delete;

  // Collective, see above. The cells of the block lie row by row.
  void read(const Block& block, Cell* cells);
  void write(const Block& block, const Cell* cells);

  // Collective: what each rank wrote can be read by all, by MPI-IO's rules for files that several
  // ranks access (sync, barrier, sync), or without `sync` by those of a POSIX file system.
  void publish(bool sync);

  // Collective.
  void close();

 private:
  void set_view(const Block& block);
  void access_rows(const Block& block, Cell* to, const Cell* from);
  void access_view(const Block& block, Cell* to, const Cell* from);
  void note(int code, const char* call);
  void check_count(const MPI_Status& status, MPI_Datatype type, std::size_t count,
                   const char* call);

  std::string path_;
  std::uint64_t nodes_;
  Access access_;
  MPI_Info info_;
  Traffic& traffic_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace matpower
