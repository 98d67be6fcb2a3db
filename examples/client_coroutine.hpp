// What `client_job` does, in one coroutine.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <ios>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <ucx/async_pipe.hpp>

#include "client_job.hpp"

/// The smallest coroutine type: runs at once, ends by itself. What it throws ends the program.
struct detached_task {
  struct promise_type {
    detached_task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

struct what_it_found {
  std::vector<ucx::entry> names;
  std::vector<std::string> texts;
  std::vector<pipe_ends> pipes;
  std::string trouble;
};

/// Stops `over` at the end.
inline detached_task visit_store(ucx::worker& worker, ucx::url where, what_it_found& found,
                                 std::stop_source over) {
  try {
    ucx::client server;
    co_await ucx::client::start_connect(worker, where, server);
    co_await server.start_list(found.names);

    std::vector<ucx::remote_region> regions(std::min(found.names.size(), client_job::most_open));
    std::vector<ucx::request> several;
    for (std::size_t i = 0; i < regions.size(); ++i) {  // side by side
      several.push_back(server.start_open(found.names[i].name, ucx::access::read, regions[i]));
    }
    for (ucx::request& each : several) co_await std::move(each);

    several.clear();
    found.texts.resize(regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i) {
      found.texts[i].resize(regions[i].size());
      several.push_back(
          regions[i].start_read_at(0, std::as_writable_bytes(std::span(found.texts[i]))));
    }
    for (ucx::request& each : several) co_await std::move(each);

    ucx::remote_file file;
    co_await ucx::remote_file::start_open(
        server, client_job::written_name,
        {.wanted = ucx::access::write, .create = ucx::creation::replace}, file);
    co_await file.start_write_at(0, std::as_bytes(std::span(client_job::written)));
    co_await file.start_commit();
    co_await file.start_close();

    found.pipes.resize(client_job::most_pipes);
    several.clear();
    for (std::size_t i = 0; i < found.pipes.size(); ++i) {
      const ucx::url meeting = where.with_name("pipe-" + std::to_string(i));
      pipe_ends& ends = found.pipes[i];
      several.push_back(ucx::async_pipe::start_open(worker, meeting, std::ios_base::in, ends.in));
      several.push_back(ucx::async_pipe::start_open(worker, meeting, std::ios_base::out, ends.out));
    }
    for (ucx::request& each : several) co_await std::move(each);
    for (pipe_ends& ends : found.pipes) {
      co_await ends.out.start_write(std::as_bytes(std::span(client_job::written)));
      ucx::request closing = ends.out.start_close();
      for (ends.count = 1; ends.count > 0;) {  // 0 is the end
        co_await ends.in.start_read(std::as_writable_bytes(std::span(ends.some)), ends.count);
        ends.piped.append(ends.some, 0, ends.count);
      }
      co_await std::move(closing);
      co_await ends.in.start_close();
    }

    regions.clear();
    co_await server.connection().start_close();
  } catch (const ucx::error& thrown) {
    found.trouble = thrown.what();
  }
  over.request_stop();
}
