#include "os/source_network.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace ucx::detail {
namespace {

constexpr std::size_t bytes_of_network = 8;
constexpr std::size_t bytes_before_mapped = 12;

std::string written(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  return ::inet_ntop(family, address, text.data(), text.size()) != nullptr ? text.data() : "";
}

}  // namespace

std::string source_network(const ::sockaddr& of) {
  if (of.sa_family == AF_INET) {
    ::sockaddr_in v4 = {};
    std::memcpy(&v4, &of, sizeof v4);
    return written(AF_INET, &v4.sin_addr);
  }
  if (of.sa_family != AF_INET6) return {};
  ::sockaddr_in6 v6 = {};
  std::memcpy(&v6, &of, sizeof v6);
  auto& bytes = v6.sin6_addr.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return written(AF_INET, bytes + bytes_before_mapped);
  std::memset(bytes + bytes_of_network, 0, sizeof bytes - bytes_of_network);
  return written(AF_INET6, bytes) + "/64";
}

}  // namespace ucx::detail
