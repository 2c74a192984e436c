// Exchange: every member sends the segments of its image to those who keep parity of them, and
// computes the parity that it keeps itself, chunk by chunk.
//
// Between two members the messages are: length and checksum of the image; then, for each block of
// the receiver's guard whose stripe has a segment of the sender, in order, its chunks in order.
// Both count alike, so no message needs a label.
//
// At most window_steps chunks are under way to this rank, and as many from it to each other one.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "levels/chunk_writer.hpp"
#include "levels/encode.hpp"
#include "levels/guard_format.hpp"
#include "levels/redundancy.hpp"
#include "levels/stripes.hpp"

namespace perdure {
namespace {

constexpr std::size_t window_steps = 4;

struct ImageFacts {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

class StripedExchange final : public Exchange {
 public:
  StripedExchange(Group& group, std::span<const std::uint32_t> members, std::uint32_t losses,
                  const LevelFile& image, LevelFile& guard)
      : group_(group),
        members_(members.begin(), members.end()),
        losses_(losses),
        image_(image),
        guard_(guard),
        facts_(members.size()),
        outgoing_(members.size()) {
    const auto own = std::find(members_.begin(), members_.end(), group.rank());
    own_ = static_cast<std::uint32_t>(own - members_.begin());
  }

  Status start_facts() {
    facts_[own_] = {image_.payload().size(), image_.table_checksum()};
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      if (i == own_) continue;
      PERDURE_TRY(keep(
          group_.start_receive(members_[i], std::as_writable_bytes(std::span(&facts_[i], 1)))));
      PERDURE_TRY(keep(group_.start_send(members_[i], std::as_bytes(std::span(&facts_[own_], 1)))));
    }
    return Status::success();
  }

  Result<bool> advance(std::uint64_t bytes) override {
    if (!stripes_) {
      PERDURE_TRY_ASSIGN(const bool known, all_done(exchanged_));
      if (!known) return false;
      PERDURE_TRY(begin());
    }
    for (bool moved = true; moved;) {
      moved = false;
      PERDURE_TRY(post(bytes));
      PERDURE_TRY_ASSIGN(const bool encoded, encode());
      PERDURE_TRY_ASSIGN(const bool sent, retire_sends());
      moved = (encoded || sent) && bytes > 0;
    }
    const bool idle = std::all_of(outgoing_.begin(), outgoing_.end(), [this](const auto& out) {
      return out.under_way.empty() && out.cursor.block == losses_;
    });
    if (!idle || !steps_.empty() || next_.block < losses_) return false;
    PERDURE_TRY(finish());
    return true;
  }
  std::uint64_t moved_bytes() const override { return moved_bytes_; }

 private:
  // A chunk of a block of somebody's guard.
  struct Cursor {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  struct Sending {
    std::vector<std::byte> padded;
    std::unique_ptr<Transfer> transfer;
    std::uint64_t bytes = 0;
  };
  struct Outgoing {
    Cursor cursor;
    std::deque<Sending> under_way;
  };
  struct Step {
    std::uint32_t block = 0;
    std::uint64_t bytes = 0;
    std::vector<std::vector<std::byte>> inputs;
    std::vector<std::unique_ptr<Transfer>> transfers;
  };

  Status keep(Result<std::unique_ptr<Transfer>> transfer) {
    PERDURE_TRY(transfer.status());
    exchanged_.push_back(transfer.take());
    return Status::success();
  }
  static Result<bool> all_done(std::vector<std::unique_ptr<Transfer>>& transfers) {
    bool all = true;
    for (auto& transfer : transfers) {
      PERDURE_TRY_ASSIGN(const bool done, transfer->done());
      all = all && done;
    }
    return all;
  }

