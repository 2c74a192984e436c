// SPDX-License-Identifier: BSD-3-Clause
//
// Drain: brings versions from a pool's directory to a directory that survives the node, in the
// background.
//
// One process of each node drains for all ranks of the node, from their images
// (levels/level_file.hpp); manifest.hpp has what is made of them. One process of the job writes the
// manifests as well: it waits for the node files of other nodes, which need no message for that.
//
// The caller never waits, but in stop(), and there for a time that it gives: a writer that is stuck
// in the kernel, or waits for a token, is abandoned. All that the thread uses belongs to it; what
// it still does is what any other writer might do (node_file.hpp). An image is read only
// between start() and finished(), or until a failure is reported, and stays so long
// (own_files.hpp, levels.K2).
//
// Threads: one calls; the drain has a thread of its own while there is work. Failure: kept, and
// reported by state(). A version that could not be drained is not on this level, like one that was
// never due; the next one is tried all the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/io_token.hpp"
#include "base/status.hpp"
#include "levels/level_file.hpp"

namespace perdure {

// Where and how often versions are drained.
struct DrainTarget {
  std::string directory;
  std::uint64_t every = 10;  // versions
  std::uint32_t keep = 2;
  std::shared_ptr<IoToken> token = nullptr;  // held while it is written; null: none is needed
};

struct DrainRequest {
  std::string pool;   // the directory with the images of this node's ranks
  std::string place;  // LEVEL/POOL (manifest.hpp)
  JobRecord job;
  std::vector<std::uint32_t> ranks;  // of this node
  bool writes_manifests = false;     // in one process of the job
  std::uint64_t lease = 0;           // its number (lease.hpp, 4); 0: none is needed
  std::uint32_t keep = 2;            // versions on the level; used by the writer of manifests
  Trust trust = Trust::own;          // of the pool's directory
  std::shared_ptr<IoToken> token;    // held while a node file is written; null: none is needed
  std::chrono::milliseconds image_patience{60'000};      // for the images of other processes
  std::chrono::milliseconds manifest_patience{600'000};  // for the node files of other nodes
};

struct DrainState {
  std::optional<VersionId> finished;   // newest whose node file is durable: its images may go
  std::optional<VersionId> completed;  // newest with a manifest, where this process writes them
  std::uint64_t drained = 0;           // node files that are durable
  std::uint64_t skipped = 0;           // versions that were due while another one was under way
  std::uint64_t failed = 0;            // node files and manifests
  std::uint64_t ended = 0;             // versions whose images are no longer needed, drained or not
  std::uint64_t bytes = 0;             // written
  Status failure;                      // the newest one; success if there was none
};

class NodeDrain {
 public:
  explicit NodeDrain(DrainRequest request);
  // As stop(), with a patience of 5 s.
  ~NodeDrain();
  NodeDrain(const NodeDrain&) = delete;
  NodeDrain& operator=(const NodeDrain&) = delete;

  // Returns at once. False: one is still under way, and this one is skipped.
  bool start(VersionId id);
  DrainState state() const;
  // Waits until all that was started is done, manifests included, at most for `patience`.
  // Code::busy names the versions that are not on this level. `waited`: for it before, for the
  // sentence.
  Status wait(std::chrono::milliseconds patience,
              std::chrono::milliseconds waited = std::chrono::milliseconds(0));
  // As wait(); then ends what is not done. `waited`: for it before, for the sentence.
  Status stop(std::chrono::milliseconds patience,
              std::chrono::milliseconds waited = std::chrono::milliseconds(0));

 private:
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared);
  Status late(std::chrono::milliseconds patience, const std::string& and_so) const;

  std::shared_ptr<Shared> shared_;
};

}  // namespace perdure
