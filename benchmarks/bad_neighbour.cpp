#include "bad_neighbour.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "network.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"

namespace ucx::benchmarks {
namespace {

using habit = bad_neighbour::habit;

constexpr std::size_t matrix = std::size_t{64} << 20U;
constexpr std::size_t most_at_once = 512;
constexpr std::size_t strangers = 64;

constexpr std::array<std::pair<habit, const char*>, 6> habits{{{habit::rest, "rest"},
                                                               {habit::read, "read"},
                                                               {habit::stat, "stat"},
                                                               {habit::stop, "stop"},
                                                               {habit::open, "open"},
                                                               {habit::shake, "shake"}}};

class neighbour {
 public:
  neighbour(std::string url, std::string token, std::string wrong_token)
      : url_(std::move(url)), token_(std::move(token)), wrong_(std::move(wrong_token)) {}

  void change_to(habit what) {
    requests_.clear();
    opened_.clear();
    client_.reset();
    for (const int each : strangers_) ::close(each);
    strangers_.clear();
    if (what == habit::read || what == habit::stat || what == habit::stop) {
      client_.emplace(ucx::url(url_), options(token_));
      region_.emplace(client_->open("matrix"));
    }
    if (what == habit::stop) {
      for (std::size_t i = 0; i < 16; ++i) {
        requests_.push_back(region_->start_read_at(0, std::span(into_)));
      }
      client_->worker().progress();
    }
    does_ = what;
  }

  /// Does a little of it.
  void go_on() {
    switch (does_) {
      case habit::rest:
      case habit::stop:
        return;
      case habit::read:
        while (requests_.size() < most_at_once) {
          requests_.push_back(region_->start_read_at(0, std::span(into_).first(8)));
        }
        client_->worker().progress();
        while (!requests_.empty() && requests_.front().done()) requests_.pop_front();
        return;
      case habit::stat: {
        std::error_code ec;
        static_cast<void>(client_->stat("matrix", {}, ec));
        return;
      }
      case habit::open:
        opened_.push_back(std::make_unique<client>(ucx::url(url_), options(token_)));
        if (opened_.size() > strangers) opened_.pop_front();
        return;
      case habit::shake: {
        while (strangers_.size() < strangers) strangers_.push_back(stranger());
        ::close(strangers_.front());
        strangers_.pop_front();
        std::error_code ec;
        const client refused(ucx::url(url_), options(wrong_), ec);
        return;
      }
    }
  }

 private:
  static client_options options(const std::string& token) {
    client_options made;
    made.context.token_file = token;
    made.context.share_memory = false;
    made.worker.progress = progress_mode::caller;
    made.worker.operation_timeout = std::chrono::hours(1);
    return made;
  }
  int stranger() const {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(ucx::url(url_).port());
    ::connect(made, reinterpret_cast<const ::sockaddr*>(&there), sizeof there);
    ::send(made, "\x16\3\1\2", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
    return made;
  }

  const std::string url_;
  const std::string token_;
  const std::string wrong_;
  habit does_ = habit::rest;
  std::vector<std::byte> into_ = std::vector<std::byte>(matrix);
  std::optional<client> client_;
  std::optional<remote_region> region_;
  std::deque<request> requests_;
  std::deque<std::unique_ptr<client>> opened_;
  std::deque<int> strangers_;
};

/// Does what it is told, a line each, and answers with one.
void obey(int orders, int words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::fcntl(orders, F_SETFL, O_NONBLOCK);
  pin_to_core(reader_core);
  std::unique_ptr<neighbour> self;
  std::string line;
  for (;;) {
    char c = 0;
    const ::ssize_t got = ::read(orders, &c, 1);
    if (got == 0) return;
    if (got < 0) {  // no order: as before
      if (self) self->go_on();
      continue;
    }
    if (c != '\n') {
      line += c;
      continue;
    }
    for (const auto& [what, name] : habits) {
      if (self && line == name) self->change_to(what);
    }
    if (!self) {
      std::istringstream parts(line);
      std::string url;
      std::string token;
      std::string wrong;
      parts >> url >> token >> wrong;
      self = std::make_unique<neighbour>(url, token, wrong);
    }
    line.clear();
    if (::write(words, "\n", 1) != 1) return;
  }
}

}  // namespace

bad_neighbour::bad_neighbour() {
  std::array<int, 2> told = {};
  std::array<int, 2> said = {};
  if (::pipe(told.data()) != 0 || ::pipe(said.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for a neighbour");
  if (child_ == 0) {
    ::close(told[1]);
    ::close(said[0]);
    try {
      obey(told[0], said[1]);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "neighbour: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[0]);
  ::close(said[1]);
  orders_ = told[1];
  words_ = said[0];
}

bad_neighbour::~bad_neighbour() {
  ::close(orders_);
  ::close(words_);
  ::waitpid(child_, nullptr, 0);
}

void bad_neighbour::tell(const std::string& line) {
  const std::string whole = line + "\n";
  char answer = 0;
  if (::write(orders_, whole.data(), whole.size()) < 0 || ::read(words_, &answer, 1) != 1) {
    throw std::runtime_error("the neighbour has died");
  }
}

void bad_neighbour::meet(const std::string& url, const std::string& token,
                         const std::string& wrong_token) {
  tell(url + " " + token + " " + wrong_token);
}

void bad_neighbour::begin(habit what) {
  for (const auto& [each, name] : habits) {
    if (each == what) tell(name);
  }
}

}  // namespace ucx::benchmarks
