// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: how one version's guards are made.
//
//   1  each member sends the others the length and checksum of its image, so that all know how the
//      images are cut (stripes.hpp) and the guard can be begun
//   2  for each round, column and row, in this order on all members: receives that column of the
//      stripe of which it keeps that row, and sends that column of its own to the keeper of the row
//   3  what has arrived is added to the round's parity, in the order in which it was asked for; a
//      round whose columns were all added is written to the guard. Parity of one column, a
//      partner's, is what has arrived, and is written from where that is
//   4  the contents (levels.X1) follow the last round, and the guard is completed
//
// In each step of 2 every member sends one chunk and receives one, to and from others at the same
// distance, so no member is everybody's next one. At most `messages_in_flight` of either are under
// way. That can't block: of all chunks that have not arrived, those of the earliest step are asked
// for, and sent, by all that wait for nothing earlier.
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "levels/encode.hpp"
#include "levels/guard_contents.hpp"
#include "levels/redundancy.hpp"
#include "levels/stripes.hpp"

namespace perdure {
namespace {

constexpr std::size_t messages_in_flight = 4;

struct Announcement {
  VersionId id;
  std::uint64_t image_bytes = 0;
  std::uint64_t image_checksum = 0;
};
static_assert(sizeof(Announcement) == 32);

// What messages are received into, and the words that are sent.
struct Landing {
  std::vector<Announcement> announcements;  // by member
  std::array<std::vector<std::byte>, messages_in_flight> chunks;
};

// Messages of an exchange that was cut short may still arrive (Transfer), so what they are received
// into stays for good.
void keep_for_good(std::unique_ptr<Landing> landing) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<Landing>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(landing));
}

// A message, or none, which has arrived already.
class Message {
 public:
  Message() = default;
  explicit Message(std::unique_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {}
  bool under_way() const { return transfer_ != nullptr; }
  Status poll() {
    if (!transfer_) return Status::success();
    PERDURE_TRY_ASSIGN(const bool done, transfer_->done());
    if (done) transfer_.reset();
    return Status::success();
  }

 private:
  std::unique_ptr<Transfer> transfer_;
};

Result<Message> message_of(Result<std::unique_ptr<Transfer>> started) {
  PERDURE_TRY(started.status());
  return Message(started.take());
}

// The messages of one direction: steps [done, posted) are under way, each in the place of its
// number mod how many places there are.
struct Flight {
  std::array<Message, messages_in_flight> messages;
  std::uint64_t posted = 0;
  std::uint64_t done = 0;

  Message& at(std::uint64_t step) { return messages[step % messages.size()]; }
  bool has_room(std::uint64_t steps) const {
    return posted < steps && posted - done < messages.size();
  }
  Status poll() {
    for (Message& message : messages) PERDURE_TRY(message.poll());
    return Status::success();
  }
  bool first_is_done() { return done < posted && !at(done).under_way(); }
};

class GroupExchange final : public Exchange {
 public:
  GroupExchange(Group& group, std::span<const std::uint32_t> members, std::uint32_t self,
                const Scheme& scheme, const LevelFile& image, LevelFile& guard)
      : group_(group), self_(self), image_(image), guard_(guard) {
    contents_.members.assign(members.begin(), members.end());
    contents_.rows = scheme.rows;
    contents_.coding = scheme.coding;
    landing_->announcements.resize(members.size());
    landing_->announcements[self] = {image.header().id, image.payload().size(),
                                     image.table_checksum()};
  }
  ~GroupExchange() override {
    bool any = false;
    const auto look = [&any](const auto& messages) {
      for (const Message& message : messages) any = any || message.under_way();
    };
    look(announcing_);
    look(receiving_.messages);
    look(sending_.messages);
    if (any) keep_for_good(std::move(landing_));
  }

  Status announce();
  Result<bool> advance(std::uint64_t bytes) override {
    if (failure_.ok()) failure_ = go_on(bytes);
    if (!failure_.ok()) return failure_;
    return completed_ && sending_.done == steps_;
  }

