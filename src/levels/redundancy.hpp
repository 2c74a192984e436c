// SPDX-License-Identifier: BSD-3-Clause
//
// Redundancy: what the ranks of a failure group keep of each other's images, so that those of some
// ranks can be computed again. How images are cut is in stripes.hpp.
//
// A failure group is g ranks of g different nodes. An image, padded with zeros to the longest of
// the group, is cut into g - m segments. Stripe s takes one segment of each of the g - m members
// that are not among s, s + 1, …, s + m - 1 (mod g); those m members keep the stripe's m blocks of
// parity, its rows, which are the payload of their guard. So a rank sends at most m images' bytes,
// and keeps m / (g - m) of one. What a row is made of, and so which losses can be borne, is said by
// the scheme's coding (coding.hpp). g = 2, m = 1 is a copy of the partner's image.
//
// Source of the layout: RAID-5's rotation, over ranks as in SCR's XOR scheme (Moody et al., SC'10,
// section III-C).
//
// Invariants
//   levels.X1  A guard that is whole holds parity of the images of one version, all of whose ranks
//       it names with the lengths and checksums of their images. So it says of itself what it helps
//       to rebuild: the group that wrote it counts, not that of the run that reads it.
//
// An exchange stores to the guard that it was given and to nothing else.
//
// Threads: an exchange is advanced by one thread at a time. Failure: of the message library, or of
// the guard's medium; the guard then has no contents, or, if the members had not sent each
// other the lengths of their images, what it had before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/guard_format.hpp"
#include "levels/level_file.hpp"

namespace perdure {

struct Scheme {
  std::uint32_t group_size = 2;  // g; 2 to 32
  std::uint32_t rows = 1;        // m; 1 to g - 1
  std::uint32_t coding = 0;      // by number
  bool operator==(const Scheme&) const = default;
  // How many members may be lost, whichever they are.
  std::uint32_t losses() const;
  std::string text() const;  // "partner", "xor:8", "rs:4+2"
};
// By a name of some coding. Code::invalid_argument says what is expected.
Result<Scheme> parse_scheme(const std::string& text);

// The failure groups: members in order, each on another node, every rank in one of them. `nodes` is
// the node of each rank. Ranks that make no full group join another or form a smaller one of more
// than `rows` members. Code::unsupported where that cannot be: too few nodes, or more ranks on
// one node than all others can guard.
Result<std::vector<std::vector<std::uint32_t>>> failure_groups(std::span<const std::uint32_t> nodes,
                                                               const Scheme& scheme);

// One version's guards under way. The image, the guard and the group outlive it. If it ends before
// it is done, what it had started to send may still be read from the image (Transfer), so that must
// stay open as long as the group.
class Exchange {
 public:
  // Local. All members of the group of this rank start the exchanges of the same versions in the
  // same order, one after the other is done. Of the scheme the size is that of `members`. `image`
  // is whole and does not change until then, or the end of the exchange.
  static Result<std::unique_ptr<Exchange>> start(Group& group,
                                                 std::span<const std::uint32_t> members,
                                                 const Scheme& scheme, const LevelFile& image,
                                                 LevelFile& guard);
  virtual ~Exchange() = default;
  // Moves messages and encodes what has arrived, without waiting for anybody; true when the guard
  // is whole. At most `bytes` more are posted by this call, so that it returns soon.
  virtual Result<bool> advance(std::uint64_t bytes) = 0;
};

// What a guard says of the stripes that it has parity of (levels.X1).
struct GuardContents {
  std::vector<std::uint32_t> members;
  std::uint32_t rows = 1;
  std::uint32_t coding = 0;
  std::vector<std::uint64_t> image_bytes;      // of each member
  std::vector<std::uint64_t> image_checksums;  // CRC-64 of each member's table of chunk checksums
  bool operator==(const GuardContents&) const = default;
  Scheme scheme() const { return {static_cast<std::uint32_t>(members.size()), rows, coding}; }
};
// How long the payload of a guard is if all members' images have so many bytes.
std::uint64_t guard_bytes(std::span<const std::uint32_t> members, const Scheme& scheme,
                          std::uint64_t image_bytes);
// Code::damaged if the payload is no guard.
Result<GuardContents> guard_contents(const LevelFile& guard);

// Rebuilding. What every rank of the job knows, the same on all: where the images and guards of one
// version are, as ranks of `group` that have the file at hand; no_rank: it is lost.
inline constexpr std::uint32_t no_rank = UINT32_MAX;
struct GroupFiles {
  GuardContents contents;
  std::vector<std::uint32_t> image_at;  // by member: a rank that can read it, or no_rank
  std::vector<std::uint32_t> guard_at;
  // Its image is there, or of each stripe that it has a segment in enough blocks are. So it is if
  // at most Scheme::losses() members lack their image or their guard.
  bool can_rebuild(std::uint32_t member) const;
};

// Collective over the ranks that hold files of `files` and those that rebuild: for each member in
// `lost`, rank `rebuilders[i]`, another one for each, gets the image's bytes in `image`, which it
// has begun with the right size, and which it completes afterwards. `own` gives this rank's files
// of the version: images and guards of the members that it can read.
//
// All files are verified first, and what is damaged counts as lost. Code::damaged on all ranks, and
// nothing is written, if too little is left; on the rebuilder alone if what it computed is not the
// image that was guarded. It must not complete `image` then.
struct HeldFile {
  std::uint32_t member = 0;
  const LevelFile* image = nullptr;
  const LevelFile* guard = nullptr;
};
Status rebuild_images(Group& group, const GroupFiles& files, std::span<const std::uint32_t> lost,
                      std::span<const std::uint32_t> rebuilders, std::span<const HeldFile> own,
                      LevelFile* image);

}  // namespace perdure
