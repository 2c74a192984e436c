// Rebuild: computes lost images from what other members have of their stripes.
//
// Every rank goes through the same transfers in the same order, and takes part in those that are
// its own. So nobody waits in a circle: a message is waited for only by ranks that have done all
// that comes before it.
#include <algorithm>

#include "levels/chunk_writer.hpp"
#include "levels/encode.hpp"
#include "levels/redundancy.hpp"
#include "levels/stripes.hpp"

namespace perdure {
namespace {

// An element of a stripe, and where it is.
struct Element {
  std::uint32_t number = 0;  // below data(): of data; from there on: of parity
  std::uint32_t member = 0;
  std::uint64_t offset = 0;  // in the image, or in the guard
  bool image = true;
  std::uint32_t at = no_rank;
};

class Rebuild {
 public:
  Rebuild(Group& group, const GroupFiles& files, std::span<const HeldFile> own)
      : group_(group),
        files_(files),
        own_(own),
        stripes_(static_cast<std::uint32_t>(files.contents.members.size()), files.contents.losses,
                 files.contents.image_bytes) {}

  // `image`: of the rebuilder itself.
  Status run(std::uint32_t lost, std::uint32_t rebuilder, LevelFile* image) {
    const std::uint64_t bytes = files_.contents.image_bytes[lost];
    std::optional<ChunkWriter> writer;
    if (group_.rank() == rebuilder) writer.emplace(*image, bytes);
    for (std::uint32_t segment = 0; segment < stripes_.data(); ++segment) {
      const std::uint64_t begin = segment * stripes_.segment_bytes();
      if (begin >= bytes) break;
      const std::uint64_t count = std::min(stripes_.segment_bytes(), bytes - begin);
      const auto left = left_of(stripes_.stripe_of_segment(lost, segment), lost);
      std::vector<std::uint32_t> numbers;
      for (const Element& element : left) numbers.push_back(element.number);
      const auto combination =
          Combination::of_left(stripes_.data(), stripes_.losses(), numbers, segment);
      for (std::uint64_t offset = 0; offset < count; offset += level_chunk_bytes) {
        const std::uint64_t chunk = std::min(level_chunk_bytes, count - offset);
        PERDURE_TRY(move_chunk(left, combination, rebuilder, offset, chunk, writer));
      }
    }
    return Status::success();
  }

 private:
  // As many elements of the stripe as there are of data, without those of `lost`.
  std::vector<Element> left_of(std::uint32_t stripe, std::uint32_t lost) const {
    std::vector<Element> left;
    const std::uint32_t losses = stripes_.losses();
    for (std::uint32_t i = 0; i < stripes_.members(); ++i) {
      // Data first: less to compute.
      const std::uint32_t t = (i + losses) % stripes_.members();
      const std::uint32_t member = stripes_.member_of(stripe, t);
      const bool image = t >= losses;
      const std::uint32_t at = image ? files_.image_at[member] : files_.guard_at[member];
      if (member == lost || at == no_rank || left.size() == stripes_.data()) continue;
      const std::uint32_t place = image ? t - losses : t;
      left.push_back({image ? place : stripes_.data() + place, member,
                      place * stripes_.segment_bytes(), image, at});
    }
    PERDURE_ASSERT(left.size() == stripes_.data());
    return left;
  }

  std::span<const std::byte> own_chunk(const Element& element, std::uint64_t offset,
                                       std::uint64_t count, std::vector<std::byte>& padded) const {
    for (const HeldFile& held : own_) {
      const LevelFile* file = element.image ? held.image : held.guard;
      if (held.member != element.member || file == nullptr) continue;
      return padded_bytes(file->payload(), element.offset + offset, count, padded);
    }
    PERDURE_ASSERT(false && "a rank does not have what all know that it has");
    return {};
  }

  Status move_chunk(const std::vector<Element>& left, const Combination& combination,
                    std::uint32_t rebuilder, std::uint64_t offset, std::uint64_t count,
                    std::optional<ChunkWriter>& writer) {
    std::vector<std::vector<std::byte>> kept(left.size());
    std::vector<const std::byte*> inputs;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool here = left[i].at == group_.rank();
      if (here) {
        const auto chunk = own_chunk(left[i], offset, count, kept[i]);
        if (group_.rank() != rebuilder) PERDURE_TRY(group_.send(rebuilder, chunk));
        inputs.push_back(chunk.data());
      } else if (group_.rank() == rebuilder) {
        kept[i].resize(count);
        PERDURE_TRY(group_.receive(left[i].at, kept[i]));
        inputs.push_back(kept[i].data());
      }
    }
    if (group_.rank() != rebuilder) return Status::success();
    std::vector<std::byte> rebuilt(count);
    combination.apply(inputs, rebuilt);
    writer->append(rebuilt);
    return Status::success();
  }

  Group& group_;
  const GroupFiles& files_;
  std::span<const HeldFile> own_;
  Stripes stripes_;
};

}  // namespace

bool GroupFiles::can_rebuild(std::uint32_t member) const {
  const auto members = static_cast<std::uint32_t>(contents.members.size());
  const Stripes stripes(members, contents.losses, contents.image_bytes);
  for (std::uint32_t segment = 0; segment < stripes.data(); ++segment) {
    const std::uint32_t stripe = stripes.stripe_of_segment(member, segment);
    std::uint32_t left = 0;
    for (std::uint32_t t = 0; t < members; ++t) {
      const std::uint32_t holder = stripes.member_of(stripe, t);
      const auto at = t < contents.losses ? guard_at[holder] : image_at[holder];
      left += holder != member && at != no_rank ? 1 : 0;
    }
    if (left < stripes.data()) return false;
  }
  return true;
}

Status rebuild_images(Group& group, const GroupFiles& files, std::span<const std::uint32_t> lost,
                      std::span<const std::uint32_t> rebuilders, std::span<const HeldFile> own,
                      LevelFile* image) {
  Rebuild rebuild(group, files, own);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    PERDURE_TRY(rebuild.run(lost[i], rebuilders[i], image));
  }
  return Status::success();
}

}  // namespace perdure
