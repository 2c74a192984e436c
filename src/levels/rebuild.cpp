// SPDX-License-Identifier: BSD-3-Clause
//
// Rebuilding: each piece of a lost image is computed from blocks of its stripe that give it, which
// those that have them send to the rebuilder.
//
// All ranks concerned go through the same list of messages in the same order, and each waits for
// its part of it. So nobody waits in a circle: the first message of the list that has not been
// passed on is the next one of both of its ranks.
#include <algorithm>
#include <optional>

#include "levels/encode.hpp"
#include "levels/guard_contents.hpp"
#include "levels/redundancy.hpp"
#include "levels/stripes.hpp"

namespace perdure {
namespace {

// A block of a stripe, and who has it.
struct Block {
  std::uint32_t number = 0;  // as in coding.hpp
  std::uint32_t member = 0;
  std::uint32_t rank = 0;
};

// Blocks of a stripe that are there, `without` a member's.
std::vector<Block> blocks_of(const GroupFiles& files, const Stripes& stripes, std::uint32_t stripe,
                             std::uint32_t without) {
  std::vector<Block> blocks;
  const auto take = [&](std::uint32_t number, std::uint32_t member, std::uint32_t rank) {
    if (member != without && rank != no_rank) blocks.push_back({number, member, rank});
  };
  for (std::uint32_t column = 0; column < stripes.columns(); ++column) {
    const std::uint32_t member = stripes.column_owner(stripe, column);
    take(column, member, files.image_at[member]);
  }
  for (std::uint32_t row = 0; row < stripes.rows(); ++row) {
    const std::uint32_t member = stripes.row_keeper(stripe, row);
    take(stripes.columns() + row, member, files.guard_at[member]);
  }
  return blocks;
}

std::vector<std::uint32_t> numbers_of(std::span<const Block> blocks) {
  std::vector<std::uint32_t> numbers;
  for (const Block& block : blocks) numbers.push_back(block.number);
  return numbers;
}

// The member's file, if it is among those of this rank.
const LevelFile* held(std::span<const HeldFile> own, std::uint32_t member, bool image) {
  for (const HeldFile& files : own) {
    const LevelFile* const file = image ? files.image : files.guard;
    if (files.member == member && file != nullptr) return file;
  }
  return nullptr;
}

Status check_image(const LevelFile* image, const GuardContents& contents, std::uint32_t member) {
  const std::string whose = "the image of rank " + std::to_string(contents.members[member]);
  if (image == nullptr || !image->whole()) return Status(Code::damaged, whose, " is not there");
  PERDURE_TRY(image->verify());
  if (image->payload().size() == contents.image_bytes[member] &&
      image->table_checksum() == contents.image_checksums[member]) {
    return Status::success();
  }
  return Status(Code::damaged, image->path(), ": it is not the image that was guarded");
}

Status check_guard(const LevelFile* guard, const GuardContents& contents, std::uint32_t member) {
  const std::string whose = "the guard of rank " + std::to_string(contents.members[member]);
  if (guard == nullptr || !guard->whole()) return Status(Code::damaged, whose, " is not there");
  PERDURE_TRY_ASSIGN(const GuardContents found, guard_contents(*guard));
  PERDURE_TRY(guard->verify());
  if (found == contents) return Status::success();
  return Status(Code::damaged, guard->path(), ": it is the guard of other images");
}

// Of which members the image, and the guard, is damaged, as bits.
struct Damage {
  std::uint32_t images = 0;
  std::uint32_t guards = 0;
};
static_assert(group_size_max <= 32);

struct Findings {
  Damage damage;
  Status first;
};

// Verifies what the others count on this rank for.
Findings verify_own(const GroupFiles& files, std::uint32_t rank, std::span<const HeldFile> own) {
  Findings findings;
  const auto note = [&findings](const Status& status, std::uint32_t& bits, std::uint32_t member) {
    if (status.ok()) return;
    bits |= std::uint32_t{1} << member;
    if (findings.first.ok()) findings.first = status;
  };
  for (std::uint32_t member = 0; member < files.contents.members.size(); ++member) {
    if (files.image_at[member] == rank) {
      note(check_image(held(own, member, true), files.contents, member), findings.damage.images,
           member);
    }
    if (files.guard_at[member] == rank) {
      note(check_guard(held(own, member, false), files.contents, member), findings.damage.guards,
           member);
    }
  }
  return findings;
}

// All ranks that have files or rebuild, sorted.
std::vector<std::uint32_t> ranks_of(const GroupFiles& files,
                                    std::span<const std::uint32_t> rebuilders) {
  std::vector<std::uint32_t> ranks(rebuilders.begin(), rebuilders.end());
  ranks.insert(ranks.end(), files.image_at.begin(), files.image_at.end());
  ranks.insert(ranks.end(), files.guard_at.begin(), files.guard_at.end());
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (!ranks.empty() && ranks.back() == no_rank) ranks.pop_back();
  return ranks;
}

// The damage that any of `ranks` found, passed on to all by the first.
Result<Damage> agree_on(Group& group, std::span<const std::uint32_t> ranks, Damage damage) {
  const auto bytes = std::as_writable_bytes(std::span(&damage, 1));
  if (group.rank() != ranks.front()) {
    PERDURE_TRY(group.send(ranks.front(), bytes));
    PERDURE_TRY(group.receive(ranks.front(), bytes));
    return damage;
  }
  for (const std::uint32_t rank : ranks.subspan(1)) {
    Damage other;
    PERDURE_TRY(group.receive(rank, std::as_writable_bytes(std::span(&other, 1))));
    damage.images |= other.images;
    damage.guards |= other.guards;
  }
  for (const std::uint32_t rank : ranks.subspan(1)) PERDURE_TRY(group.send(rank, bytes));
  return damage;
}

void drop_damaged(GroupFiles& files, const Damage& damage) {
  for (std::uint32_t member = 0; member < files.contents.members.size(); ++member) {
    if ((damage.images >> member & 1U) != 0) files.image_at[member] = no_rank;
    if ((damage.guards >> member & 1U) != 0) files.guard_at[member] = no_rank;
  }
}

Status too_little_left(const GroupFiles& files, std::uint32_t lost) {
  std::string missing;
  for (std::size_t member = 0; member < files.contents.members.size(); ++member) {
    const std::string rank = "rank " + std::to_string(files.contents.members[member]);
    if (files.image_at[member] == no_rank) missing += ", the image of " + rank;
    if (files.guard_at[member] == no_rank) missing += ", the guard of " + rank;
  }
  return Status(Code::damaged, "the image of rank ", files.contents.members[lost],
                " can't be rebuilt: of its failure group, which may lose ",
                files.contents.scheme().losses(),
                ", these are lost or damaged: ", missing.substr(2),
                "; bring one of them back, or go back to an older version");
}

// One lost image.
class Rebuilding {
 public:
  Rebuilding(Group& group, const GroupFiles& files, std::uint32_t lost, std::uint32_t rebuilder,
             std::span<const HeldFile> own, LevelFile* image)
      : group_(group),
        files_(files),
        stripes_(stripes_of(files.contents)),
        coding_(*coding_of(files.contents.coding)),
        lost_(lost),
        rebuilder_(rebuilder),
        own_(own),
        image_(rebuilder == group.rank() ? image : nullptr) {}

