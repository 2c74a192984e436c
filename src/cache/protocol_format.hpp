// SPDX-License-Identifier: BSD-3-Clause
//
// Protocol format: what travels between a process and the server of another node's part.
// Little-endian, fixed-width; both ends are one job and one build, which the greeting checks.
//
//   server: challenge
//   client: greeting
//   server: welcome, or the end of the connection
//   client: any number of (request, the pieces that it names, the payload of a write)
//   server: an answer to each, in order: (answer, its message, the payload of a read)
//
// A request that names too many bytes or no verb is answered, and the connection closed: what
// follows it could not be parsed. Pieces that can't be right are answered like any other request.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace perdure {

static_assert(std::endian::native == std::endian::little, "the protocol is little-endian");

constexpr std::uint64_t greeting_magic = 0x0056525345445250U;  // "PRDESRV\0"
constexpr std::uint32_t protocol_version = 4;
constexpr std::size_t nonce_bytes = 32;
constexpr std::size_t proof_bytes = 32;  // HMAC-SHA-256
constexpr std::size_t payload_bytes_max = std::size_t{1} << 20;
constexpr std::size_t message_bytes_max = 1024;

struct ChallengeFormat {
  std::uint64_t magic;             // greeting_magic
  std::uint32_t protocol_version;  // perdure::protocol_version
  std::uint32_t reserved;
  std::uint8_t nonce[nonce_bytes];  // of the server
};
static_assert(sizeof(ChallengeFormat) == 48);
static_assert(offsetof(ChallengeFormat, nonce) == 16);

struct GreetingFormat {
  std::uint64_t magic;             // greeting_magic
  std::uint32_t protocol_version;  // perdure::protocol_version
  std::uint32_t reserved;
  std::uint8_t nonce[nonce_bytes];  // of the client
  std::uint8_t proof[proof_bytes];  // that it knows the secret (handshake.hpp)
};
static_assert(sizeof(GreetingFormat) == 80);
static_assert(offsetof(GreetingFormat, proof) == 48);

struct WelcomeFormat {
  std::uint8_t proof[proof_bytes];  // that the server knows it too
};
static_assert(sizeof(WelcomeFormat) == 32);

enum class Verb : std::uint32_t {
  read = 1,               // bytes from offset on; the payload has them
  write = 2,              // option: Acknowledge; the payload follows the request
  size = 3,               // values[0]
  grow_size = 4,          // to `value`
  set_size = 5,           // to `value`
  write_back = 6,         // value: the turn, option: whether to sync; values: bytes, writes
  persist = 7,            //
  take_pointer = 8,       // values[0]: its slot, or all ones: none is free
  give_pointer = 9,       // option: the slot, here and below
  add_to_pointer = 10,    // value: what to add; values[0]: what it was
  store_pointer = 11,     // value
  load_pointer = 12,      // values[0]
  try_lock = 13,          // value: the owner; values[0]: whether it was free
  unlock = 14,            // value: the owner
  set_base_version = 15,  // value: the version, offset: the file's end then; values[0]: noted
  read_pieces = 16,       // value: how many PiecesFormat follow; the payload has all their bytes
  write_pieces = 17,      // the same; option: Acknowledge; the payload follows them
};

struct RequestFormat {
  std::uint32_t verb;    // Verb
  std::uint32_t option;  // as the verb says
  std::uint64_t offset;  // in the cached file
  std::uint64_t bytes;   // of a read or write, with its pieces at most payload_bytes_max
  std::uint64_t value;   // as the verb says
};
static_assert(sizeof(RequestFormat) == 32);
static_assert(offsetof(RequestFormat, offset) == 8);
static_assert(offsetof(RequestFormat, value) == 24);

// Pieces of the cached file that have one length and one distance.
struct PiecesFormat {
  std::uint64_t offset;  // of the first one, in the cached file
  std::uint64_t stride;  // from the begin of each to that of the next; not less than `bytes`
  std::uint32_t bytes;   // of each; not 0
  std::uint32_t count;   // not 0
};
static_assert(sizeof(PiecesFormat) == 24);
static_assert(offsetof(PiecesFormat, stride) == 8);
static_assert(offsetof(PiecesFormat, count) == 20);

struct AnswerFormat {
  std::int32_t code;            // Code
  std::uint32_t message_bytes;  // that follow, at most message_bytes_max; 0 if the code is ok
  std::uint64_t payload_bytes;  // that follow those: what was read
  std::uint64_t values[2];      // as the verb says
};
static_assert(sizeof(AnswerFormat) == 32);
static_assert(offsetof(AnswerFormat, payload_bytes) == 8);
static_assert(offsetof(AnswerFormat, values) == 16);

}  // namespace perdure
