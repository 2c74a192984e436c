// SPDX-License-Identifier: BSD-3-Clause
#include "cache/tcp.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.hpp"
#include "base/quantity.hpp"

namespace perdure {
namespace {

constexpr int idle_s = 10;      // silence after which the kernel asks whether the peer lives,
constexpr int ask_every_s = 5;  // how often,
constexpr int asks = 4;         // and how many times
constexpr unsigned vanished_ms = 30000;  // what was sent is acknowledged by then

void set_option(int fd, int level, int name, int value) {
  // An option that a kernel lacks makes the service slower, not wrong.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

void set_connection_options(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, ask_every_s);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, asks);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(vanished_ms));
}

void set_wait(int fd, int name, std::uint32_t wait_ms) {
  const timeval wait{static_cast<time_t>(wait_ms / 1000),
                     static_cast<suseconds_t>(wait_ms % 1000) * 1000};
  (void)::setsockopt(fd, SOL_SOCKET, name, &wait, sizeof wait);
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const ServerAddress& address) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed != 0) {
    return Status(Code::not_found, "the host ", address.host,
                  " has no address: ", ::gai_strerror(failed),
                  "; name an address of this node (PERDURE_CACHE_HOST)");
  }
  return AddressList(found, &::freeaddrinfo);
}

std::uint16_t port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  const in_port_t port = bound.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                             : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port;
  return ntohs(port);
}

// A connect() that a signal interrupted goes on without us.
int finish_connect(int fd, std::uint32_t wait_ms) {
  pollfd wanted{fd, POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, static_cast<int>(wait_ms));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

int connect_socket(int fd, const addrinfo& place, std::uint32_t wait_ms) {
  if (::connect(fd, place.ai_addr, place.ai_addrlen) == 0) return 0;
  if (errno == EINTR) return finish_connect(fd, wait_ms);
  return errno == EINPROGRESS ? ETIMEDOUT : errno;  // so Linux tells that SO_SNDTIMEO passed
}

void advance(iovec*& pieces, std::size_t& count, std::size_t bytes) {
  while (count != 0 && bytes >= pieces->iov_len) {
    bytes -= pieces->iov_len;
    pieces->iov_len = 0;
    ++pieces;
    --count;
  }
  if (count == 0) return;
  pieces->iov_base = static_cast<char*>(pieces->iov_base) + bytes;
  pieces->iov_len -= bytes;
}

Status closed() {
  return {Code::io_error, "the connection was closed"};
}

bool is_every_interface(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

}  // namespace

std::string text_of(const ServerAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

Result<ServerAddress> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  ServerAddress address;
  if (colon != std::string_view::npos && colon != 0 && text.size() < address_text_bytes) {
    address.host = text.substr(0, colon);
    address.port = number_in<std::uint16_t>(text.substr(colon + 1)).value_or(0);
    if (address.port != 0) return address;
  }
  return Status(Code::invalid_argument, "\"", text, "\" is no address of the form host:port");
}

std::string own_host() {
  std::string host = loopback_host;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return host;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const bool usable = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
                        (each->ifa_flags & IFF_LOOPBACK) == 0 && (each->ifa_flags & IFF_UP) != 0 &&
                        (each->ifa_flags & IFF_RUNNING) != 0;
    char text[INET_ADDRSTRLEN];
    if (!usable) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) == nullptr) continue;
    host = text;
    break;
  }
  ::freeifaddrs(all);
  return host;
}

