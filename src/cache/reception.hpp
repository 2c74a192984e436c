// SPDX-License-Identifier: BSD-3-Clause
//
// Reception: connections of a server whose other end has not shown yet that it belongs to the job.
// They have no thread and no memory but an entry here, and are never waited for.
//
// Invariants
//   cache.E1  At most `waiting_max` wait here, each for at most `timeout_ms`. More are not
//       accepted; but where all places are taken, one that has waited for `hurry_ms` gives its
//       place up, the one that has waited longest. So strangers that say nothing delay a process of
//       the job, by `hurry_ms` for every `waiting_max` of them, and can't shut it out.
//   cache.E2  Of a connection, no more than a greeting is read here, and nothing is sent but a
//       challenge and, after the right answer, a welcome.
//
// Threads: one. Failure: a connection that says anything else, or ends, is closed unanswered.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/handshake.hpp"
#include "cache/tcp.hpp"

namespace perdure {

class Reception {
 public:
  static constexpr std::size_t waiting_max = 64;
  static constexpr std::uint32_t timeout_ms = 10000;
  static constexpr std::uint32_t hurry_ms = 250;

  // `address` is the one that the server is known by to all.
  Reception(const ServiceToken& token, std::string address)
      : token_(token), address_(std::move(address)) {}

  bool has_room() const;
  // A connection that was accepted while there was room.
  void receive(FileHandle socket);
  // What to poll for, and for how long; -1: for ever.
  void add_to(std::vector<pollfd>& wanted) const;
  int poll_ms() const;
  // Reads what came. Those that belong to the job, for good.
  std::vector<FileHandle> admit();

 private:
  struct Waiting {
    FileHandle socket;
    std::uint64_t since_ns;
    ChallengeFormat challenge;
    std::size_t received;
    std::array<std::byte, sizeof(GreetingFormat)> greeting;
  };
  enum class Outcome : std::uint8_t { waits, admitted, refused };

  Outcome look_at(Waiting& waiting) const;

  ServiceToken token_;
  std::string address_;
  std::vector<Waiting> waiting_;  // in the order of their coming
};

}  // namespace perdure
