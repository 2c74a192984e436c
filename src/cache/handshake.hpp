// SPDX-License-Identifier: BSD-3-Clause
//
// Handshake: how the two ends of a connection show each other that they belong to the job.
//
// Both know a secret, which MPI brought to the processes of the job. It never travels on this
// connection: each end sends the HMAC-SHA-256 under it of what both said, and who it is.
//
// Invariants
//   cache.H1  A proof is of one connection, as it depends on fresh random bytes of either end: it
//       is of no use to whoever has recorded it.
//   cache.H2  It is of one direction and one server, whose address is in it: an impostor can't hand
//       it on to another server of the job, nor send it back.
//   cache.H3  Whoever asks without the secret learns the protocol's version and random bytes.
//
// It doesn't protect what follows: who can read or change the network's packets can read and change
// those too.
//
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "cache/protocol_format.hpp"

namespace perdure {

// Random; the same for all processes of the job that have the file open.
struct ServiceToken {
  std::array<std::uint8_t, 32> bytes{};
};
Result<ServiceToken> new_token();

// With a fresh nonce.
Result<ChallengeFormat> new_challenge();
// `address` is the server's, as text_of() tells it to all.
Result<GreetingFormat> greeting_for(const ServiceToken& token, std::string_view address,
                                    const ChallengeFormat& challenge);
// True only if the client knows the token, speaks this version, and answers this challenge.
bool is_of_job(const ServiceToken& token, std::string_view address,
               const ChallengeFormat& challenge, const GreetingFormat& greeting);
WelcomeFormat welcome_for(const ServiceToken& token, std::string_view address,
                          const ChallengeFormat& challenge, const GreetingFormat& greeting);
bool is_of_job(const ServiceToken& token, std::string_view address,
               const ChallengeFormat& challenge, const GreetingFormat& greeting,
               const WelcomeFormat& welcome);

}  // namespace perdure
