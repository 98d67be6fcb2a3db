#include "flood_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "network.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/url.hpp"

namespace ucx::benchmarks {
namespace {

// docs/reference/wire-format.md, "Frames" and "Names".
constexpr unsigned message_id = 255;
constexpr std::uint8_t hello_code = 1;
constexpr std::uint8_t welcome_code = 2;
constexpr std::uint8_t control_code = 11;
constexpr std::uint64_t session = 0x0f100d;
constexpr std::string_view descriptor_letters = "UXRD";
constexpr std::size_t region_in_descriptor = 12;

using question = flood_process::question;
constexpr std::array<std::pair<question, const char*>, 5> questions{{{question::list, "list"},
                                                                     {question::open, "open"},
                                                                     {question::hash, "hash"},
                                                                     {question::create, "create"},
                                                                     {question::none, "none"}}};

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

/// A text of less than 32 bytes, as MessagePack has it.
std::string packed(const std::string& text) {
  return static_cast<char>(0xa0U | text.size()) + text;
}

std::string packed(std::uint64_t number) {
  std::string made(1, '\xcf');
  for (int i = 7; i >= 0; --i) made += static_cast<char>(number >> (8 * i));
  return made;
}

/// What the server is asked in a flood.
std::vector<char> list_question() { return control_of(7, '\x91' + packed("")); }
std::vector<char> open_question(const std::string& name) {
  return control_of(3, '\x92' + packed(name) + '\x01');  // to be read
}
std::vector<char> hash_question(std::uint64_t region) {
  constexpr std::uint64_t bytes = 4096;
  return control_of(
      19, '\x94' + packed(region) + packed(std::uint64_t{0}) + packed(bytes) + packed(bytes));
}
std::vector<char> create_question(const std::string& name) {
  return control_of(11, '\x93' + packed(name) + '\x02' + '\x01');  // to be written, anew
}

/// Returns the region of an answer that says what was opened.
std::uint64_t region_of(const std::vector<char>& answer) {
  const auto descriptor = std::search(answer.begin(), answer.end(), descriptor_letters.begin(),
                                      descriptor_letters.end());
  const auto left = static_cast<std::size_t>(answer.end() - descriptor);
  if (left < region_in_descriptor + 8) throw std::runtime_error("a flood can not open its file");
  std::uint64_t region = 0;
  for (int i = 7; i >= 0; --i) {
    const auto at = static_cast<std::ptrdiff_t>(region_in_descriptor) + i;
    region = region << 8U | static_cast<std::uint8_t>(descriptor[at]);
  }
  return region;
}

/// Nobody is flooded by questions that mean nothing.
void expect_success(const std::vector<char>& answer) {
  constexpr std::ptrdiff_t status = 4;
  if (answer.size() < 16 || std::any_of(answer.begin() + status, answer.begin() + status + 4,
                                        [](char each) { return each != 0; })) {
    throw std::runtime_error("the server refuses a question of a flood");
  }
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
    // From version 1 to 1, by library "", with stores, measuring and digests.
    answer_to(control_of(1, {'\x94', 1, 1, '\xa0', 7}));
    hash_ = hash_question(region_of(answer_to(open_question("store/file"))));
    for (const auto& each : {list_, open_, hash_, create_}) {
      expect_success(answer_to(each));
    }
  }

  void ask_on(question what) {
    const std::vector<char>& asked = what == question::list     ? list_
                                     : what == question::open   ? open_
                                     : what == question::create ? create_
                                                                : hash_;
    for (int i = 0; i < 64 && asked_ < answers_ + most_; ++i) ask(asked);
    worker_.progress();
  }
  void rest() { worker_.progress(); }
  std::size_t answers() const noexcept { return answers_; }

 private:
  static raw_fabric fabric() { return fabric_of(plane::tcp, ucx::context(options_of(plane::tcp))); }
  static ucs_status_t heard(void* self, const void* header, std::size_t length, void* data,
                            std::size_t size, const ucp_am_recv_param_t*) {
    auto& its = *static_cast<flooder*>(self);
    const auto code = length > 3 ? static_cast<const std::uint8_t*>(header)[3] : 0;
    if (code == welcome_code) its.welcomed_ = true;
    if (code != control_code) return UCS_OK;
    ++its.answers_;
    const auto* const bytes = static_cast<const char*>(data);
    if (its.keeps_) its.kept_.assign(bytes, bytes + size);
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
  std::vector<char> answer_to(const std::vector<char>& question) {
    keeps_ = true;
    ask(question);
    while (answers_ < asked_) worker_.progress();
    keeps_ = false;
    return kept_;
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
  bool keeps_ = false;  // what is answered
  std::vector<char> kept_;
  const std::vector<char> list_ = list_question();
  const std::vector<char> open_ = open_question("matrix");
  const std::vector<char> create_ = create_question("store/flood");
  std::vector<char> hash_;
};

/// Does what it is told, a line each, and answers with one.
void obey(std::size_t unanswered, int orders, int words) {
  ::fcntl(orders, F_SETFL, O_NONBLOCK);
  pin_to_core(reader_core);
  std::unique_ptr<flooder> flood;
  auto asks = question::none;
  std::string line;
  for (;;) {
    char c = 0;
    const ::ssize_t got = ::read(orders, &c, 1);
    if (got == 0) return;
    if (got < 0) {  // no order: as before
      if (flood && asks != question::none) flood->ask_on(asks);
      if (flood && asks == question::none) flood->rest();
      continue;
    }
    if (c != '\n') {
      line += c;
      continue;
    }
    for (const auto& [what, name] : questions) {
      if (line == name) asks = what;
    }
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
  for (const auto& [each, name] : questions) {
    if (each == what) talk(name);
  }
}

std::size_t flood_process::answers() { return std::stoul(talk("count")); }

}  // namespace ucx::benchmarks
