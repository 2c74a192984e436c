// SPDX-License-Identifier: BSD-3-Clause
//
// Inspection: what a pool on disk holds, without restoring or changing anything. For `perdure
// pool`.
//
// Files are opened read-only and without a lock, so a pool in use can be looked at; what is then
// found may be in motion.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record.hpp"
#include "pool/judgement.hpp"
#include "pool/retained.hpp"
#include "pool/slots.hpp"
#include "pool/stored_array.hpp"

namespace perdure {

enum class Severity {
  fine,
  crash,   // what a crash leaves behind; recovery removes it
  damage,  // recovery refuses, or would refuse the newest version
};

struct Finding {
  Severity severity = Severity::fine;
  std::string text;
};

struct RankReport {
  std::uint32_t rank = 0;
  std::string path;
  Region region;  // if it is usable
  std::uint64_t file_bytes = 0;
  std::uint32_t keep = 0;                        // versions that the file has room for
  bool usable = false;                           // the header could be read
  std::optional<std::uint64_t> newest;           // that this rank would go on from
  std::vector<std::uint64_t> complete_versions;  // newest first
  std::optional<Catalogue> catalogue;            // of `newest`
  std::vector<Finding> findings;
  std::vector<SlotView> slots;
  Judgement judgement;  // of them
};

// What the rank has in a version; null: nothing.
const Catalogue* catalogue_of(const RankReport& rank, std::uint64_t version);

struct PoolReport {
  std::string directory;
  JobRecord job;
  std::uint32_t owner = 0;               // user id of the directory's owner
  bool moved = false;                    // it was made in another directory: adopt_pool()
  std::vector<RankReport> ranks;         // whose files are there, in order
  std::uint32_t keep = 0;                // versions that the pool keeps; 0: no rank's file says
  std::optional<std::uint64_t> version;  // that a restart would give back
  std::vector<VersionInfo> versions;     // that could be restored, newest first
  std::vector<Finding> findings;         // that concern more than one rank

  Severity worst() const;
};

struct InspectOptions {
  bool verify_data = false;  // read all data and compare it with its checksums
};

// Code::not_found when the directory holds no pool; anything else that is wrong is a finding.
Result<PoolReport> inspect_pool(const std::string& directory, const InspectOptions& options);
// The same of ranks' files in several directories: that of each rank whose file is somewhere.
PoolReport inspect_ranks(const JobRecord& job, const std::map<std::uint32_t, std::string>& files,
                         const InspectOptions& options);

// The version that is wanted of a rank, or by default the one that a restart would give back.
// Code::not_found, damaged.
Result<std::uint64_t> version_to_read(const PoolReport& report, std::uint32_t rank,
                                      std::optional<std::uint64_t> wanted);

// The bytes of an array, by default in the version that a restart would give back, verified if it
// has checksums. Code::not_found if the pool holds no such version. A job may go on with the pool
// meanwhile: Code::busy if it has stored over that version, of which nothing is returned then.
struct DumpedArray {
  std::uint64_t version = 0;
  ArrayShape shape;
  std::vector<std::byte> bytes;
  std::string file;               // where they are,
  std::uint64_t file_offset = 0;  // and from which byte on
};
Result<DumpedArray> dump_array(const std::string& directory, std::uint32_t rank,
                               const std::string& name,
                               std::optional<std::uint64_t> version = std::nullopt,
                               std::uint32_t part = 0);
// The same of a version that a report lists, which is not looked for again.
Result<DumpedArray> read_array(const std::string& directory, std::uint32_t rank,
                               const std::string& name, std::uint32_t part, std::uint64_t version);

// An array of a version that a report lists, read in pieces, of which each is compared with its
// checksums. It stays open, and a job may go on with the pool meanwhile: read() is Code::busy, and
// what `to` has of no use, if it has stored over that version. One thread at a time.
class ArrayReader {
 public:
  static Result<ArrayReader> open(const std::string& directory, std::uint32_t rank,
                                  const std::string& name, std::uint64_t version);
  // Bytes [first, first + count); Code::invalid_argument if it has not so many.
  Status read(std::uint64_t first, std::uint64_t count, std::byte* to);
  std::uint64_t size_bytes() const { return array_.size_bytes(); }

 private:
  ArrayReader(std::unique_ptr<Device> device, Region region, const Catalogue& catalogue,
              StoredArray array);

  std::unique_ptr<Device> device_;
  Region region_;
  std::uint64_t version_;
  std::uint64_t incarnation_;
  StoredArray array_;
};

// Notes the directory as the pool's place, after it was moved or copied (pool_directory.hpp,
// pool.F5). Nothing else changes.
Status adopt_pool(const std::string& path, Trust trust = Trust::own);

// Removes a pool's own files, and the directory if it is empty then. The job record goes last, so
// that a removal that was cut short can be repeated. Nothing is removed if a rank file is in use
// (Code::busy), or if what has the name of one is no file of this user's.
// `belongs` tells names of other files of the pool, which go with it.
Status remove_pool(const std::string& path, Trust trust = Trust::own,
                   const std::function<bool(const std::string& name)>& belongs = nullptr);

}  // namespace perdure
