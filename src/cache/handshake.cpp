// SPDX-License-Identifier: BSD-3-Clause
#include "cache/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/random.hpp"

namespace perdure {
namespace {

static_assert(proof_bytes == crypto_auth_hmacsha256_BYTES);
static_assert(sizeof(ServiceToken) == crypto_auth_hmacsha256_KEYBYTES);

using Proof = std::array<std::uint8_t, proof_bytes>;

// What a proof is of; fixed in size, so that no two are the same bytes.
struct Statement {
  char who[16] = {};
  char address[64] = {};
  std::uint64_t address_bytes = 0;
  std::uint64_t version = protocol_version;
  std::uint8_t server_nonce[nonce_bytes] = {};
  std::uint8_t client_nonce[nonce_bytes] = {};
};
static_assert(sizeof(Statement) == 160);

Proof prove(const ServiceToken& token, std::string_view who, std::string_view address,
            const ChallengeFormat& challenge, const std::uint8_t (&client_nonce)[nonce_bytes]) {
  Statement statement;
  std::copy_n(who.begin(), std::min(who.size(), sizeof statement.who), statement.who);
  std::copy_n(address.begin(), std::min(address.size(), sizeof statement.address),
              statement.address);
  statement.address_bytes = address.size();
  std::copy_n(challenge.nonce, nonce_bytes, statement.server_nonce);
  std::copy_n(client_nonce, nonce_bytes, statement.client_nonce);
  Proof proof{};
  (void)crypto_auth_hmacsha256(proof.data(), reinterpret_cast<const unsigned char*>(&statement),
                               sizeof statement, token.bytes.data());  // it can't fail
  return proof;
}

Proof client_proof(const ServiceToken& token, std::string_view address,
                   const ChallengeFormat& challenge, const GreetingFormat& greeting) {
  return prove(token, "perdure client", address, challenge, greeting.nonce);
}

Proof server_proof(const ServiceToken& token, std::string_view address,
                   const ChallengeFormat& challenge, const GreetingFormat& greeting) {
  return prove(token, "perdure server", address, challenge, greeting.nonce);
}

// Takes as long wherever they differ.
bool is_same(const Proof& proof, const std::uint8_t (&told)[proof_bytes]) {
  return sodium_memcmp(proof.data(), told, proof_bytes) == 0;
}

}  // namespace

Result<ServiceToken> new_token() {
  ServiceToken token;
  PERDURE_TRY(fill_random(token.bytes.data(), token.bytes.size()));
  return token;
}

Result<ChallengeFormat> new_challenge() {
  ChallengeFormat challenge{greeting_magic, protocol_version, 0, {}};
  PERDURE_TRY(fill_random(challenge.nonce, sizeof challenge.nonce));
  return challenge;
}

Result<GreetingFormat> greeting_for(const ServiceToken& token, std::string_view address,
                                    const ChallengeFormat& challenge) {
  GreetingFormat greeting{greeting_magic, protocol_version, 0, {}, {}};
  PERDURE_TRY(fill_random(greeting.nonce, sizeof greeting.nonce));
  std::ranges::copy(client_proof(token, address, challenge, greeting), greeting.proof);
  return greeting;
}

bool is_of_job(const ServiceToken& token, std::string_view address,
               const ChallengeFormat& challenge, const GreetingFormat& greeting) {
  const bool understood = greeting.magic == greeting_magic &&
                          greeting.protocol_version == protocol_version && greeting.reserved == 0;
  return is_same(client_proof(token, address, challenge, greeting), greeting.proof) && understood;
}

WelcomeFormat welcome_for(const ServiceToken& token, std::string_view address,
                          const ChallengeFormat& challenge, const GreetingFormat& greeting) {
  WelcomeFormat welcome{};
  std::ranges::copy(server_proof(token, address, challenge, greeting), welcome.proof);
  return welcome;
}

bool is_of_job(const ServiceToken& token, std::string_view address,
               const ChallengeFormat& challenge, const GreetingFormat& greeting,
               const WelcomeFormat& welcome) {
  return is_same(server_proof(token, address, challenge, greeting), welcome.proof);
}

}  // namespace perdure
