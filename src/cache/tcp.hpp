// SPDX-License-Identifier: BSD-3-Clause
//
// TCP: the few calls that the service of parts needs, each done whole.
//
// No call raises SIGPIPE or returns early for EINTR. A peer whose node vanished without a word is
// noticed after about half a minute (keep-alive and user timeout), so nothing waits for ever.
//
// Threads: any; one reader and one writer for a socket at a time. Failure: a Status in the
// system's words; the caller says which node it was and what to do.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_handle.hpp"
#include "base/status.hpp"

namespace perdure {

// Where a server listens: a name or a number, and a port.
struct ServerAddress {
  std::string host;
  std::uint16_t port = 0;
};

// "host:port", of fewer than 64 bytes, to be exchanged by MPI; and back.
constexpr std::size_t address_text_bytes = 64;
std::string text_of(const ServerAddress& address);
Result<ServerAddress> parse_address(std::string_view text);

// For processes of this node only.
constexpr const char* loopback_host = "127.0.0.1";

// The first IPv4 address of an interface that is up and no loopback, else loopback_host.
std::string own_host();

// A socket that listens at `host`, on a port that the system chooses: address.port. An address that
// stands for all interfaces is refused.
Result<FileHandle> listen_at(const std::string& host, ServerAddress& address);
// The next connection that waits, or fd -1: there is none now.
Result<FileHandle> accept_waiting(const FileHandle& listener);
// At most `wait_ms` for the connection itself.
Result<FileHandle> connect_to(const ServerAddress& address, std::uint32_t wait_ms);

// What one attempt moved: some bytes, none because it would have to wait (`again`), or an end.
struct Moved {
  std::size_t bytes = 0;
  bool again = false;
};
// `pieces` are advanced past what was sent.
Result<Moved> send_some(const FileHandle& socket, iovec* pieces, std::size_t count, bool wait);
Status send_whole(const FileHandle& socket, iovec* pieces, std::size_t count);
// At least one byte, at most `bytes`; waits for it. An orderly end is an error too.
Result<std::size_t> receive_some(const FileHandle& socket, void* to, std::size_t bytes);
Status receive_whole(const FileHandle& socket, void* to, std::size_t bytes);
// What is there now, at most `bytes`. An end is an error.
Result<Moved> receive_now(const FileHandle& socket, void* to, std::size_t bytes);
// As receive_whole(); Code::busy if not all came by then, of a monotonic clock.
Status receive_by(const FileHandle& socket, void* to, std::size_t bytes, std::uint64_t deadline_ns);

// Waits until the socket can be received from or sent to: whether the former.
Result<bool> await_either(const FileHandle& socket);

// Ends both directions: whoever waits in another thread returns.
void shut_down(const FileHandle& socket);

}  // namespace perdure
