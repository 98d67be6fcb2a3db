// Drives a worker from the program's own epoll loop, beside whatever else the loop waits for: here
// a pipe that another thread writes to. The owner of a region is told when a peer has filled it.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <span>
#include <thread>

#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

void write_from_elsewhere(const ucx::worker_address& owner, const ucx::remote_descriptor& where) {
  const ucx::context context = loopback();
  const ucx::worker worker(context);
  const ucx::endpoint connection(worker, owner);
  ucx::remote_region remote(connection, where);
  remote.post_write_at(0, std::as_bytes(std::span("hello")));
  remote.notify(5);  // travels behind the data
}

int main() {
  const ucx::context context = loopback();
  ucx::worker worker(context, {.progress = ucx::progress_mode::external});
  ucx::memory_region region = ucx::memory_region::allocate(context, 4096, ucx::access::write);
  bool filled = false;
  region.on_notify([&](const ucx::notification& said) {
    const char* text = reinterpret_cast<const char*>(region.bytes().data());
    std::cout << "the region holds " << std::string(text, said.value) << std::endl;
    filled = true;
  });
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  std::jthread writer([&, address = worker.address(), where = region.descriptor()] {
    write_from_elsewhere(address, where);
    [[maybe_unused]] const auto written = write(pipe_ends[1], "x", 1);
  });

  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted = {.events = EPOLLIN, .data = {.fd = worker.event_fd()}};
  epoll_ctl(loop, EPOLL_CTL_ADD, worker.event_fd(), &wanted);
  wanted.data.fd = pipe_ends[0];
  epoll_ctl(loop, EPOLL_CTL_ADD, pipe_ends[0], &wanted);
  for (bool other_is_done = false; !filled || !other_is_done;) {
    while (worker.progress()) {
    }
    if (!worker.arm()) continue;  // something came meanwhile
    const auto limit =
        std::min<std::chrono::nanoseconds>(worker.next_timeout(), std::chrono::seconds(1));
    epoll_event ready = {};
    epoll_wait(loop, &ready, 1,
               static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count()));
    other_is_done = other_is_done || ready.data.fd == pipe_ends[0];
  }
}
