// Apart, because not everybody has Boost.
#include "socket_client.hpp"

#if __has_include(<boost/asio/ip/tcp.hpp>)

#include <arpa/inet.h>

#include <boost/asio/ip/tcp.hpp>
#include <ios>
#include <stdexcept>
#include <string>

namespace ucx::benchmarks {
namespace {

class asio_connection final : public byte_connection {
 public:
  explicit asio_connection(const ::sockaddr_in& owner) {
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &owner.sin_addr, text, sizeof text);
    stream_.connect(std::string(text), std::to_string(ntohs(owner.sin_port)));
    if (!stream_) throw std::runtime_error("no connection by Asio");
    stream_.socket().set_option(boost::asio::ip::tcp::no_delay(true));
  }

  void read(std::span<std::byte> into) override {
    stream_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (!stream_) throw std::runtime_error("Asio's stream ended");
  }
  void write(std::span<const std::byte> from) override {
    stream_.write(reinterpret_cast<const char*>(from.data()),
                  static_cast<std::streamsize>(from.size()));
    if (!stream_) throw std::runtime_error("Asio's stream ended");
  }
  void push() override { stream_.flush(); }

 private:
  boost::asio::ip::tcp::iostream stream_;
};

}  // namespace

std::unique_ptr<byte_connection> connect_asio(const ::sockaddr_in& owner) {
  return std::make_unique<asio_connection>(owner);
}

}  // namespace ucx::benchmarks

#else

std::unique_ptr<ucx::benchmarks::byte_connection> ucx::benchmarks::connect_asio(
    const ::sockaddr_in&) {
  return nullptr;
}

#endif
