// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/file_aside.hpp"

#include <cstdio>
#include <utility>

#include "base/assert.hpp"
#include "base/environment.hpp"
#include "base/random.hpp"
#include "mpiio/cached_file.hpp"

namespace perdure {
namespace {

// Returns the sum. Of threads that meet some may be lost, which is less than what exchanges cost.
std::uint64_t add(std::atomic<std::uint64_t>& sum, std::uint64_t more) {
  const std::uint64_t grown = sum.load(std::memory_order_relaxed) + more;
  sum.store(grown, std::memory_order_relaxed);
  return grown;
}

}  // namespace

std::optional<std::string> aside_directory(const CacheOptions& options) {
  const std::string node = environment("PERDURE_NODE_ID");
  if (node.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  std::string directory = options.directory.empty() ? default_part_directory() : options.directory;
  return node.empty() ? directory : directory + "/node-" + node;
}

// The medium is asked for only by those that have read or written much: it is a call of the system.
bool FileAside::count(const BackingFile& file, Direction direction, std::uint64_t bytes) {
  const bool is_large = direction == Direction::read && bytes > small_read_bytes;
  const std::uint64_t part =
      is_large ? parts_of_access * small_read_bytes / bytes : parts_of_access;
  const std::uint64_t accesses = add(accesses_, part) / parts_of_access;
  const std::uint64_t more = add(bytes_, bytes / bytes_of_access);
  const std::uint64_t from = from_.load(std::memory_order_relaxed);
  if (accesses >= from) return true;
  return accesses + more >= from && medium(file) == FileMedium::other;
}

void FileAside::put_off() {
  const std::uint64_t spent = accesses_.load(std::memory_order_relaxed) / parts_of_access +
                              bytes_.load(std::memory_order_relaxed);
  from_.store(2 * spent, std::memory_order_relaxed);
}

FileMedium FileAside::medium(const BackingFile& file) {
  int known = medium_.load(std::memory_order_relaxed);
  if (known < 0) {
    known = static_cast<int>(file.medium());
    medium_.store(known, std::memory_order_relaxed);
  }
  return static_cast<FileMedium>(known);
}

std::atomic_ref<std::uint64_t> FileAside::pointer(int slot) const {
  std::uint64_t* const place =
      claim_.entry.table().pointer(static_cast<std::uint32_t>(slot - pointer_slots_begin));
  PERDURE_ASSERT(place != nullptr);  // the opening has looked
  return std::atomic_ref<std::uint64_t>(*place);
}

void CachedFile::spend(std::uint64_t bytes, Direction direction) {
  constexpr std::uint32_t patience_ms = 20;
  if (aside_->count(backing_, direction, bytes) && !make_cached(patience_ms).ok())
    aside_->put_off();
}

Result<std::optional<std::uint64_t>> CachedFile::read_aside(std::uint64_t offset, void* to,
                                                            std::uint64_t bytes) {
  spend(bytes, Direction::read);
  std::uint64_t got = 0;
  PERDURE_TRY_ASSIGN(const bool done, do_aside([&](const BackingFile& file) -> Status {
                       PERDURE_TRY_ASSIGN(got, file.read_some(offset, to, bytes));
                       return Status::success();
                     }));
  if (!done) return std::optional<std::uint64_t>();
  count_aside(got);
  return std::optional<std::uint64_t>(got);
}

Result<bool> CachedFile::write_aside(std::uint64_t offset, const void* from, std::uint64_t bytes) {
  spend(bytes, Direction::write);
  auto done = do_aside([&](const BackingFile& file) { return file.write(offset, from, bytes); });
  if (done.ok() && done.value()) count_aside(bytes);
  return done;
}

void CachedFile::count_aside(std::uint64_t bytes) {
  (void)add(tally_.aside_accesses, 1);
  (void)add(tally_.aside_bytes, bytes);
}

Status CachedFile::become_cached() {
  constexpr std::uint32_t patience_ms = 30000;
  return is_aside() ? make_cached(patience_ms) : Status::success();
}

Status CachedFile::make_cached(std::uint32_t wait_ms) {
  const std::lock_guard<std::mutex> lock(aside_->mutex());
  if (!is_aside()) return Status::success();
  PartRequest request = aside_->request();
  request.wait_ms = wait_ms;
  PERDURE_TRY(recover_leftover_part(request.directory, request.identity.path, backing_, {}));
  PERDURE_TRY(fill_random(request.identity.instance, sizeof request.identity.instance));
  for (std::uint64_t& word : request.identity.instance) word |= 1;
  PERDURE_TRY_ASSIGN(auto made, make_part(request, backing_));
  use_part(std::move(made));
  return Status::success();
}

// Another process has made a part. If it is gone again, what it had is in the file.
Status CachedFile::follow() {
  const std::lock_guard<std::mutex> lock(aside_->mutex());
  if (!is_aside()) return Status::success();
  PERDURE_TRY_ASSIGN(auto joined, follow_part(aside_->request(), backing_, aside_->entry()));
  if (joined) use_part(std::move(*joined));
  return Status::success();
}

// Whoever sees that the file is no longer aside sees all of this.
void CachedFile::use_part(OpenPart open) {
  part_ = std::move(open);
  own_.emplace(*part_.part);
  layout_ = part().layout();
  part().set_evicting(aside_->evicting());
  part().set_teller(
      [](const std::string& what) { std::fprintf(stderr, "perdure: %s\n", what.c_str()); });
  is_aside_.store(false, std::memory_order_release);
}

}  // namespace perdure
