// SPDX-License-Identifier: BSD-3-Clause
#include "base/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/checksum.hpp"
#include "base/io_token.hpp"

namespace perdure {
namespace {

constexpr std::size_t values_max = 64;
constexpr std::size_t first_values = 3;  // base.M4

// Of an exchange; the values follow.
enum Word { failure_word, call_word, call_inverted, subject_word, subject_inverted, head_words };

// Larger for lower ranks, so that the maximum names the lowest rank that failed.
std::uint64_t encode_failure(const Group& group, const Status& local) {
  if (local.ok()) return 0;
  const auto code = static_cast<std::uint64_t>(-static_cast<int>(local.code()));
  return (static_cast<std::uint64_t>(group.ranks() - group.rank()) << 8) | code;
}

Status decode_failure(const Group& group, std::uint64_t failure) {
  const auto rank = group.ranks() - static_cast<std::uint32_t>(failure >> 8);
  const auto code = static_cast<Code>(-static_cast<int>(failure & 0xff));
  return Status(Code::peer_failed, "rank ", rank, " failed: ", code_text(code),
                " (its own message says more)");
}

const char* name_of(const CallUnderWay& call) {
  return call.name == nullptr ? "a call without a name" : call.name;
}

// Never 0, nor all ones, as that is how a rank stays out of a comparison.
std::uint64_t tag_of(const void* bytes, std::size_t size) {
  return (crc64(bytes, size) | 1) & ~(std::uint64_t{1} << 63);
}

std::uint64_t tag_of(const CallUnderWay& call) {
  const char* const name = name_of(call);
  const std::uint64_t words[] = {crc64(name, std::strlen(name)), call.count, call.step, call.file};
  return tag_of(words, sizeof words);
}

std::uint64_t tag_of(const Subject& subject) {
  const std::uint64_t words[] = {static_cast<std::uint64_t>(subject.about), subject.number};
  return tag_of(words, sizeof words);
}

std::string text_of(const Subject& subject) {
  const std::string number = std::to_string(subject.number);
  switch (subject.about) {
    case About::nothing:
      break;
    case About::version:
      return " of version " + number;
    case About::begun:
      return " of version " + number + ", which an earlier call began";
    case About::staging:
      return " to begin version " + number;
    case About::restored:
      return " to version " + number;
    case About::deleted:
      return " of version " + number;
  }
  return "";
}

// The second exchange of a mismatch (base.M2), of two sides: the ranks with the largest tag, and
// those with the smallest. All of a side say the same, except who they are.
struct Side {
  std::uint64_t ranks_above;  // ranks - rank, so that the lowest is named
  std::array<std::uint64_t, 6> name;
  std::uint64_t count;
  std::uint64_t file;
  std::uint64_t about;
  std::uint64_t number;
};
struct Parting {
  Side sides[2];
  std::uint64_t failure;  // to undo
  std::uint64_t count;    // the largest
  std::uint64_t left;     // ranks - rank of one that leaves the group
};
constexpr std::size_t parting_words = sizeof(Parting) / sizeof(std::uint64_t);

Side own_side(const Group& group, const CallUnderWay& call, const Subject& subject) {
  Side side{group.ranks() - group.rank(), {}, call.count, call.file, 0, 0};
  const std::string_view name = name_of(call);
  std::size_t bytes = std::min(name.size(), sizeof side.name - 1);
  while (bytes > 0 && bytes < name.size() && (name[bytes] & 0xc0) == 0x80) --bytes;  // UTF-8
  std::memcpy(side.name.data(), name.data(), bytes);
  side.about = static_cast<std::uint64_t>(subject.about);
  side.number = subject.number;
  return side;
}

std::string text_of(const Group& group, const Side& side) {
  return sentence("rank ", group.ranks() - side.ranks_above, " is in ",
                  reinterpret_cast<const char*>(side.name.data()),
                  (side.file == 0 ? "" : " of file " + std::to_string(side.file)),
                  text_of({static_cast<About>(side.about), side.number}), " (call ", side.count,
                  ")");
}

// base.M5. Of ranks that go on.
Status gone(const Group& group, std::uint64_t left) {
  return Status(Code::wrong_state, "rank ", group.ranks() - left,
                " has closed this in the midst of another rank's call, so here it can only be "
                "closed as well; then open it again on all ranks");
}

// What this rank takes from the second exchange.
Status parted(Group& group, const Status& local, const Status& undone, const Parting& parting) {
  CallUnderWay& call = group.call();
  call.count = parting.count;
  if (parting.left != 0) call.gone = gone(group, parting.left);
  std::string text = "collective calls do not match: " + text_of(group, parting.sides[0]) +
                     ", and " + text_of(group, parting.sides[1]) +
                     "; neither was done. All ranks must make the same collective calls in the "
                     "same order";
  if (parting.left != 0) text += "; as a rank has closed, all must";
  if (!local.ok()) text += "; this rank's own failed: " + local.message();
  call.mismatch = Status(Code::invalid_argument, text);
  if (parting.failure == 0) return call.mismatch;
  const Status why = undone.ok() ? decode_failure(group, parting.failure) : undone;
  return call.mismatch = Status(Code::io_error, text, "; undoing failed: ", why.message());
}

// The tags of an exchange: of this rank, and the largest and the smallest of all.
struct Tags {
  std::uint64_t own;
  std::uint64_t high;
  std::uint64_t low;
  bool differ() const { return high != low; }
};

// base.M2.
Status part(Group& group, const Status& local, const Subject& subject, const Tags& tags,
            const Undo& undo) {
  const Status undone = undo ? undo() : Status::success();
  const Side own = own_side(group, group.call(), subject);
  Parting parting{};
  if (tags.own == tags.high) parting.sides[0] = own;
  if (tags.own == tags.low) parting.sides[1] = own;
  parting.failure = encode_failure(group, undone);
  parting.count = group.call().count;
  parting.left = group.call().is_last ? own.ranks_above : 0;
  std::array<std::uint64_t, sizeof(Parting) / sizeof(std::uint64_t)> words{};
  std::memcpy(words.data(), &parting, sizeof parting);
  PERDURE_TRY(group.all_max(words));
  std::memcpy(&parting, words.data(), sizeof parting);
  return parted(group, local, undone, parting);
}

// One outside of every call is a call by itself.
void begin_exchange(CallUnderWay& call) {
  if (call.name == nullptr) {
    call.step = 0;
    call.mismatch = Status::success();
  }
}

Status compare(Group& group, const Status& local, std::span<const std::uint64_t> all,
               std::uint64_t call, const Subject& subject, const Undo& undo) {
  const Tags calls{call, all[call_word], ~all[call_inverted]};
  if (calls.differ()) return part(group, local, subject, calls, undo);
  const Tags subjects{local.ok() ? tag_of(subject) : 0, all[subject_word], ~all[subject_inverted]};
  const bool compared = all[subject_word] != 0;  // by ranks that did not fail
  if (compared && subjects.differ()) return part(group, local, subject, subjects, undo);
  return Status::success();
}

Status exchange(Group& group, const Status& local, std::span<std::uint64_t> values,
                const Subject& subject, const Undo& undo) {
  PERDURE_ASSERT(values.size() <= values_max);
  PERDURE_ASSERT(!holds_token());  // another rank may wait for it before it comes here
  CallUnderWay& call = group.call();
  begin_exchange(call);
  PERDURE_TRY(call.mismatch);
  PERDURE_TRY(call.gone);
  PERDURE_ASSERT(call.name == nullptr || call.step != 0 || values.size() <= first_values);
  if (call.step++ == 0) ++call.count;
  const std::uint64_t own = group.ranks() == 1 ? 1 : tag_of(call);
  const std::uint64_t about = local.ok() && group.ranks() > 1 ? tag_of(subject) : 0;
  std::array<std::uint64_t, head_words + values_max> all{};
  all[failure_word] = encode_failure(group, local);
  all[call_word] = own;
  all[call_inverted] = ~own;
  all[subject_word] = about;
  all[subject_inverted] = about == 0 ? 0 : ~about;
  std::ranges::copy(values, all.begin() + head_words);
  const std::size_t words = head_words + std::max(values.size(), first_values);
  PERDURE_TRY(group.all_max({all.data(), words}));
  PERDURE_TRY(compare(group, local, all, own, subject, undo));
  std::copy_n(all.begin() + head_words, values.size(), values.begin());
  if (!local.ok()) return local;
  return all[failure_word] == 0 ? Status::success() : decode_failure(group, all[failure_word]);
}

}  // namespace

CollectiveCall::CollectiveCall(Group& group, const char* name, Kind kind)
    : group_(group.call().name == nullptr ? &group : nullptr) {
  if (group_ == nullptr) return;
  CallUnderWay& call = group.call();
  call.name = name;
  call.step = 0;
  call.is_last = kind == Kind::last;
}

CollectiveCall::CollectiveCall(Group& group, const char* name, std::uint64_t file)
    : CollectiveCall(group, name) {
  if (group_ != nullptr) group.call().file = file;
}

CollectiveCall::~CollectiveCall() {
  if (group_ == nullptr) return;
  CallUnderWay& call = group_->call();
  call.name = nullptr;
  call.file = 0;
  call.is_last = false;
  call.mismatch = Status::success();
}

Status agree_max(Group& group, const Status& local, std::span<std::uint64_t> values,
                 const Subject& subject, const Undo& undo) {
  return exchange(group, local, values, subject, undo);
}

Status agree_any(Group& group, const Status& local, std::uint64_t& bits) {
  std::array<std::uint64_t, 64> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = bits >> i & 1;
  const Status agreed = exchange(group, local, all, {}, {});
  for (std::size_t i = 0; i < all.size(); ++i) bits |= all[i] << i;
  return agreed;
}

Status agree(Group& group, const Status& local, const Subject& subject) {
  return exchange(group, local, {}, subject, {});
}

bool is_undone_mismatch(Group& group, const Status& agreed) {
  return agreed.code() == Code::invalid_argument && !group.call().mismatch.ok();
}

}  // namespace perdure
