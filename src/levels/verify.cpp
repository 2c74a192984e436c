#include "levels/verify.hpp"

#include <algorithm>
#include <set>

#include "levels/census.hpp"
#include "levels/manifest.hpp"
#include "levels/node_file.hpp"
#include "levels/recovery_plan.hpp"

namespace perdure {
namespace {

class Verification {
 public:
  Verification(const std::vector<std::string>& directories, const VerifyOptions& options)
      : directories_(directories), options_(options) {}

  Result<LevelsReport> run() {
    PERDURE_TRY_ASSIGN(census_, census_of(directories_, options_.trust));
    report_.job = census_.job;
    std::set<std::uint32_t> ranks;
    for (const PoolFileFact& file : census_.files) ranks.insert(file.rank);
    report_.pool_files.assign(ranks.begin(), ranks.end());
    for (const LevelFileFact& fact : census_.levels) total_ += fact.payload_bytes;
    if (options_.data) PERDURE_TRY(leave_out_damaged());
    std::set<VersionId> ids;
    for (const LevelFileFact& fact : census_.levels) ids.insert(fact.id);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) report_.kept.push_back(judge(*id));
    for (const std::string& drain : options_.drains) PERDURE_TRY(look_at_drain(drain));
    return report_;
  }

 private:
  Status note_read(std::uint64_t bytes) {
    done_ += bytes;
    if (!options_.progress || options_.progress(std::min(done_, total_), total_)) {
      return Status::success();
    }
    return {Code::busy, "it was stopped"};
  }

  Status leave_out_damaged() {
    std::vector<LevelFileFact> whole;
    for (const LevelFileFact& fact : census_.levels) {
      PERDURE_TRY_ASSIGN(const auto directory,
                         Directory::open(directories_[fact.at], options_.trust));
      const auto file = LevelFile::open(directory, fact.name, options_.trust);
      const Status verified = file.ok() ? file.value().verify() : file.status();
      if (verified.ok()) {
        whole.push_back(fact);
      } else {
        report_.problems.push_back(verified.message());
      }
      PERDURE_TRY(note_read(fact.payload_bytes));
    }
    census_.levels = std::move(whole);
    return Status::success();
  }

  KeptVersion judge(VersionId id) const {
    Census alone = census_;
    std::erase_if(alone.levels, [id](const LevelFileFact& fact) { return fact.id != id; });
    KeptVersion kept;
    kept.id = id;
    std::set<std::uint32_t> images;
    std::set<std::uint32_t> guards;
    for (const LevelFileFact& fact : alone.levels) {
      (fact.name.kind == LevelFileKind::image ? images : guards).insert(fact.name.rank);
    }
    kept.images.assign(images.begin(), images.end());
    kept.guards.assign(guards.begin(), guards.end());
    kept.restorable = plan_recovery(alone).has_value();
    if (kept.restorable) kept.losses = bearable_losses(alone, id);
    return kept;
  }

  Status look_at_drain(const std::string& drain) {
    const std::string place = place_of_pool(drain, directories_.front());
    const auto found = find_versions(place, census_.job.job_id);
    if (!found.ok()) {
      report_.problems.push_back(found.status().message());
      return Status::success();
    }
    for (const std::string& problem : found.value().problems) report_.problems.push_back(problem);
    for (const Manifest& manifest : found.value().manifests) {
      const Status whole = options_.data ? read_all(manifest) : Status::success();
      if (whole.code() == Code::busy) return whole;
      report_.drained.push_back({place, manifest.id, whole.message()});
      if (!whole.ok()) report_.problems.push_back(whole.message());
    }
    return Status::success();
  }

  Status read_all(const Manifest& manifest) {
    PERDURE_TRY_ASSIGN(const auto version, Directory::open(manifest.directory, options_.trust));
    for (const ManifestFile& file : manifest.files) total_ += file.bytes;
    for (const ManifestFile& file : manifest.files) {
      PERDURE_TRY_ASSIGN(const auto held, read_node_file(version, file.node));
      if (held.index_checksum != file.index_checksum) {
        return {Code::damaged, version.path_of(node_file_name(file.node)) +
                                   " is not the one that the manifest names"};
      }
      for (const NodeImage& image : held.images) {
        PERDURE_TRY(read_node_image(version, file.node, image, [](auto, auto) {}));
        PERDURE_TRY(note_read(image.bytes));
      }
    }
    return Status::success();
  }

  const std::vector<std::string>& directories_;
  const VerifyOptions& options_;
  Census census_;
  LevelsReport report_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

Result<LevelsReport> verify_levels(const std::vector<std::string>& directories,
                                   const VerifyOptions& options) {
  return Verification(directories, options).run();
}

}  // namespace perdure
