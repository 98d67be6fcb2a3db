// Both ends of a pipe as coroutines on one event loop: no call waits, and no thread is needed.
#include <algorithm>
#include <coroutine>
#include <exception>
#include <iostream>
#include <numeric>
#include <span>
#include <stop_token>
#include <vector>

#include <ucx/async_pipe.hpp>
#include <ucx/pipe_broker.hpp>
#include <ucx/server.hpp>

// The smallest coroutine type: runs at once, ends by itself. What it throws ends the program.
struct task {
  struct promise_type {
    task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

task send(ucx::worker& loop, ucx::url where, std::span<const long> numbers) {
  ucx::async_pipe out;
  co_await ucx::async_pipe::start_open(loop, where, std::ios_base::out, out);
  co_await out.start_write(std::as_bytes(numbers));
  co_await out.start_close();  // the reader's process has everything
}

task sum_up(ucx::worker& loop, ucx::url where, long& sum, std::stop_source over) {
  ucx::async_pipe in;
  co_await ucx::async_pipe::start_open(loop, where, std::ios_base::in, in);
  std::vector<long> some(10'000);
  for (std::size_t have = 0, count = 1; count > 0;) {
    const std::span<std::byte> room = std::as_writable_bytes(std::span(some)).subspan(have);
    co_await in.start_read(room, count);  // 0 is the end
    have += count;
    const auto whole = static_cast<std::ptrdiff_t>(have / sizeof(long));
    sum = std::accumulate(some.begin(), some.begin() + whole, sum);
    const auto rest =
        std::as_bytes(std::span(some)).first(have).subspan(have - have % sizeof(long));
    std::copy(rest.begin(), rest.end(), std::as_writable_bytes(std::span(some)).begin());
    have = rest.size();
  }
  over.request_stop();
}

int main() {
  std::vector<long> numbers(1'000'000);
  std::iota(numbers.begin(), numbers.end(), 0L);
  // A server brings the ends together. It could be in another process, as could either end.
  ucx::server server({.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}});
  const ucx::pipe_broker broker(server);
  const ucx::url where(server.url("numbers"));

  const ucx::context context({.transports = {"socket"}});
  ucx::worker loop(context, {.progress = ucx::progress_mode::external});
  long sum = 0;
  std::stop_source over;
  sum_up(loop, where, sum, over);
  send(loop, where, numbers);
  loop.run(over.get_token());
  std::cout << "the sum is " << sum << '\n';
  return sum == 499'999'500'000 ? 0 : 1;
}
