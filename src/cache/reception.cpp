// SPDX-License-Identifier: BSD-3-Clause
#include "cache/reception.hpp"

#include <cstring>

#include "base/clock.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

// What is so short fits into the socket's buffer.
bool send_at_once(const FileHandle& socket, const void* from, std::size_t bytes) {
  iovec piece{const_cast<void*>(from), bytes};
  const auto moved = send_some(socket, &piece, 1, false);
  return moved.ok() && moved.value().bytes == bytes;
}

bool is_older(std::uint64_t since_ns, std::uint32_t ms) {
  return monotonic_ns() - since_ns >= ms * ns_per_ms;
}

}  // namespace

bool Reception::has_room() const {
  return waiting_.size() < waiting_max || is_older(waiting_.front().since_ns, hurry_ms);
}

void Reception::receive(FileHandle socket) {
  if (waiting_.size() >= waiting_max) waiting_.erase(waiting_.begin());
  const auto challenge = new_challenge();
  if (!challenge.ok()) return;
  if (!send_at_once(socket, &challenge.value(), sizeof(ChallengeFormat))) return;
  waiting_.push_back({std::move(socket), monotonic_ns(), challenge.value(), 0, {}});
}

void Reception::add_to(std::vector<pollfd>& wanted) const {
  for (const Waiting& waiting : waiting_) wanted.push_back({waiting.socket.fd(), POLLIN, 0});
}

int Reception::poll_ms() const {
  if (waiting_.empty()) return -1;
  const std::uint32_t limit_ms = has_room() ? timeout_ms : hurry_ms;
  const std::uint64_t age_ms = (monotonic_ns() - waiting_.front().since_ns) / ns_per_ms;
  return age_ms >= limit_ms ? 0 : static_cast<int>(limit_ms - age_ms) + 1;
}

Reception::Outcome Reception::look_at(Waiting& waiting) const {
  const auto moved = receive_now(waiting.socket, waiting.greeting.data() + waiting.received,
                                 waiting.greeting.size() - waiting.received);
  if (!moved.ok() || is_older(waiting.since_ns, timeout_ms)) return Outcome::refused;
  waiting.received += moved.value().bytes;
  if (waiting.received < waiting.greeting.size()) return Outcome::waits;
  GreetingFormat greeting;
  std::memcpy(&greeting, waiting.greeting.data(), sizeof greeting);
  if (!is_of_job(token_, address_, waiting.challenge, greeting)) return Outcome::refused;
  const WelcomeFormat welcome = welcome_for(token_, address_, waiting.challenge, greeting);
  return send_at_once(waiting.socket, &welcome, sizeof welcome) ? Outcome::admitted
                                                                : Outcome::refused;
}

std::vector<FileHandle> Reception::admit() {
  std::vector<FileHandle> admitted;
  std::vector<Waiting> left;
  left.reserve(waiting_.size());
  for (Waiting& waiting : waiting_) {
    const Outcome outcome = look_at(waiting);
    if (outcome == Outcome::admitted) admitted.push_back(std::move(waiting.socket));
    if (outcome == Outcome::waits) left.push_back(std::move(waiting));
  }
  waiting_ = std::move(left);
  return admitted;
}

}  // namespace perdure
