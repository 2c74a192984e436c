// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_note.hpp"

#include <unistd.h>

#include <cstring>

#include "base/files.hpp"
#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t note_bytes_max = 8192;

std::string note_path(const std::string& pool, const std::string& part_file) {
  return pool + "/" + split_path(part_file).name + "-note";  // part_note_ending
}

// Of a header that may be anything.
std::string pool_in(const std::string& part_file) {
  const auto file = open_file(part_file, FileAccess::read, part_trust());
  PartHeaderFormat header{};
  if (!file.ok() || ::pread(file.value().fd(), &header, sizeof header, 0) !=
                        static_cast<ssize_t>(sizeof header)) {
    return "";
  }
  return {header.pool, ::strnlen(header.pool, sizeof header.pool)};
}

}  // namespace

std::string part_note_path(const std::string& pool, const std::string& path) {
  return note_path(pool, part_file_path(".", path));
}

// Nodes may share the pool's directory, and all write the note at once.
Status write_part_note(const std::string& part_file, const PartIdentity& identity) {
  const std::string& pool = identity.pool;
  if (pool.empty() || split_path(part_file).directory == pool) return Status::success();
  char host[256] = "";
  (void)::gethostname(host, sizeof host - 1);
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(pool));
  return directory.replace_file(split_path(note_path(pool, part_file)).name,
                                part_file + " on " + host,
                                std::to_string(identity.node) + "-" + std::to_string(::getpid()));
}

void remove_part_note(const std::string& part_file) {
  const std::string pool = pool_in(part_file);
  if (!pool.empty()) (void)remove_file(note_path(pool, part_file));
}

void remove_part_note_of(const std::string& pool, const std::string& path) {
  (void)remove_file(part_note_path(pool, path));
}

bool has_part_note(const std::string& pool, const std::string& path) {
  const auto directory = Directory::open(pool);
  return directory.ok() && directory.value().holds(split_path(part_note_path(pool, path)).name);
}

Status part_was_lost(const std::string& pool, const std::string& path) {
  const std::string note = part_note_path(pool, path);
  std::string part = "its cache part";
  const auto file = open_file(note, FileAccess::read);
  if (file.ok()) {
    const auto text = read_rest(file.value(), note, note_bytes_max);
    if (text.ok()) part += ", " + text.value() + ",";
  }
  return Status(Code::not_found, path, " was committed with the pool ", pool, ", and ", part,
                " is gone: the file is as it was written back last, which may be older than the "
                "pool's version. If it is to be used as it is, remove ",
                note,
                ". Parts that last as long as the pool (perdure_cache_directory), or levels of the "
                "pool, prevent this");
}

}  // namespace perdure
