// A client whose every call is a request, driven by the program's epoll loop: no thread of the
// library's, and no call that waits. Its argument is the URL of a server with a writable store
// and with pipes.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "client_job.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const ucx::url server(argv[1]);
  ucx::worker worker(context_for(server), {.progress = ucx::progress_mode::external});
  client_job job(worker, server);
  bool is_over = false;
  job.begin([&] { is_over = true; });

  const int loop = epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted = {.events = EPOLLIN, .data = {.fd = worker.event_fd()}};
  epoll_ctl(loop, EPOLL_CTL_ADD, worker.event_fd(), &wanted);
  while (!is_over) {
    while (worker.progress()) {
    }
    if (is_over || !worker.arm()) continue;
    const auto limit =
        std::min<std::chrono::nanoseconds>(worker.next_timeout(), std::chrono::seconds(1));
    epoll_event ready = {};
    epoll_wait(loop, &ready, 1,
               static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count()));
    // The program's other descriptors are handled here.
  }
  close(loop);
  std::cout << job.names().size() << " names, " << job.texts().size() << " read, "
            << job.pipes().size() << " pipes " << job.trouble() << '\n';
  return job.trouble().empty() ? 0 : 1;
}
