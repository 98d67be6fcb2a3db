// A process that exposes memory by UCX's own calls, and knows nothing of this library.
//   ucxio-plain-peer TRANSPORTS address|HOST MEMORY SIZE
// TRANSPORTS as for UCX_TLS, or "all". MEMORY: "allocated" by UCX, or its "own". Prints "ready
// ADDRESS KEY BASE": numbers and bytes in hexadecimal digits; ADDRESS is the worker's, or, with a
// HOST, the port of a listener there. Then it drives UCX until its input ends. A line "sum" is
// answered with the sum of the memory's bytes, a line "fill N" fills the memory with the byte N, a
// line "unmap" takes the memory back.
//   ucxio-plain-peer TRANSPORTS read|write ADDRESS KEY BASE SIZE
// uses a worker's memory by UCX's calls instead: as ucxio-plain-user does, which has this library.
// It prints "moving MICROSECONDS SUM" with the sum of the bytes that it has here, and "ended
// STATUS" with a number of UCX's. Over TCP it takes segments as long as this library's: UCX ends a
// process whose are shorter.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK)
    throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

std::string hex(const void* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

std::vector<unsigned char> from_hex(const std::string& text) {
  std::vector<unsigned char> bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<unsigned char>(std::stoul(text.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

bool is_told_something() {
  ::pollfd input = {0, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0;
}

class peer {
 public:
  explicit peer(const std::string& transports) : over_tcp_(transports.starts_with("tcp")) {
    if (transports != "all") ::setenv("UCX_TLS", transports.c_str(), 1);
    if (over_tcp_) ::setenv("UCX_NET_DEVICES", "lo", 1);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA;
    check(ucp_init(&params, nullptr, &context_), "ucp_init");
    ucp_worker_params_t mode = {};
    check(ucp_worker_create(context_, &mode, &worker_), "ucp_worker_create");
  }
  /// Exposes so much memory.
  void own(const std::string& memory, std::size_t size) {
    ucp_mem_map_params_t wanted = {};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    wanted.length = size;
    wanted.flags = UCP_MEM_MAP_ALLOCATE;
    if (memory == "own") {
      own_.resize(size);
      wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS;
      wanted.address = own_.data();
    }
    check(ucp_mem_map(context_, &wanted, &memory_), "ucp_mem_map");
    ucp_mem_attr_t told = {};
    told.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memory_, &told), "ucp_mem_query");
    base_ = static_cast<unsigned char*>(told.address);
    size_ = size;
    for (std::size_t i = 0; i < size; ++i) base_[i] = static_cast<unsigned char>('a' + i % 26);
  }

  std::string listen(const std::string& host) {
    ::sockaddr_in where = {};
    where.sin_family = AF_INET;
    ::inet_pton(AF_INET, host.c_str(), &where.sin_addr);
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<const ::sockaddr*>(&where);
    params.sockaddr.addrlen = sizeof where;
    params.conn_handler = {&peer::came, this};
    check(ucp_listener_create(worker_, &params, &listener_), "ucp_listener_create");
    ucp_listener_attr_t told = {};
    told.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    check(ucp_listener_query(listener_, &told), "ucp_listener_query");
    const auto& bound = reinterpret_cast<const ::sockaddr_in&>(told.sockaddr);
    return std::to_string(ntohs(bound.sin_port));
  }

  std::string address() {
    ucp_address_t* bytes = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &bytes, &length), "ucp_worker_get_address");
    std::string text = hex(bytes, length);
    ucp_worker_release_address(worker_, bytes);
    return text;
  }

  std::string key() {
    void* bytes = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(context_, memory_, &bytes, &length), "ucp_rkey_pack");
    std::string text = hex(bytes, length);
    ucp_rkey_buffer_release(bytes);
    return text;
  }

  std::string base() const {
    std::ostringstream text;
    text << std::hex << reinterpret_cast<std::uintptr_t>(base_);
    return text.str();
  }

  void drive() {
    while (true) {
      for (int i = 0; i < 100; ++i) ucp_worker_progress(worker_);
      if (!is_told_something()) continue;
      std::string line;
      if (!std::getline(std::cin, line)) return;
      answer(line);
    }
  }

  /// Moves a peer's memory without end, and returns how that ended.
  ucs_status_t use(bool writes, const std::string& address, const std::string& key,
                   std::uint64_t base, std::size_t size) {
    const std::vector<unsigned char> to = from_hex(address);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(to.data());
    if (over_tcp_) {
      params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
      params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    }
    ucp_ep_h connection = nullptr;
    check(ucp_ep_create(worker_, &params, &connection), "ucp_ep_create");
    ucp_rkey_h region = nullptr;
    check(ucp_ep_rkey_unpack(connection, from_hex(key).data(), &region), "ucp_ep_rkey_unpack");
    own_.resize(size, 'w');
    const ucp_request_param_t plain = {};
    for (int count = 1; !is_told_something(); ++count) {
      const auto began = std::chrono::steady_clock::now();
      ucs_status_t moved =
          end_of(writes ? ucp_put_nbx(connection, own_.data(), size, base, region, &plain)
                        : ucp_get_nbx(connection, own_.data(), size, base, region, &plain));
      if (moved == UCS_OK) moved = end_of(ucp_ep_flush_nbx(connection, &plain));
      if (moved != UCS_OK) return moved;
      const auto took = std::chrono::steady_clock::now() - began;
      if (count != 3) continue;
      std::cout << "moving " << std::chrono::duration_cast<std::chrono::microseconds>(took).count()
                << ' ' << std::accumulate(own_.begin(), own_.end(), std::uint64_t{0}) << std::endl;
    }
    return UCS_OK;
  }

 private:
  ucs_status_t end_of(ucs_status_ptr_t started) {
    if (!UCS_PTR_IS_PTR(started)) return UCS_PTR_RAW_STATUS(started);
    while (ucp_request_check_status(started) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    const ucs_status_t ended = ucp_request_check_status(started);
    ucp_request_free(started);
    return ended;
  }

  static void came(ucp_conn_request_h request, void* self) {
    auto& mine = *static_cast<peer*>(self);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.conn_request = request;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    ucp_ep_h made = nullptr;
    check(ucp_ep_create(mine.worker_, &params, &made), "ucp_ep_create");
  }

  void answer(const std::string& line) {
    if (line == "sum") {
      std::cout << std::accumulate(base_, base_ + size_, std::uint64_t{0}) << std::endl;
    } else if (line.starts_with("fill ")) {
      std::fill(base_, base_ + size_, static_cast<unsigned char>(std::stoi(line.substr(5))));
      std::cout << "filled" << std::endl;
    } else if (line == "unmap") {
      check(ucp_mem_unmap(context_, memory_), "ucp_mem_unmap");
      std::cout << "unmapped" << std::endl;
    }
  }

  bool over_tcp_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  std::vector<unsigned char> own_;
  unsigned char* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 4 && words.size() != 6) return 2;
  try {
    if (words.size() == 6 && words[0] == "tcp") ::setenv("UCX_TCP_RX_SEG_SIZE", "2m", 0);
    peer served(words[0]);
    if (words.size() == 6) {
      const std::uint64_t base = std::stoull(words[4], nullptr, 16);
      const ucs_status_t ended =
          served.use(words[1] == "write", words[2], words[3], base, std::stoull(words[5]));
      std::cout << "ended " << ended << std::endl;
      std::_Exit(0);
    }
    served.own(words[2], std::stoull(words[3]));
    const std::string where = words[1] == "address" ? served.address() : served.listen(words[1]);
    std::cout << "ready " << where << ' ' << served.key() << ' ' << served.base() << std::endl;
    served.drive();
    std::_Exit(0);  // clients may be there
  } catch (const std::exception& failed) {
    std::cout << "failed: " << failed.what() << std::endl;
    return 1;
  }
}
