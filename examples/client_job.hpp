// What a client does in an event loop, by requests alone: the end of each step begins the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ios>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <ucx/async_pipe.hpp>
#include <ucx/client.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/remote_file.hpp>
#include <ucx/worker.hpp>

/// Returns a context for the scheme of the server's URL.
inline ucx::context context_for(const ucx::url& server) {
  if (server.is_tls()) return ucx::context({.transports = {"tls"}});
  if (server.is_socket()) return ucx::context({.transports = {"socket"}});
  return ucx::context({.transports = {"tcp"}, .devices = {"lo"}});
}

/// Both ends of a pipe, which meet at the server. Either could be in another process.
struct pipe_ends {
  ucx::async_pipe in;
  ucx::async_pipe out;
  std::string some = std::string(100, '\0');  // of its bytes
  std::size_t count = 0;
  std::string piped;  // all of them
};

/// Connects, lists a store, opens 64 of its files at once and reads them, writes a file, sends by
/// two pipes, and leaves.
class client_job {
 public:
  client_job(ucx::worker& driven, const ucx::url& where) : worker_(driven), where_(where) {}
  client_job(const client_job&) = delete;
  client_job& operator=(const client_job&) = delete;

  /// `when_over` is called in the loop. Then `trouble()` is empty, or says what went wrong.
  void begin(std::function<void()> when_over) {
    when_over_ = std::move(when_over);
    next(ucx::client::start_connect(worker_, where_, server_), &client_job::list);
  }
  const std::string& trouble() const { return trouble_; }
  const std::vector<ucx::entry>& names() const { return names_; }
  /// Returns what the files hold that were read.
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<pipe_ends>& pipes() const { return pipes_; }

  static constexpr std::size_t most_open = 64;
  static constexpr std::size_t most_pipes = 2;
  static constexpr std::string_view written = "written in a loop\n";
  static constexpr const char* written_name = "written";

 private:
  using step = void (client_job::*)();

  // The steps.
  void list() { next(server_.start_list(names_), &client_job::open); }
  void open() {
    regions_.resize(std::min(names_.size(), most_open));
    all(&client_job::read, regions_.size(), [this](std::size_t i) {
      return server_.start_open(names_[i].name, ucx::access::read, regions_[i]);
    });
  }
  void read() {
    texts_.resize(regions_.size());
    all(&client_job::make_file, regions_.size(), [this](std::size_t i) {
      texts_[i].resize(regions_[i].size());
      return regions_[i].start_read_at(0, std::as_writable_bytes(std::span(texts_[i])));
    });
  }
  void make_file() {
    next(ucx::remote_file::start_open(
             server_, written_name,
             {.wanted = ucx::access::write, .create = ucx::creation::replace}, file_),
         &client_job::write);
  }
  void write() {
    next(file_.start_write_at(0, std::as_bytes(std::span(written))), &client_job::commit);
  }
  void commit() { next(file_.start_commit(), &client_job::close_file); }
  void close_file() { next(file_.start_close(), &client_job::open_pipes); }
  void open_pipes() {
    pipes_.resize(most_pipes);
    all(&client_job::write_pipes, 2 * pipes_.size(), [this](std::size_t i) {
      const ucx::url meeting = where_.with_name("pipe-" + std::to_string(i / 2));
      pipe_ends& ends = pipes_[i / 2];
      return i % 2 == 0
                 ? ucx::async_pipe::start_open(worker_, meeting, std::ios_base::in, ends.in)
                 : ucx::async_pipe::start_open(worker_, meeting, std::ios_base::out, ends.out);
    });
  }
  void write_pipes() {
    all(&client_job::end_pipes, pipes_.size(), [this](std::size_t i) {
      return pipes_[i].out.start_write(std::as_bytes(std::span(written)));
    });
  }
  void end_pipes() {
    all(&client_job::read_pipes, pipes_.size(),
        [this](std::size_t i) { return pipes_[i].out.start_close(); });
  }
  void read_pipes() {
    all(&client_job::take_piped, pipes_.size(), [this](std::size_t i) {
      pipe_ends& ends = pipes_[i];
      return ends.in.start_read(std::as_writable_bytes(std::span(ends.some)), ends.count);
    });
  }
  void take_piped() {
    bool goes_on = false;
    for (pipe_ends& each : pipes_) {
      each.piped.append(each.some, 0, each.count);
      goes_on = goes_on || each.count > 0;  // 0 is the end
    }
    if (goes_on) return read_pipes();
    all(&client_job::leave, pipes_.size(),
        [this](std::size_t i) { return pipes_[i].in.start_close(); });
  }
  void leave() {
    regions_.clear();
    next(server_.connection().start_close(), &client_job::end);
  }
  void end() { when_over_(); }

  /// Goes on with `then` when the request has ended well.
  void next(ucx::request started, step then) {
    request_ = std::move(started);
    request_.then([this, then](std::error_code ec) { go_on(request_, ec, then); });
  }
  /// Starts so many requests, and goes on with `then` when all have ended.
  template <class Start>
  void all(step then, std::size_t count, Start start) {
    several_.clear();
    for (std::size_t i = 0; i < count; ++i) several_.push_back(start(i));
    left_ = several_.size() + 1;  // the last one is the end of this function
    for (ucx::request& each : several_) {
      each.then([this, then, &each](std::error_code ec) { one_is_over(each, ec, then); });
    }
    one_is_over(request_, {}, then);
  }
  void one_is_over(const ucx::request& ended, std::error_code ec, step then) {
    if (ec && trouble_.empty()) trouble_ = ended.description() + ": " + ec.message();
    if (--left_ > 0) return;
    trouble_.empty() ? (this->*then)() : end();
  }
  void go_on(const ucx::request& ended, std::error_code ec, step then) {
    left_ = 1;
    one_is_over(ended, ec, then);
  }

  ucx::worker& worker_;
  const ucx::url where_;
  std::function<void()> when_over_;
  std::string trouble_;
  ucx::client server_;
  std::vector<ucx::entry> names_;
  std::vector<std::string> texts_;
  std::vector<ucx::remote_region> regions_;
  ucx::remote_file file_;
  std::vector<pipe_ends> pipes_;
  std::vector<ucx::request> several_;
  ucx::request request_;
  std::size_t left_ = 0;
};
