// SPDX-License-Identifier: BSD-3-Clause
#include "cache/aside_table.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "cache/backoff.hpp"
#include "cache/part_files.hpp"

namespace perdure {
namespace {

// The tables that this process has joined, by the path of their directory.
struct Tables {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<AsideTable>> by_path;
};

Tables& tables() {
  static Tables& all = *new Tables;  // files end after all destructors
  return all;
}

bool lock_table(const FileHandle& file, FileLock kind) {
  const auto locked = try_lock_file(file.fd(), kind, aside_name);
  return locked.ok() && locked.value();
}

// Somebody may have removed the directory of processes that use it.
bool has_name(const FileHandle& file) {
  struct stat status{};
  return ::fstat(file.fd(), &status) == 0 && status.st_nlink != 0;
}

}  // namespace

AsideEntry::~AsideEntry() {
  if (format_ != nullptr) table_->give(*format_);
}

AsideTable::AsideTable(Directory directory, FileHandle file, FileHandle lock)
    : directory_(std::move(directory)),
      file_(std::move(file)),
      lock_(std::move(lock)),
      path_(directory_.path_of(aside_name)) {}

AsideTable::~AsideTable() {
  owners_.reset();
  if (base_ != nullptr) ::munmap(base_, aside_file_bytes);
}

// Room is taken now: what is mapped later must be there (P4 of docs/promise.md).
Status AsideTable::begin_anew() {
  if (const int beyond = beyond_file_limit(aside_file_bytes); beyond != 0) {
    return errno_status("set the size of " + path_, beyond);
  }
  if (::ftruncate(file_.fd(), 0) != 0 ||
      ::ftruncate(file_.fd(), static_cast<off_t>(aside_file_bytes)) != 0) {
    return errno_status("set the size of " + path_, errno);
  }
  const int error = ::posix_fallocate(file_.fd(), 0, static_cast<off_t>(aside_entries_offset));
  return error == 0 ? Status::success() : errno_status("allocate " + path_, error);
}

Status AsideTable::map(bool anew) {
  if (anew) PERDURE_TRY(begin_anew());
  struct stat status{};
  if (::fstat(file_.fd(), &status) != 0) return errno_status("fstat " + path_, errno);
  Status foreign(Code::damaged, path_,
                 " is not the table of files that this Perdure makes, and processes use it; "
                 "end them, or choose another perdure_cache_directory");
  if (status.st_size != static_cast<off_t>(aside_file_bytes)) return foreign;
  void* const base = ::mmap(nullptr, aside_file_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file_.fd(), 0);
  if (base == MAP_FAILED) return errno_status("map " + path_, errno);
  base_ = static_cast<std::byte*>(base);
  header_ = reinterpret_cast<AsideHeaderFormat*>(base_);
  owners_table_ = reinterpret_cast<OwnerFormat*>(base_ + aside_owners_offset);
  if (anew) {
    PERDURE_TRY(fill_random(&header_->id, sizeof header_->id));
    header_->id |= 1;
    header_->format_version = aside_format_version;
    word(header_->magic).store(aside_magic, std::memory_order_release);
  }
  const bool known =
      word(header_->magic).load() == aside_magic && header_->format_version == aside_format_version;
  return known ? Status::success() : foreign;
}

// A process that is killed leaves its number to be cleared by one that needs it.
Status AsideTable::take_number() {
  Status taken = owners_->join();
  if (!taken.ok()) {
    clear_dead();
    taken = owners_->join();
  }
  PERDURE_TRY(taken);
  const auto own =
      static_cast<off_t>(reinterpret_cast<std::byte*>(entries_of(owners_->number())) - base_);
  const int error = ::posix_fallocate(file_.fd(), own, aside_page_bytes);
  if (error == 0) return Status::success();
  owners_->leave();
  return errno_status("allocate " + path_, error);
}

// cache.A6.
Result<std::shared_ptr<AsideTable>> AsideTable::join(const Directory& locked, FileHandle lock) {
  PERDURE_TRY_ASSIGN(auto directory, Directory::open(locked.path(), part_trust()));
  // What is mapped is opened by itself: a lock of it would stay with forked children.
  PERDURE_TRY_ASSIGN(auto file, locked.open_file(aside_name, FileAccess::read_write));
  const bool anew = lock_table(lock, FileLock::alone);
  if (!lock_table(lock, FileLock::shared)) {
    return errno_status("lock " + locked.path_of(aside_name), errno);
  }
  // The same open file description: its locks end with this process.
  FileHandle copy(::fcntl(lock.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (copy.fd() < 0) return errno_status("duplicate a descriptor", errno);
  std::shared_ptr<AsideTable> table(
      new AsideTable(std::move(directory), std::move(file), std::move(lock)));
  PERDURE_TRY(table->map(anew));
  table->owners_ = std::make_unique<PartOwners>(std::move(copy), table->owners_table_);
  PERDURE_TRY(table->take_number());
  tables().by_path[locked.path()] = table;
  return table;
}

namespace {

std::shared_ptr<AsideTable> known_table(const std::string& directory) {
  const std::size_t last = directory.find_last_not_of('/');
  const auto found = tables().by_path.find(directory.substr(0, last + 1));
  return found == tables().by_path.end() ? nullptr : found->second;
}

}  // namespace

Result<std::shared_ptr<AsideTable>> AsideTable::of(const std::string& directory) {
  {
    const std::lock_guard<std::mutex> lock(tables().mutex);
    const auto known = known_table(directory);
    if (known != nullptr && has_name(known->file_)) return known;
  }
  PERDURE_TRY_ASSIGN(const auto locked, lock_part_directory(directory, true));
  PERDURE_TRY_ASSIGN(auto file, locked.open_or_create(aside_name));
  const std::lock_guard<std::mutex> lock(tables().mutex);
  const auto known = known_table(locked.path());
  if (known != nullptr && has_name(known->file_)) return known;
  auto joined = join(locked, std::move(file));
  if (!joined.ok()) remove_unused(locked);
  return joined;
}

Result<std::shared_ptr<AsideTable>> AsideTable::find(const Directory& locked) {
  const std::lock_guard<std::mutex> lock(tables().mutex);
  const auto known = known_table(locked.path());
  if (known != nullptr && has_name(known->file_)) return known;
  auto file = locked.open_file(aside_name, FileAccess::read_write);
  if (file.status().code() == Code::not_found) return std::shared_ptr<AsideTable>();
  if (!file.ok()) return file.status();
  // Left behind by processes that were killed.
  if (lock_table(file.value(), FileLock::alone)) return std::shared_ptr<AsideTable>();
  return join(locked, file.take());
}

bool AsideTable::any_joined() {
  const std::lock_guard<std::mutex> lock(tables().mutex);
  return !tables().by_path.empty();
}

void AsideTable::leave_all() {
  std::map<std::string, std::shared_ptr<AsideTable>> all;
  {
    const std::lock_guard<std::mutex> lock(tables().mutex);
    all.swap(tables().by_path);
  }
  for (const auto& [path, table] : all) {
    auto locked = lock_part_directory(path, false);
    if (!locked.ok()) continue;  // it is gone, or held for long: what stays is left by a dead one
    table->leave(locked.value());
    tidy_part_directory(locked.value());
  }
}

void AsideTable::remove_unused(const Directory& locked) {
  const auto file = locked.open_file(aside_name, FileAccess::read_write);
  if (file.ok() && lock_table(file.value(), FileLock::alone)) (void)locked.remove_file(aside_name);
}

// Files that the program never closed are open no more.
void AsideTable::leave(const Directory& locked) {
  const std::lock_guard<std::mutex> lock(mutex_);
  AsideEntryFormat* const own = entries_of(owners_->number());
  for (std::uint32_t i = 0; i < aside_entries; ++i) own[i] = AsideEntryFormat{};
  owners_->leave();
  if (lock_table(lock_, FileLock::alone) && locked.is_file(file_.fd(), aside_name)) {
    (void)locked.remove_file(aside_name);  // what stays is made anew by whoever comes
  }
  unlock_file(lock_.fd());
}

Status AsideTable::check() const {
  if (has_name(file_)) return Status::success();
  return Status(Code::wrong_state, path_,
                " was removed while files stand aside: processes that open them now do not see "
                "each other's bytes; close the files");
}

AsideEntryFormat* AsideTable::entries_of(std::uint32_t owner) const {
  return reinterpret_cast<AsideEntryFormat*>(base_ + aside_entries_offset +
                                             (owner - 1) * aside_page_bytes);
}

std::uint64_t* AsideTable::pointer(std::uint32_t number) const {
  if (number >= owners_max * aside_entries) return nullptr;
  return &entries_of(number / aside_entries + 1)[number % aside_entries].pointer;
}

void AsideTable::give(AsideEntryFormat& entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  word(entry.used).store(0);
}

Result<std::optional<AsideEntry>> AsideTable::enter(std::uint64_t device, std::uint64_t inode,
                                                    const std::string& part_name) {
  AsideEntryFormat* found = nullptr;
  std::uint32_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (owners_->number() == 0) return std::optional<AsideEntry>();  // it has left
    AsideEntryFormat* const own = entries_of(owners_->number());
    for (std::uint32_t i = 0; i < aside_entries && found == nullptr; ++i) {
      if (own[i].used != 0) continue;
      found = &own[i];
      number = (owners_->number() - 1) * aside_entries + i;
    }
    if (found == nullptr) return std::optional<AsideEntry>();
    word(found->device).store(device);
    word(found->inode).store(inode);
    word(found->pointer).store(0);
    word(found->busy).store(0);
    word(found->leave).store(0);
    word(found->used).store(1);
  }
  std::optional<AsideEntry> entry(std::in_place, shared_from_this(), found, number);
  // cache.A2. A part that is being made now may be of another file, and is soon.
  while (word(header_->making).load() % 2 != 0) {
    PERDURE_TRY_ASSIGN(const auto locked, lock_part_directory(directory_.path(), false));
    auto making = word(header_->making);
    if (making.load() % 2 != 0) making.fetch_add(1);  // cache.A3
  }
  if (directory_.holds(part_name)) return std::optional<AsideEntry>();
  return entry;
}

// cache.A5.
bool AsideTable::clear_if_dead(std::uint32_t owner) {
  if (!owners_->take_over(owner)) return false;
  AsideEntryFormat* const entries = entries_of(owner);
  for (std::uint32_t i = 0; i < aside_entries; ++i) {
    word(entries[i].used).store(0);
    word(entries[i].busy).store(0);
  }
  owners_->give_back(owner, true);
  return true;
}

void AsideTable::clear_dead() {
  for (std::uint32_t owner = 1; owner <= owners_max; ++owner) {
    if (process_of(owner) != 0) (void)clear_if_dead(owner);
  }
}

Result<std::unique_ptr<AsideMaking>> AsideMaking::begin(std::shared_ptr<AsideTable> table,
                                                        const File& file) {
  std::unique_ptr<AsideMaking> making(new AsideMaking(std::move(table)));
  if (making->table_ == nullptr) return making;
  auto count = word(making->table_->header_->making);
  if (count.load() % 2 == 0) count.fetch_add(1);  // else a dead maker's (cache.A3)
  PERDURE_TRY(making->call_off(file));
  return making;
}

AsideMaking::~AsideMaking() {
  if (table_ != nullptr) word(table_->header_->making).fetch_add(1);
}

// cache.A1, in all entries first, so that the accesses of several processes end at the same time.
Status AsideMaking::call_off(const File& file) {
  std::vector<std::pair<std::uint32_t, AsideEntryFormat*>> of_file;
  for (std::uint32_t owner = 1; owner <= owners_max; ++owner) {
    if (table_->process_of(owner) == 0) continue;
    AsideEntryFormat* const entries = table_->entries_of(owner);
    for (std::uint32_t i = 0; i < aside_entries; ++i) {
      if (word(entries[i].used).load() == 0) continue;
      const bool same = word(entries[i].inode).load() == file.inode &&
                        word(entries[i].device).load() == file.device;
      if (same) of_file.emplace_back(owner, &entries[i]);
    }
  }
  for (const auto& [owner, entry] : of_file) {
    if (!file.alone || table_->clear_if_dead(owner)) continue;
    return Status(Code::busy, file.path,
                  " is open in another process of this node, which is not part of this "
                  "communicator or committed with this pool; close it there first");
  }
  for (const auto& [owner, entry] : of_file) word(entry->leave).store(1);
  for (const auto& [owner, entry] : of_file) PERDURE_TRY(await(owner, *entry, file));
  return Status::success();
}

Status AsideMaking::await(std::uint32_t owner, AsideEntryFormat& entry, const File& file) {
  Backoff backoff;
  const std::uint64_t until = monotonic_ns() + std::uint64_t{file.wait_ms} * 1'000'000;
  while (word(entry.busy).load() != 0) {
    if (!backoff.wait()) continue;
    if (table_->clear_if_dead(owner)) return Status::success();
    if (monotonic_ns() < until) continue;
    return Status(Code::busy, file.path, ": process ", table_->process_of(owner) & 0xFFFFFFFFU,
                  " has not ended an access of it for ", file.wait_ms,
                  " ms; try again when it has");
  }
  return Status::success();
}

}  // namespace perdure
