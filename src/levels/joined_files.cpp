// SPDX-License-Identifier: BSD-3-Clause
#include "levels/joined_files.hpp"

namespace perdure {

Status JoinedFiles::expect_those_of(LevelFile image) {
  held_.emplace(std::move(image));
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(held_->payload()));
  for (const auto& [name, share] : contents.shares) expected_.insert(name);
  return Status::success();
}

std::string JoinedFiles::stop_waiting(std::uint64_t version) {
  if (expected_.empty()) return "";
  const std::string name = *expected_.begin();
  expected_.clear();
  return sentence("version ", version, " was committed without ", name,
                  ", which was committed with this pool before; open it before the first commit "
                  "after a restart");
}

void JoinedFiles::join(Companion& companion) {
  companions_.push_back(&companion);
  expected_.erase(companion.share().name);
}

std::vector<ImageShare> JoinedFiles::shares(std::uint64_t version) const {
  std::vector<ImageShare> shares;
  shares.reserve(companions_.size());
  for (Companion* companion : companions_) {
    shares.push_back(
        {companion->share(), [companion, version](std::uint64_t offset, std::span<std::byte> out) {
           return companion->read_share(version, offset, out);
         }});
  }
  return shares;
}

Result<std::optional<HeldShare>> JoinedFiles::held(const std::string& pool, const std::string& name,
                                                   std::uint64_t version) const {
  if (!held_ || held_->header().id.version != version) {
    return Status(Code::not_found, "the images of version ", version, " of ", pool, ", which have ",
                  name, ", are not there any more");
  }
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(held_->payload()));
  const auto found = contents.shares.find(name);
  if (found == contents.shares.end()) return std::optional<HeldShare>();
  return std::optional<HeldShare>(found->second);
}

}  // namespace perdure
