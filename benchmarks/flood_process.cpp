#include "flood_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "network.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/url.hpp"

namespace ucx::benchmarks {
namespace {

// docs/wire-format.md, "Frames" and "Names".
constexpr unsigned message_id = 255;
constexpr std::uint8_t hello_code = 1;
constexpr std::uint8_t welcome_code = 2;
constexpr std::uint8_t control_code = 11;
constexpr std::uint64_t session = 0x0f100d;

void put(std::vector<char>& into, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) into.push_back(static_cast<char>(value >> (8 * i)));
}

std::vector<char> frame_of(std::uint8_t code, std::size_t length) {
  std::vector<char> made{'U', 'X', 1, static_cast<char>(code)};
  put(made, 0, 4);
  put(made, session, 8);
  for (int i = 0; i < 5; ++i) put(made, 0, 8);
  put(made, length, 8);
  return made;
}

std::vector<char> control_of(std::uint8_t type, const std::string& body) {
  std::vector<char> made{'U', 'C', 1, static_cast<char>(type)};
  put(made, 0, 4);
  put(made, 1, 8);
  made.insert(made.end(), body.begin(), body.end());
  return made;
}

/// Its end of the connection.
class flooder {
 public:
  flooder(std::size_t unanswered, const std::string& to) : most_(unanswered), worker_(fabric()) {
    worker_.handle_messages(message_id, &flooder::heard, this);
    const ucx::url where(to);
    const socket_address address(where.host() + ":" + std::to_string(where.port()));
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {
      std::fputs("flood: the server has ended the connection\n", stderr);
      ::_exit(1);
    };
    ::sockaddr_in numeric = {};
    numeric.sin_family = AF_INET;
    numeric.sin_port = htons(where.port());
    ::inet_pton(AF_INET, address.host().c_str(), &numeric.sin_addr);
    params.sockaddr.addr = reinterpret_cast<const ::sockaddr*>(&numeric);
    params.sockaddr.addrlen = sizeof numeric;
    if (ucp_ep_create(worker_.handle(), &params, &peer_) != UCS_OK) {
      throw std::runtime_error("no connection for a flood");
    }
    say(frame_of(hello_code, 0), {}, UCP_AM_SEND_FLAG_REPLY);
    while (!welcomed_) worker_.progress();
    // From version 1 to 1, by library "", with features 3.
    ask(control_of(1, {'\x94', 1, 1, '\xa0', 3}));
    while (answers_ == 0) worker_.progress();
  }

  void ask_on(flood_process::question what) {
    static const std::vector<char> list = control_of(7, {'\x91', '\xa0'});
    static const std::vector<char> open =
        control_of(3, {'\x92', '\xa6', 'm', 'a', 't', 'r', 'i', 'x', 1});
    for (int i = 0; i < 64 && asked_ < answers_ + most_; ++i) {
      ask(what == flood_process::question::list ? list : open);
    }
    worker_.progress();
  }
  void rest() { worker_.progress(); }
  std::size_t answers() const noexcept { return answers_; }

 private:
  static raw_fabric fabric() { return fabric_of(plane::tcp, ucx::context(options_of(plane::tcp))); }
  static ucs_status_t heard(void* self, const void* header, std::size_t length, void*, std::size_t,
                            const ucp_am_recv_param_t*) {
    auto& its = *static_cast<flooder*>(self);
    const auto code = length > 3 ? static_cast<const std::uint8_t*>(header)[3] : 0;
    if (code == welcome_code) its.welcomed_ = true;
    if (code == control_code) ++its.answers_;
    return UCS_OK;
  }
  struct sent {
    std::vector<char> header;
    std::vector<char> bytes;
  };
  void say(std::vector<char> header, std::vector<char> bytes, unsigned flags) {
    auto kept = std::make_unique<sent>(sent{std::move(header), std::move(bytes)});
    ucp_request_param_t params = {};
    params.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.flags = UCP_AM_SEND_FLAG_EAGER | flags;
    params.cb.send = [](void* request, ucs_status_t, void* one) {
      delete static_cast<sent*>(one);
      ucp_request_free(request);
    };
    params.user_data = kept.get();
    const ucs_status_ptr_t started =
        ucp_am_send_nbx(peer_, message_id, kept->header.data(), kept->header.size(),
                        kept->bytes.data(), kept->bytes.size(), &params);
    if (UCS_PTR_IS_PTR(started)) static_cast<void>(kept.release());
  }
  void ask(const std::vector<char>& question) {
    ++asked_;
    say(frame_of(control_code, question.size()), question, 0);
  }

  const std::size_t most_;
  raw_worker worker_;
  ucp_ep_h peer_ = nullptr;
  bool welcomed_ = false;
  std::size_t asked_ = 0;
  std::size_t answers_ = 0;
};

/// Does what it is told, a line each, and answers with one.
void obey(std::size_t unanswered, int orders, int words) {
  ::fcntl(orders, F_SETFL, O_NONBLOCK);
  pin_to_core(reader_core);
  std::unique_ptr<flooder> flood;
  auto asks = flood_process::question::none;
  std::string line;
  for (;;) {
    char c = 0;
    const ::ssize_t got = ::read(orders, &c, 1);
    if (got == 0) return;
    if (got < 0) {  // no order: as before
      if (flood && asks != flood_process::question::none) flood->ask_on(asks);
      if (flood && asks == flood_process::question::none) flood->rest();
      continue;
    }
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line == "list") asks = flood_process::question::list;
    if (line == "open") asks = flood_process::question::open;
    if (line == "none") asks = flood_process::question::none;
    if (line.starts_with("ucx")) flood = std::make_unique<flooder>(unanswered, line);
    line.clear();
    const std::string said = std::to_string(flood ? flood->answers() : 0) + "\n";
    if (::write(words, said.data(), said.size()) < 0) return;
  }
}

}  // namespace

flood_process::flood_process(std::size_t unanswered) {
  std::array<int, 2> told = {};
  std::array<int, 2> said = {};
  if (::pipe(told.data()) != 0 || ::pipe(said.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for a flood");
  if (child_ == 0) {
    ::close(told[1]);
    ::close(said[0]);
    try {
      obey(unanswered, told[0], said[1]);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "flood: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[0]);
  ::close(said[1]);
  orders_ = told[1];
  words_ = said[0];
}

flood_process::~flood_process() {
  ::close(orders_);
  ::close(words_);
  ::waitpid(child_, nullptr, 0);
}

std::string flood_process::talk(const std::string& order) {
  const std::string line = order + "\n";
  if (::write(orders_, line.data(), line.size()) < 0) throw std::runtime_error("the flood is over");
  std::string answer;
  char c = 0;
  while (::read(words_, &c, 1) == 1 && c != '\n') answer += c;
  if (c != '\n') throw std::runtime_error("the flood is over");
  return answer;
}

void flood_process::connect(const std::string& url) { talk(url); }

void flood_process::ask(question what) {
  talk(what == question::list ? "list" : what == question::open ? "open" : "none");
}

std::size_t flood_process::answers() { return std::stoul(talk("count")); }

}  // namespace ucx::benchmarks