Result<FileHandle> listen_at(const std::string& host, ServerAddress& address) {
  address = {host, 0};
  PERDURE_TRY_ASSIGN(auto places, resolve(address));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = places.get(); at != nullptr; at = at->ai_next) {
    if (is_every_interface(at->ai_addr)) {
      return Status(Code::invalid_argument, "PERDURE_CACHE_HOST=", host,
                    " stands for every interface of this node; name the address of the one that "
                    "the job's other nodes use");
    }
    FileHandle handle(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (handle.fd() >= 0 && ::bind(handle.fd(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(handle.fd(), SOMAXCONN) == 0) {
      address.port = port_of(handle.fd());
      return handle;
    }
    error = errno;
  }
  return errno_status("listen at " + host + " for other nodes (choose with PERDURE_CACHE_HOST)",
                      error);
}

Result<FileHandle> accept_waiting(const FileHandle& listener) {
  while (true) {
    FileHandle handle(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (handle.fd() >= 0) {
      set_connection_options(handle.fd());
      return handle;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return FileHandle();
    // A connection that ended while it waited is its peer's matter.
    if (errno != EINTR && errno != ECONNABORTED) return errno_status("accept", errno);
  }
}

Result<FileHandle> connect_to(const ServerAddress& address, std::uint32_t wait_ms) {
  PERDURE_TRY_ASSIGN(auto places, resolve(address));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = places.get(); at != nullptr; at = at->ai_next) {
    FileHandle handle(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (handle.fd() < 0) {
      error = errno;
      continue;
    }
    set_wait(handle.fd(), SO_SNDTIMEO, wait_ms);
    error = connect_socket(handle.fd(), *at, wait_ms);
    if (error != 0) continue;
    set_wait(handle.fd(), SO_SNDTIMEO, 0);
    set_connection_options(handle.fd());
    return handle;
  }
  return errno_status("connect to " + text_of(address), error);
}

Result<Moved> send_some(const FileHandle& socket, iovec* pieces, std::size_t count, bool wait) {
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  while (true) {
    const ssize_t sent = ::sendmsg(socket.fd(), &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    if (sent >= 0) {
      advance(pieces, count, static_cast<std::size_t>(sent));
      return Moved{static_cast<std::size_t>(sent), false};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Moved{0, true};
    if (errno != EINTR) return errno_status("send", errno);
  }
}

Status send_whole(const FileHandle& socket, iovec* pieces, std::size_t count) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; ++i) left += pieces[i].iov_len;
  while (left != 0) {
    PERDURE_TRY_ASSIGN(auto moved, send_some(socket, pieces, count, true));
    left -= moved.bytes;
  }
  return Status::success();
}

Result<std::size_t> receive_some(const FileHandle& socket, void* to, std::size_t bytes) {
  while (true) {
    const ssize_t got = ::recv(socket.fd(), to, bytes, 0);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return closed();
    if (errno != EINTR) return errno_status("receive", errno);
  }
}

Status receive_whole(const FileHandle& socket, void* to, std::size_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes != 0) {
    PERDURE_TRY_ASSIGN(auto got, receive_some(socket, place, bytes));
    place += got;
    bytes -= got;
  }
  return Status::success();
}

Result<Moved> receive_now(const FileHandle& socket, void* to, std::size_t bytes) {
  while (true) {
    const ssize_t got = ::recv(socket.fd(), to, bytes, MSG_DONTWAIT);
    if (got > 0) return Moved{static_cast<std::size_t>(got), false};
    if (got == 0) return closed();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Moved{0, true};
    if (errno != EINTR) return errno_status("receive", errno);
  }
}

Status receive_by(const FileHandle& socket, void* to, std::size_t bytes,
                  std::uint64_t deadline_ns) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes != 0) {
    PERDURE_TRY_ASSIGN(auto moved, receive_now(socket, place, bytes));
    place += moved.bytes;
    bytes -= moved.bytes;
    if (!moved.again) continue;
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns) return {Code::busy, "no answer within the time for one"};
    pollfd wanted{socket.fd(), POLLIN, 0};
    const std::uint64_t left_ms = (deadline_ns - now_ns) / 1'000'000 + 1;
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<std::uint64_t>(left_ms, 60000)));
    if (ready < 0 && errno != EINTR) return errno_status("poll", errno);
  }
  return Status::success();
}

Result<bool> await_either(const FileHandle& socket) {
  pollfd wanted{socket.fd(), POLLIN | POLLOUT, 0};
  while (::poll(&wanted, 1, -1) < 0) {
    if (errno != EINTR) return errno_status("poll", errno);
  }
  // An error or an end is found by the receive that follows.
  return (wanted.revents & (POLLIN | POLLERR | POLLHUP)) != 0;
}

void shut_down(const FileHandle& socket) {
  (void)::shutdown(socket.fd(), SHUT_RDWR);
}

}  // namespace perdure