  Status begin() {
    std::vector<std::uint64_t> lengths;
    for (const ImageFacts& facts : facts_) lengths.push_back(facts.bytes);
    stripes_.emplace(static_cast<std::uint32_t>(members_.size()), losses_, lengths);
    const std::uint64_t payload = losses_ * stripes_->segment_bytes() + sizeof(GuardHeadFormat);
    PERDURE_TRY(guard_.begin(payload));
    writer_.emplace(guard_, payload);
    for (std::uint32_t row = 0; row < losses_; ++row) {
      rows_.push_back(Combination::of_parity(stripes_->data(), losses_, row));
    }
    if (stripes_->segment_bytes() == 0) next_.block = losses_;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      outgoing_[i].cursor = skip({i == own_ || next_.block == losses_ ? losses_ : 0, 0}, i);
    }
    return Status::success();
  }

  std::uint64_t chunk_at(const Cursor& cursor) const {
    return std::min(level_chunk_bytes, stripes_->segment_bytes() - cursor.offset);
  }
  Cursor after(Cursor cursor) const {
    cursor.offset += chunk_at(cursor);
    if (cursor.offset < stripes_->segment_bytes()) return cursor;
    return {cursor.block + 1, 0};
  }
  // The first block from the cursor's on whose stripe has a segment of this rank.
  Cursor skip(Cursor cursor, std::uint32_t receiver) const {
    while (cursor.block < losses_ && segment_for(receiver, cursor.block) < 0) {
      cursor = {cursor.block + 1, 0};
    }
    return cursor;
  }
  // This rank's segment in a block of the receiver's guard; negative: there is none.
  std::int64_t segment_for(std::uint32_t receiver, std::uint32_t block) const {
    const std::uint32_t stripe = stripes_->stripe_of_block(receiver, block);
    return std::int64_t{stripes_->element_of(stripe, own_)} - losses_;
  }

  // Posts receives, and sends, of at most about `bytes`, which are taken off.
  Status post(std::uint64_t& bytes) {
    while (next_.block < losses_ && steps_.size() < window_steps && bytes > 0) {
      const std::uint64_t count = chunk_at(next_);
      Step step{next_.block, count, {}, {}};
      const std::uint32_t stripe = stripes_->stripe_of_block(own_, next_.block);
      for (std::uint32_t i = 0; i < stripes_->data(); ++i) {
        step.inputs.emplace_back(count);
        const std::uint32_t from = members_[stripes_->member_of(stripe, losses_ + i)];
        PERDURE_TRY_ASSIGN(auto transfer, group_.start_receive(from, step.inputs.back()));
        step.transfers.push_back(std::move(transfer));
      }
      steps_.push_back(std::move(step));
      bytes -= std::min(bytes, count * stripes_->data());
      next_ = after(next_);
    }
    for (std::uint32_t i = 0; i < members_.size(); ++i) PERDURE_TRY(post_sends(i, bytes));
    return Status::success();
  }
  Status post_sends(std::uint32_t receiver, std::uint64_t& bytes) {
    Outgoing& out = outgoing_[receiver];
    while (out.cursor.block < losses_ && out.under_way.size() < window_steps && bytes > 0) {
      const auto segment = static_cast<std::uint64_t>(segment_for(receiver, out.cursor.block));
      const std::uint64_t count = chunk_at(out.cursor);
      Sending& sending = out.under_way.emplace_back();
      sending.bytes = count;
      const auto chunk =
          padded_bytes(image_.payload(), segment * stripes_->segment_bytes() + out.cursor.offset,
                       count, sending.padded);
      PERDURE_TRY_ASSIGN(sending.transfer, group_.start_send(members_[receiver], chunk));
      bytes -= std::min(bytes, count);
      out.cursor = skip(after(out.cursor), receiver);
    }
    return Status::success();
  }