 private:
  // What a step is about.
  struct Step {
    std::uint64_t round = 0;
    std::uint32_t column = 0;
    std::uint32_t row = 0;
  };
  Step step(std::uint64_t number) const {
    const std::uint64_t in_round = number % steps_per_round();
    return {number / steps_per_round(), static_cast<std::uint32_t>(in_round / stripes_->rows()),
            static_cast<std::uint32_t>(in_round % stripes_->rows())};
  }
  std::uint64_t steps_per_round() const { return stripes_->columns() * stripes_->rows(); }
  unsigned char coefficient(const Step& step) const {
    return sums_[step.row].coefficient(step.column);
  }
  // A column of a round, in the image of its owner, without its padding; nothing if the row has
  // nothing of it.
  struct Chunk {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  Chunk chunk_of(std::uint32_t owner, const Step& step) const {
    const std::uint64_t offset = stripes_->in_image(step.column, step.round * sealed_chunk_bytes);
    const std::uint64_t wanted = coefficient(step) == 0 ? 0 : stripes_->round_bytes(step.round);
    return {offset, stripes_->bytes_there(owner, offset, wanted)};
  }
  std::uint32_t source_of(const Step& step) const {
    return stripes_->column_owner(stripes_->stripe_of_row(self_, step.row), step.column);
  }

  Status go_on(std::uint64_t bytes);
  Result<bool> announced();
  Status begin_guard();
  Status post(std::uint64_t bytes);
  Result<std::uint64_t> post_receive();
  Result<std::uint64_t> post_send();
  void encode();
  Status complete_guard();