  Status run() {
    const std::uint64_t length = stripes_.image_bytes(lost_);
    for (std::uint64_t begin = 0; begin < length; begin += sealed_chunk_bytes) {
      const std::uint64_t end = std::min(length, begin + sealed_chunk_bytes);
      chunk_.assign(end - begin, std::byte{0});
      for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t count = std::min(end - at, piece_bytes(at));
        PERDURE_TRY(add_blocks(at, count, chunk_.data() + (at - begin)));
        at += count;
      }
      if (image_ != nullptr) image_->write(begin, chunk_);
    }
    return check();
  }

 private:
  // From that byte of the image to the end of its segment or round.
  std::uint64_t piece_bytes(std::uint64_t at) const {
    const std::uint64_t in_segment = at % stripes_.segment_bytes();
    return std::min(stripes_.segment_bytes() - in_segment,
                    sealed_chunk_bytes - in_segment % sealed_chunk_bytes);
  }

  // Chooses the blocks that column `column` of the lost member is computed from.
  void choose(std::uint32_t column) {
    if (!blocks_.empty() && column == column_) return;
    column_ = column;
    const auto there = blocks_of(files_, stripes_, stripes_.stripe_of_column(lost_, column), lost_);
    const auto terms =
        recover(coding_, stripes_.columns(), stripes_.rows(), column, numbers_of(there));
    PERDURE_ASSERT(terms);  // can_rebuild()
    blocks_.clear();
    for (const Term& term : *terms) {
      blocks_.push_back(*std::ranges::find(there, term.block, &Block::number));
    }
    sum_.reset();
    if (image_ != nullptr && can_encode_here()) sum_.emplace(recovery_sum(*terms));
  }
  bool can_encode_here() const { return can_encode(coding_, stripes_.columns(), stripes_.rows()); }

