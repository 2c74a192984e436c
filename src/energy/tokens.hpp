// SPDX-License-Identifier: BSD-3-Clause
//
// Writer tokens: how many processes of a node read from or write to a device at a time.
//
// A file that the processes of a job share, and locks on bytes of it (open file descriptions,
// fcntl F_OFD_SETLK), which the kernel frees when their holder dies, however it dies:
//
//   byte 0              guards the giving out of tickets
//   byte 1              shared by all that use the file; a process that gets it alone removes it
//   byte 16 + t         token t
//   byte 2^20 + n       ticket n waits
//
// and two words in its first page: the next ticket, and a futex that changes whenever something
// was given back. A process that waits sleeps on the futex, and looks again every `wait_slice_ms`,
// in case a holder died, which wakes nobody. A file that a group shares is not mapped: any member
// could cut it, and the next look would end the others with SIGBUS. Processes that wait for its
// tokens look again every `shared_slice_ms`.
//
// Invariants
//   energy.T1  A token is taken only by the process that waits with the least ticket: first come,
//       first served.
//   energy.T2  No more than `limit` hold tokens, except for those that went ahead.
//   energy.T3  Nobody waits longer than `timeout_ms`: a process then goes ahead without a token,
//       which is counted. A lost token, a stopped holder or a bug here can delay a checkpoint,
//       never hang it.
//   energy.T4  A failure of the file or its locks is the same: ahead, counted, with the reason. So
//       is a file that somebody else has planted.
//
// The file is $PERDURE_ENERGY_TOKENS/DEVICE if an administrator gave a directory that all jobs of
// a group share (Trust::group in base/files.hpp), else /dev/shm/perdure-tokens-UID-JOB-DEVICE, mode
// 0600, which the last user removes. Of a job that was killed whole it stays, until the user's next
// one or `perdure run` removes it.
//
// A process that is forked off without exec while a token is held shares the descriptor, and so
// the token. Never hold a token in a call of MPI: the others may wait for it (base/io_token.hpp
// asserts that).
//
// Threads: one WriterTokens per thread. Failure: energy.T4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"

namespace perdure::energy {

struct TokenCounters {
  std::uint64_t taken = 0;
  std::uint64_t went_ahead = 0;  // without a token
  std::uint64_t waited_ns = 0;
  std::string reason;  // of the last one that went ahead
};

class WriterTokens {
 public:
  // `device`: a name as storage_of() gives. Nothing is made before the first acquire().
  explicit WriterTokens(const std::string& device);
  explicit WriterTokens(const std::string& path, bool shared);  // for tests
  WriterTokens(const WriterTokens&) = delete;
  WriterTokens& operator=(const WriterTokens&) = delete;
  ~WriterTokens();

  // True: a token is held. False: go ahead without one. release() follows either.
  bool acquire(unsigned limit, std::uint32_t timeout_ms);
  void release();

  const TokenCounters& counters() const { return counters_; }
  const std::string& path() const { return path_; }

 private:
  struct Words;
  Status open();
  Status map();
  void close();
  Result<std::uint64_t> draw_ticket(std::uint64_t deadline_ns);
  Result<std::uint64_t> next_ticket();
  bool is_first(std::uint64_t ticket) const;
  bool take_token(unsigned limit);
  bool wait_for_token(std::uint64_t ticket, unsigned limit, std::uint64_t deadline_ns);
  void sleep(std::uint32_t seen, std::uint64_t ns) const;
  void wake_all() const;
  bool go_ahead(const std::string& reason);

  std::string path_;
  bool shared_;  // an administrator's: never removed
  std::optional<Directory> directory_;
  FileHandle file_;
  Words* words_ = nullptr;  // of a file that is not shared
  int token_ = -1;
  TokenCounters counters_;
};

// The files of this user in /dev/shm that nobody uses any more are removed; their number. What
// others have put there under such names is left alone.
std::size_t remove_unused_tokens();

constexpr std::uint32_t wait_slice_ms = 100;
constexpr std::uint32_t shared_slice_ms = 10;

}  // namespace perdure::energy
