// SPDX-License-Identifier: BSD-3-Clause
#include "levels/own_files.hpp"

#include <algorithm>

#include "levels/guard_contents.hpp"

namespace perdure {

Status OwnFiles::open(const JobId& lineage) {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(node_.directory, node_.trust));
  PERDURE_TRY_ASSIGN(job_, read_job_record(directory));
  job_.lineage = lineage;
  const std::uint32_t rank = node_.group.rank();
  for (std::uint32_t i = 0; i < level_files_max; ++i) {
    PERDURE_TRY_ASSIGN(
        auto image, LevelFile::open_or_make(directory, {SealedKind::image, rank, i}, node_.trust));
    PERDURE_TRY_ASSIGN(
        auto guard, LevelFile::open_or_make(directory, {SealedKind::guard, rank, i}, node_.trust));
    images_.push_back(std::move(image));
    guards_.push_back(std::move(guard));
  }
  return Status::success();
}

void OwnFiles::close() {
  images_.clear();
  guards_.clear();
}

std::vector<VersionId> OwnFiles::whole(const std::vector<std::uint32_t>& members) const {
  return whole_versions(images_, guards_, job_, members);
}

const LevelFile* OwnFiles::image_of(VersionId id) const {
  for (const LevelFile& image : images_) {
    if (image.whole() && image.header().id == id) return &image;
  }
  return nullptr;
}

LevelFile* OwnFiles::free(std::vector<LevelFile>& files, std::vector<VersionId> needed) {
  for (LevelFile& file : files) {
    const auto it = file.whole() ? std::ranges::find(needed, file.header().id) : needed.end();
    if (it == needed.end()) return &file;
    *it = VersionId{};
  }
  return nullptr;
}

Status OwnFiles::give_up_newer(const JobId& job, std::uint64_t held) {
  for (auto* files : {&images_, &guards_}) {
    for (LevelFile& file : *files) {
      if (file.whole() && file.header().id.version > held) PERDURE_TRY(file.clear());
    }
  }
  if (!node_.is_led_here()) return Status::success();
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(node_.directory, node_.trust));
  return clear_newer(directory, node_.trust, job, held,
                     [this](std::uint32_t rank) { return images_.empty() || !node_.has(rank); });
}

Status OwnFiles::remove_of_others(const JobId& job) const {
  if (!node_.is_led_here()) return Status::success();
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(node_.directory, node_.trust));
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  const std::uint32_t ranks = node_.group.ranks();
  for (const std::string& name : names) {
    const auto parsed = parse_level_file_name(name);
    if (!parsed) continue;
    const auto file = LevelFile::open(directory, *parsed, node_.trust, true);
    if (!file.ok()) continue;
    bool of_others = parsed->rank >= ranks;
    if (file.value().whole()) {
      const JobRecord& its = file.value().header().job;
      of_others = its.job_id == job && its.ranks != ranks;
    }
    if (of_others) PERDURE_TRY(directory.remove_file(name));
  }
  return Status::success();
}

}  // namespace perdure
