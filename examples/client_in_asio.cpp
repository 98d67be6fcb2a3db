// As client_in_epoll.cpp, in an Asio io_context.
#include <iostream>

#include "asio_progress.hpp"
#include "client_job.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const ucx::url server(argv[1]);
  ucx::worker worker(context_for(server), {.progress = ucx::progress_mode::external});
  client_job job(worker, server);
  asio::io_context io;
  job.begin([&] { io.stop(); });
  asio_progress progress(io, worker);
  io.run();
  std::cout << job.names().size() << " names, " << job.texts().size() << " read, "
            << job.pipes().size() << " pipes " << job.trouble() << '\n';
  return job.trouble().empty() ? 0 : 1;
}
