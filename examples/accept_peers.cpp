// A coroutine that lets peers in, one after the other, and refuses what it does not like.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <ucx/context.hpp>
#include <ucx/listener.hpp>
#include <ucx/worker.hpp>

namespace {

/// The smallest coroutine type: it runs by itself.
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

task let_in(ucx::listener& door, ucx::worker& worker, std::vector<ucx::endpoint>& guests) {
  try {
    for (;;) {
      ucx::connection_request guest = co_await door.accept();
      if (guests.size() < 2) {
        guests.emplace_back(worker, std::move(guest));
      } else {
        guest.reject(ucx::errc::busy, "two guests are enough");
      }
    }
  } catch (const ucx::error&) {  // the listener was closed
  }
}

}  // namespace

int main() {
  const ucx::context context({.transports = {"tcp"}, .devices = {"lo"}});
  std::vector<ucx::endpoint> guests;
  ucx::worker host(context, {.progress = ucx::progress_mode::sleeping_thread});
  ucx::listener_options options;
  options.manual_accept = true;
  ucx::listener door(host, ucx::socket_address("127.0.0.1:0"), std::move(options));
  let_in(door, host, guests);

  ucx::worker visitor(context);
  const ucx::endpoint first(visitor, door.address());
  const ucx::endpoint second(visitor, door.address());
  try {
    const ucx::endpoint third(visitor, door.address());
  } catch (const ucx::error& refused) {
    std::cout << refused.what() << '\n';
    return refused.code() == ucx::errc::busy ? 0 : 1;
  }
  return 1;
}
