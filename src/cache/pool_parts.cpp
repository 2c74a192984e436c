// SPDX-License-Identifier: BSD-3-Clause
#include "cache/pool_parts.hpp"

#include <algorithm>

#include "base/files.hpp"
#include "cache/backing_file.hpp"
#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"
#include "cache/part_note.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t note_bytes_max = 8192;

Status check_alone(const std::string& path, std::uint32_t nodes) {
  if (nodes <= 1) return Status::success();
  return Status(Code::unsupported, path, " is a cached file with parts on ", nodes,
                " nodes, which another number of ranks can't recover");
}

Status recover_one(const std::string& directory, const std::string& path,
                   const PoolVersion& version) {
  PERDURE_TRY_ASSIGN(const auto file, BackingFile::open(path, BackingFile::Access::read_write));
  return recover_leftover_part(directory, path, file, version);
}

// The note says "PART on HOST".
Status recover_noted(const Directory& pool, const std::string& note, const PoolVersion& version) {
  PERDURE_TRY_ASSIGN(const auto file, pool.open_file(note, FileAccess::read));
  PERDURE_TRY_ASSIGN(const std::string text, read_rest(file, pool.path_of(note), note_bytes_max));
  const std::string part = text.substr(0, text.rfind(" on "));
  const std::string directory = split_path(part).directory;
  const auto found = list_parts(directory);
  for (const FoundPart& each : found.ok() ? found.value() : std::vector<FoundPart>()) {
    if (each.file != part || each.pool.empty()) continue;
    PERDURE_TRY(check_alone(each.path, each.nodes));
    return recover_one(directory, each.path, version);
  }
  return Status(Code::not_found, pool.path_of(note),
                " says that what a cached file had at the pool's version is in ", text,
                ", and it is not there: start where it is, or, if the file is to be used as it is, "
                "remove the note");
}

}  // namespace

Status recover_pool_parts(const std::string& pool, const PoolVersion& version) {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(pool, part_trust()));
  for (const PartFact& part : find_group_parts(directory, version.job, part_trust())) {
    PERDURE_TRY(check_alone(part.path, part.nodes));
    PERDURE_TRY(recover_one(pool, part.path, version));
  }
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    if (name.ends_with(part_note_ending)) PERDURE_TRY(recover_noted(directory, name, version));
  }
  return Status::success();
}

}  // namespace perdure
