// SPDX-License-Identifier: BSD-3-Clause
//
// Open file: what Perdure knows of a handle of a cached file. The handle itself is the MPI
// library's, so calls that Perdure does not take work on it.
//
// Threads: accesses may come from any; what is collective, from one at a time.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "mpi/handle_table.hpp"
#include "mpi/mpi_group.hpp"
#include "mpiio/cache_options.hpp"
#include "mpiio/cached_file.hpp"
#include "mpiio/file_view.hpp"

namespace perdure {

class FileRecord;

// A split collective call that was begun.
struct SplitAccess {
  const void* kind = nullptr;  // the function that ends it; null: none is under way
  std::int64_t bytes = 0;
};

// Whether accesses may go straight to this node's part, and whether writes may. Any thread may be
// the one that finds it, when a file that stood aside is cached: `possible` is set last.
struct ShortCut {
  std::atomic<CachePart*> part{nullptr};
  std::atomic<bool> possible{false};
  std::atomic<bool> writes{false};
};

struct OpenFile {
  MPI_File handle{};
  std::shared_ptr<CachedFile> file;
  std::shared_ptr<MpiGroup> group;  // perhaps of several files
  std::uint64_t number = 0;         // of the file in it, the same on all ranks
  CacheOptions options;
  int amode = 0;
  bool readable = false;
  bool writable = false;
  bool atomic_mode = false;
  int shared_pointer = 0;  // its slot in the first node's part
  FileView view;
  std::atomic<std::int64_t> position{0};  // of the individual pointer, in bytes of the view
  SplitAccess split;
  ShortCut short_cut;  // see find_short_cut()
  std::uint64_t opened_ns = 0;
  FileRecord* record = nullptr;  // of the recorder
};

using FileTable = HandleTable<MPI_File, OpenFile>;
extern FileTable file_table;

// The cached file of a handle; null: not ours. Lock-free.
inline OpenFile* find_file(MPI_File handle) {
  return file_table.find(handle);
}

// After the file was opened or has got a part, and whenever its view, mode or acknowledgement has
// changed.
void find_short_cut(OpenFile& open);

// Of a file that is to be kept, after a write.
inline void write_early(const OpenFile& open) {
  const bool is_kept = (open.amode & MPI_MODE_DELETE_ON_CLOSE) == 0;
  if (is_kept && open.options.write_back == WriteBackTime::early) open.file->write_early();
}

// Calls the error handler of the file, or of no file, with a code of the class that fits `status`
// and its sentence; returns the code.
int raise_on_file(MPI_File file, const Status& status);
// MPI_Error_string, of these codes too.
int file_error_string(int code, char* text, int* length);

}  // namespace perdure