  Status add_blocks(std::uint64_t at, std::uint64_t count, std::byte* to) {
    const std::uint64_t in_segment = at % stripes_.segment_bytes();
    const auto segment = static_cast<std::uint32_t>(at / stripes_.segment_bytes());
    choose(stripes_.columns() - 1 - segment);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      PERDURE_TRY_ASSIGN(const auto bytes, fetch(blocks_[i], in_segment, count));
      if (sum_ && !bytes.empty()) sum_->add(i, bytes, to);
    }
    return Status::success();
  }

  // What of the block's bytes [at, at + count) is not padding: on the rebuilder. Others send it.
  Result<std::span<const std::byte>> fetch(const Block& block, std::uint64_t at,
                                           std::uint64_t count) {
    const std::span<const std::byte> none;
    const bool image = block.number < stripes_.columns();
    const std::uint64_t offset = image ? stripes_.in_image(block.number, at)
                                       : stripes_.in_guard(block.number - stripes_.columns(), at);
    if (image) count = stripes_.bytes_there(block.member, offset, count);
    if (count == 0) return none;
    if (block.rank == group_.rank()) {
      const LevelFile* const file = held(own_, block.member, image);
      PERDURE_ASSERT(file != nullptr);  // verify_own()
      const auto bytes = file->payload().subspan(offset, count);
      if (image_ != nullptr) return bytes;
      PERDURE_TRY(group_.send(rebuilder_, bytes));
    } else if (image_ != nullptr) {
      received_.resize(count);
      PERDURE_TRY(group_.receive(block.rank, received_));
      return std::span<const std::byte>(received_);
    }
    return none;
  }

  Status check() const {
    if (image_ != nullptr && !can_encode_here()) return encoding_refused();
    if (image_ == nullptr || image_->table_checksum() == files_.contents.image_checksums[lost_]) {
      return Status::success();
    }
    return Status(Code::damaged, "the image of rank ", files_.contents.members[lost_],
                  ", rebuilt in ", image_->path(),
                  ", is not the one that was guarded; go back to an older version");
  }

  Group& group_;
  const GroupFiles& files_;
  Stripes stripes_;
  const Coding& coding_;
  std::uint32_t lost_;
  std::uint32_t rebuilder_;
  std::span<const HeldFile> own_;
  LevelFile* image_;  // on the rebuilder
  std::uint32_t column_ = 0;
  std::vector<Block> blocks_;
  std::optional<Sum> sum_;
  std::vector<std::byte> chunk_;
  std::vector<std::byte> received_;
};

}  // namespace

bool GroupFiles::can_rebuild(std::uint32_t member) const {
  if (image_at[member] != no_rank) return true;
  const Stripes stripes = stripes_of(contents);
  const Coding& coding = *coding_of(contents.coding);
  for (std::uint32_t column = 0; column < stripes.columns(); ++column) {
    const std::uint32_t stripe = stripes.stripe_of_column(member, column);
    const auto there = numbers_of(blocks_of(*this, stripes, stripe, member));
    if (!can_recover(coding, stripes.columns(), stripes.rows(), column, there)) return false;
  }
  return true;
}

Status rebuild_images(Group& group, const GroupFiles& files, std::span<const std::uint32_t> lost,
                      std::span<const std::uint32_t> rebuilders, std::span<const HeldFile> own,
                      LevelFile* image) {
  const auto ranks = ranks_of(files, rebuilders);
  if (!std::ranges::binary_search(ranks, group.rank())) return Status::success();
  const Findings findings = verify_own(files, group.rank(), own);
  PERDURE_TRY_ASSIGN(const Damage damage, agree_on(group, ranks, findings.damage));
  GroupFiles whole = files;
  drop_damaged(whole, damage);
  for (const std::uint32_t member : lost) {
    if (whole.can_rebuild(member)) continue;
    return findings.first.ok() ? too_little_left(whole, member) : findings.first;
  }
  Status first;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const Status status = Rebuilding(group, whole, lost[i], rebuilders[i], own, image).run();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace perdure
