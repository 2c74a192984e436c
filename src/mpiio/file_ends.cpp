// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_ends.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "base/fork_guard.hpp"
#include "base/process_end.hpp"
#include "cache/aside_table.hpp"
#include "mpi/at_finalize.hpp"
#include "mpiio/file_calls.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t linger_ms = 30'000;

// The handles that are open, in the order in which they were opened.
struct OpenHandles {
  std::mutex mutex;
  std::vector<OpenFile*> in_order;
};

OpenHandles& handles() {
  static OpenHandles& open = *new OpenHandles;  // they end after all destructors
  return open;
}

std::vector<OpenFile*> all_open() {
  OpenHandles& open = handles();
  const std::lock_guard<std::mutex> lock(open.mutex);
  return open.in_order;
}

void say_left(const std::string& path, const char* call, const std::string& why) {
  std::fprintf(stderr, "perdure: %s was not closed, and %s could not: %s\n", path.c_str(), call,
               why.c_str());
  note_left_behind();
}

std::string text_of(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (file_error_string(error, text.data(), &length) != MPI_SUCCESS) return "";
  return {text.data(), static_cast<std::size_t>(length)};
}

// All ranks come to each handle, in one order: that of their opening, which threads of a rank may
// have made another than those of the next.
std::vector<OpenFile*> in_common_order() {
  std::vector<OpenFile*> open = all_open();
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  if (provided == MPI_THREAD_MULTIPLE) {
    std::ranges::stable_sort(open, {}, [](const OpenFile* file) { return file->file->path(); });
  }
  return open;
}

// As the program would close them: observers see it, and the MPI library ends its part.
void close_all() {
  for (OpenFile* const open : in_common_order()) {
    const std::string path = open->file->path();
    const std::string part = open->file->part_path();
    MPI_File handle = open->handle;
    const int error = FileCalls::close::leads_to()(&handle);
    if (error == MPI_SUCCESS) continue;
    say_left(path, "MPI_Finalize",
             text_of(error) + "; what is missing in it is in " + part +
                 ": `perdure cache recover` saves it");
  }
}

void end_alone() {
  const auto files = CachedFile::all_known();
  std::vector<Status> ended;
  for (const auto& file : files) ended.push_back(file->end_connections());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Status left = files[i]->end_alone(linger_ms);
    const Status& status = ended[i].ok() ? left : ended[i];
    if (!status.ok()) say_left(files[i]->path(), "exit()", status.message());
  }
}

// base.E4.
const ForkGuard& process() {
  static const ForkGuard guard;
  return guard;
}

bool any_open() {
  return !process().in_child() &&
         (!all_open().empty() || AsideTable::any_joined() || CachedFile::is_any_served());
}

void end_files(ProcessEnd end) {
  if (process().in_child()) return;
  if (end == ProcessEnd::finalize) {
    close_all();
  } else {
    end_alone();
  }
  CachedFile::end_served(linger_ms);
  AsideTable::leave_all();
}

void end_before_library() {
  end_open_things(ProcessEnd::finalize);
}

}  // namespace

void end_files_with_process() {
  static constexpr EndOfKind how{any_open, end_files};
  (void)process();
  end_with_process(OpenKind::cached_files, how);
}

void end_files_before_library() {
  at_finalize<end_before_library>();
}

void note_opened(OpenFile& open) {
  OpenHandles& all = handles();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.in_order.push_back(&open);
}

void note_closed(const OpenFile& open) {
  OpenHandles& all = handles();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase(all.in_order, &open);
}

std::vector<std::shared_ptr<CachedFile>> CachedFile::all_known() {
  std::vector<std::shared_ptr<CachedFile>> files;
  for (const OpenFile* handle : all_open()) {
    if (std::ranges::find(files, handle->file) == files.end()) files.push_back(handle->file);
  }
  return files;
}

std::string CachedFile::part_path() const {
  return is_aside() ? std::string() : part_.path;
}

// The others' servers wait for this process no more, and all that they were sent is there.
Status CachedFile::end_connections() {
  return others_.for_each_connected([](PartClient& there) { return there.finish(); });
}

Status CachedFile::end_alone(std::uint32_t wait_ms) {
  if (is_aside()) return Status::success();  // the file has all
  end_early_write_back();
  others_.end_service(wait_ms);
  note_end_progress();
  if (base_.pool() != nullptr) {
    if (part().unsaved_bytes(true) == 0) return Status::success();
    return Status(Code::wrong_state, "it is committed with the pool ", base_.pool()->directory(),
                  ", to whose version the next start brings it back; its part is ", part_.path,
                  ". `perdure cache recover --as-it-is --file ", path(),
                  "` keeps what was written since");
  }
  Status handed;
  if (backing_.access() != BackingFile::Access::read) handed = hand_over_own();
  if (!handed.ok()) {
    return Status(handed.code(), handed.message(), "; what is missing in it is in ", part_.path,
                  ": `perdure cache recover` saves it");
  }
  if (nodes() > 1) return record_last_change();
  return leave_part_at_exit(part_);
}

}  // namespace perdure