  Group& group_;
  std::uint32_t self_;  // which member this rank is
  const LevelFile& image_;
  LevelFile& guard_;
  GuardContents contents_;
  std::unique_ptr<Landing> landing_ = std::make_unique<Landing>();
  std::vector<Message> announcing_;
  std::optional<Stripes> stripes_;  // as soon as all have announced
  std::uint64_t steps_ = 0;
  std::vector<Sum> sums_;          // by row
  std::vector<std::byte> parity_;  // of the round, row after row
  Flight receiving_;
  Flight sending_;
  bool completed_ = false;
  Status failure_;
};

Status GroupExchange::announce() {
  for (std::uint32_t member = 0; member < contents_.members.size(); ++member) {
    if (member == self_) continue;
    const std::uint32_t rank = contents_.members[member];
    auto& words = landing_->announcements;
    PERDURE_TRY_ASSIGN(auto received,
                       message_of(group_.start_receive(
                           rank, std::as_writable_bytes(std::span(&words[member], 1)))));
    announcing_.push_back(std::move(received));
    PERDURE_TRY_ASSIGN(
        auto sent, message_of(group_.start_send(rank, std::as_bytes(std::span(&words[self_], 1)))));
    announcing_.push_back(std::move(sent));
  }
  return Status::success();
}

Status GroupExchange::go_on(std::uint64_t bytes) {
  if (!stripes_) {
    PERDURE_TRY_ASSIGN(const bool all, announced());
    if (!all) return Status::success();
    PERDURE_TRY(begin_guard());
  }
  PERDURE_TRY(receiving_.poll());
  PERDURE_TRY(sending_.poll());
  while (receiving_.first_is_done()) encode();
  while (sending_.first_is_done()) ++sending_.done;
  if (receiving_.done == steps_ && !completed_) PERDURE_TRY(complete_guard());
  return post(bytes);
}

Result<bool> GroupExchange::announced() {
  bool all = true;
  for (Message& message : announcing_) {
    PERDURE_TRY(message.poll());
    all = all && !message.under_way();
  }
  return all;
}

Status GroupExchange::begin_guard() {
  const Announcement& own = landing_->announcements[self_];
  for (std::size_t member = 0; member < contents_.members.size(); ++member) {
    const Announcement& other = landing_->announcements[member];
    if (other.id != own.id) {
      return Status(Code::wrong_state, "rank ", contents_.members[member], " guards version ",
                    other.id.version, " while rank ", contents_.members[self_], " guards version ",
                    own.id.version, "; all ranks must guard the same versions");
    }
    contents_.image_bytes.push_back(other.image_bytes);
    contents_.image_checksums.push_back(other.image_checksum);
  }
  const std::vector<std::byte> tail = contents_bytes(contents_);
  stripes_.emplace(stripes_of(contents_));
  steps_ = stripes_->rounds() * steps_per_round();
  const Coding& coding = *coding_of(contents_.coding);
  for (std::uint32_t row = 0; row < stripes_->rows(); ++row) {
    sums_.push_back(parity_sum(coding, stripes_->columns(), stripes_->rows(), row));
  }
  const std::uint64_t round_bytes = stripes_->rounds() == 0 ? 0 : stripes_->round_bytes(0);
  parity_.reserve(stripes_->rows() * round_bytes + tail.size());
  for (auto& chunk : landing_->chunks) chunk.resize(round_bytes);
  return guard_.begin(stripes_->parity_bytes() + tail.size());
}

// Receives first: what is sent needs one that was posted.
Status GroupExchange::post(std::uint64_t bytes) {
  while (bytes > 0 && (receiving_.has_room(steps_) || sending_.has_room(steps_))) {
    std::uint64_t posted = 0;
    if (receiving_.has_room(steps_)) {
      PERDURE_TRY_ASSIGN(posted, post_receive());
    } else {
      PERDURE_TRY_ASSIGN(posted, post_send());
    }
    bytes -= std::min(bytes, posted);
  }
  return Status::success();
}

Result<std::uint64_t> GroupExchange::post_receive() {
  const std::uint64_t number = receiving_.posted++;
  const std::uint32_t source = source_of(step(number));
  const Chunk chunk = chunk_of(source, step(number));
  if (chunk.bytes == 0) return chunk.bytes;
  const auto to = std::span(landing_->chunks[number % messages_in_flight]).first(chunk.bytes);
  PERDURE_TRY_ASSIGN(receiving_.at(number),
                     message_of(group_.start_receive(contents_.members[source], to)));
  return chunk.bytes;
}

Result<std::uint64_t> GroupExchange::post_send() {
  const std::uint64_t number = sending_.posted++;
  const Step now = step(number);
  const Chunk chunk = chunk_of(self_, now);
  if (chunk.bytes == 0) return chunk.bytes;
  const std::uint32_t keeper =
      stripes_->row_keeper(stripes_->stripe_of_column(self_, now.column), now.row);
  PERDURE_TRY_ASSIGN(
      sending_.at(number),
      message_of(group_.start_send(contents_.members[keeper],
                                   image_.payload().subspan(chunk.offset, chunk.bytes))));
  return chunk.bytes;
}

// The first message that was received and not encoded.
void GroupExchange::encode() {
  const std::uint64_t number = receiving_.done++;
  const Step now = step(number);
  const std::uint64_t round_bytes = stripes_->round_bytes(now.round);
  const std::uint64_t arrived = chunk_of(source_of(now), now).bytes;
  const auto chunk = std::span(landing_->chunks[number % messages_in_flight]).first(round_bytes);
  const bool last = number + 1 == steps_;  // the contents follow it (complete_guard())
  if (steps_per_round() == 1 && coefficient(now) == 1 && !last) {
    std::fill(chunk.begin() + static_cast<std::ptrdiff_t>(arrived), chunk.end(), std::byte{0});
    guard_.write(now.round * round_bytes, chunk);
    return;
  }
  if (number % steps_per_round() == 0) parity_.assign(stripes_->rows() * round_bytes, {});
  if (arrived != 0) {
    sums_[now.row].add(now.column, chunk.first(arrived), parity_.data() + now.row * round_bytes);
  }
  const bool last_of_round = (number + 1) % steps_per_round() == 0;
  if (last_of_round && !last) guard_.write(now.round * parity_.size(), parity_);
}

Status GroupExchange::complete_guard() {
  const std::uint64_t offset = stripes_->parity_bytes() - parity_.size();
  const std::vector<std::byte> tail = contents_bytes(contents_);
  parity_.insert(parity_.end(), tail.begin(), tail.end());
  guard_.write(offset, parity_);
  SealedHeader header = image_.header();
  header.kind = SealedKind::guard;
  header.payload_bytes = stripes_->parity_bytes() + tail.size();
  PERDURE_TRY(guard_.complete(header));
  completed_ = true;
  return Status::success();
}

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::start(Group& group,
                                                  std::span<const std::uint32_t> members,
                                                  const Scheme& scheme, const LevelFile& image,
                                                  LevelFile& guard) {
  const auto self = std::ranges::find(members, group.rank());
  if (self == members.end() || members.size() > group_size_max || scheme.rows == 0 ||
      scheme.rows >= members.size()) {
    return Status(Code::invalid_argument, "a failure group of ", members.size(), " ranks with ",
                  scheme.rows, " rows of parity can't be that of rank ", group.rank());
  }
  if (!image.whole()) {
    return Status(Code::wrong_state, image.path(), " holds no version that could be guarded");
  }
  auto exchange = std::make_unique<GroupExchange>(
      group, members, static_cast<std::uint32_t>(self - members.begin()), scheme, image, guard);
  PERDURE_TRY(exchange->announce());
  return std::unique_ptr<Exchange>(std::move(exchange));
}

}  // namespace perdure