  // Whether a chunk of parity came about.
  Result<bool> encode() {
    bool any = false;
    while (!steps_.empty()) {
      Step& step = steps_.front();
      PERDURE_TRY_ASSIGN(const bool arrived, all_done(step.transfers));
      if (!arrived) break;
      std::vector<const std::byte*> inputs;
      for (const auto& input : step.inputs) inputs.push_back(input.data());
      parity_.resize(step.bytes);
      rows_[step.block].apply(inputs, parity_);
      writer_->append(parity_);
      moved_bytes_ += step.bytes * inputs.size();
      steps_.pop_front();
      any = true;
    }
    return any;
  }
  Result<bool> retire_sends() {
    bool any = false;
    for (Outgoing& out : outgoing_) {
      while (!out.under_way.empty()) {
        PERDURE_TRY_ASSIGN(const bool sent, out.under_way.front().transfer->done());
        if (!sent) break;
        moved_bytes_ += out.under_way.front().bytes;
        out.under_way.pop_front();
        any = true;
      }
    }
    return any;
  }

  Status finish() {
    GuardHeadFormat head{};
    head.magic = guard_magic;
    head.members = static_cast<std::uint32_t>(members_.size());
    head.losses = losses_;
    head.segment_bytes = stripes_->segment_bytes();
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      head.ranks[i] = members_[i];
      head.image_bytes[i] = facts_[i].bytes;
      head.image_checksums[i] = facts_[i].checksum;
    }
    writer_->append(std::as_bytes(std::span(&head, 1)));
    LevelFileHeader header = *image_.header();
    header.kind = LevelFileKind::guard;
    header.payload_bytes = writer_->offset();
    return guard_.complete(header);
  }

  Group& group_;
  std::vector<std::uint32_t> members_;
  std::uint32_t losses_;
  std::uint32_t own_ = 0;  // among the members
  const LevelFile& image_;
  LevelFile& guard_;
  std::vector<ImageFacts> facts_;  // by member
  std::vector<std::unique_ptr<Transfer>> exchanged_;
  std::optional<Stripes> stripes_;  // when all facts are known
  std::optional<ChunkWriter> writer_;
  std::vector<Combination> rows_;
  Cursor next_;                     // to be received
  std::deque<Step> steps_;          // being received
  std::vector<Outgoing> outgoing_;  // by member
  std::vector<std::byte> parity_;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::start(Group& group,
                                                  std::span<const std::uint32_t> members,
                                                  std::uint32_t losses, const LevelFile& image,
                                                  LevelFile& guard) {
  PERDURE_TRY(guard.clear());
  auto exchange = std::make_unique<StripedExchange>(group, members, losses, image, guard);
  PERDURE_TRY(exchange->start_facts());
  return std::unique_ptr<Exchange>(std::move(exchange));
}

Result<GuardContents> guard_contents(const LevelFile& guard) {
  const auto payload = guard.payload();
  const auto damaged = [&] {
    return Status(Code::damaged, guard.path() + " is no guard, or is damaged");
  };
  if (payload.size() < sizeof(GuardHeadFormat)) return damaged();
  const std::uint64_t parity = payload.size() - sizeof(GuardHeadFormat);
  PERDURE_TRY(guard.verify(parity, sizeof(GuardHeadFormat)));
  GuardHeadFormat head;
  std::memcpy(&head, payload.data() + parity, sizeof head);
  const bool sane = head.magic == guard_magic && head.members >= 2 &&
                    head.members <= group_size_max && head.losses >= 1 &&
                    head.losses < head.members && parity % head.losses == 0 &&
                    parity / head.losses == head.segment_bytes;
  if (!sane) return damaged();
  GuardContents contents;
  contents.losses = head.losses;
  contents.members.assign(head.ranks, head.ranks + head.members);
  contents.image_bytes.assign(head.image_bytes, head.image_bytes + head.members);
  contents.image_checksums.assign(head.image_checksums, head.image_checksums + head.members);
  const std::uint64_t bytes_max = head.segment_bytes * (head.members - head.losses);
  for (std::uint32_t i = 0; i < head.members; ++i) {
    const bool twice = std::count(head.ranks, head.ranks + i, head.ranks[i]) != 0;
    if (twice || head.image_bytes[i] > bytes_max) return damaged();
  }
  if (Stripes(head.members, head.losses, contents.image_bytes).segment_bytes() !=
      head.segment_bytes) {
    return damaged();
  }
  return contents;
}

}  // namespace perdure
