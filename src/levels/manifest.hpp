// SPDX-License-Identifier: BSD-3-Clause
//
// Manifest: which versions of a job a directory of a parallel file system holds, whole.
//
//   LEVEL/POOL/lease-N                       who uses it (lease.hpp)
//   LEVEL/POOL/LINE/origin                   what the lineage was made from (lineage.hpp)
//   LEVEL/POOL/LINE/version-V.I/node-NNNNN   version V of incarnation I, of the ranks of one node
//   LEVEL/POOL/LINE/version-V.I/manifest     which node file has which rank
//   LEVEL/POOL/LINE/abandoned-V.I.J          versions newer than V of incarnation I don't count,
//                                            up to incarnation J
//
// POOL is the name of the pool's directory, LINE the lineage's id in 32 hexadecimal digits: that of
// the job, if it is the first.
//
// Invariants
//   levels.M1  A manifest is written, under another name, and renamed only when node files of all
//       ranks are there, whole and durable, under names that are durable. So a version with a
//       manifest can be restored, whatever is cut short in the making of another one.
//   levels.M2  Versions are removed only when `keep` newer ones have manifests that are durable; of
//       the lineage's own history alone (lineage.hpp, levels.Y2), and nothing whose name is not one
//       of those above. A version's manifest goes first, durably, so that a removal that is cut
//       short leaves no manifest without files.
//
// A crash may leave unfinished files, node files without a manifest, and versions that were to be
// removed: they are not found, and go with the versions of their age.
//
// Threads: any. Several processes may write the same manifest at a time, or remove the same
// version. Failure: a Status with the path and the remedy; what was there stays.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "levels/level_file.hpp"
#include "levels/lineage.hpp"
#include "levels/node_file.hpp"

namespace perdure {

struct ManifestFile {
  std::uint32_t node = 0;  // the file is node-NNNNN
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;        // its state word
  std::vector<std::uint32_t> ranks;  // that are read from it
};

struct Manifest {
  std::string directory;
  JobRecord job;  // without a place
  VersionId id;
  std::vector<ManifestFile> files;
};

// LEVEL/POOL of a pool's directory.
std::string place_of_pool(const std::string& level, const std::string& pool_directory);
// "version-V.I", and which version that is the name of.
std::string version_name(VersionId id);
std::optional<VersionId> version_of_name(const std::string& name);

// The versions of a lineage's history, newest first by incarnation and number, without abandoned
// ones.
struct FoundVersions {
  Ancestors ancestors;
  std::vector<Manifest> manifests;
  std::vector<std::string> problems;  // of manifests that can't be used
  // The highest of any version that is here, whole or not, or abandoned. A job that goes on from
  // this place must take a higher one, or it might give a number again in the same incarnation, and
  // meet node files of the version that had it (node_file.hpp).
  std::uint64_t incarnation_max = 0;
};
// Of the lineage that the newest lease names if none is given. An empty place has no versions.
Result<FoundVersions> find_versions(const std::string& place, const std::optional<JobId>& lineage);

// Whether a version still has its manifest, in the directory that a Manifest names.
bool has_manifest(const std::string& version_directory);

// Where a rank's image is. Code::damaged if it is not what the manifest names.
struct FoundImage {
  LevelDirectory version;
  NodeFile file;
  NodeImage image;
};
Result<FoundImage> find_image(const Manifest& manifest, std::uint32_t rank);

// Reads the image of a rank into `to`, which has no contents unless it returns success.
Status read_image(const Manifest& manifest, std::uint32_t rank, LevelFile& to);

// Durably: versions newer than `held` of incarnations up to `incarnation_max` are no longer found.
// To be called before a restore of that version returns.
Status abandon_versions(const std::string& place, const JobId& lineage, VersionId held,
                        std::uint64_t incarnation_max);

// Removes what is older than the `keep` newest versions that are found (levels.M2). What can't be
// removed stays for the next time.
Status remove_old_versions(const std::string& place, const JobId& lineage, std::uint32_t keep);

// Makes the directory of a version.
Result<LevelDirectory> make_version(const std::string& place, const JobId& lineage, VersionId id);

// Writes the manifest of one version as soon as all node files are there. Each node file is read
// once, however often it is asked.
class ManifestWriter {
 public:
  ManifestWriter(std::string place, JobRecord job, VersionId id)
      : place_(std::move(place)), job_(std::move(job)), id_(id) {}
  VersionId id() const { return id_; }
  // True if the version has a manifest now. Code::damaged if a node file that is needed is.
  Result<bool> try_write();
  // As far as it has looked: whether a node file has the rank, and how many ranks none has.
  bool has(std::uint32_t rank) const;
  std::uint32_t missing() const;

 private:
  Status read_new_files(const LevelDirectory& directory);
  Manifest manifest() const;

  std::string place_;
  JobRecord job_;
  VersionId id_;
  std::map<std::uint32_t, ManifestFile> files_;  // by node; all ranks of each
};

}  // namespace perdure
