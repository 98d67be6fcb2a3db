// What client_in_epoll.cpp does by handlers, as a coroutine: a client in a loop of one thread, with
// no call that waits. Its argument is the URL of a server with a writable store and with pipes.
#include <iostream>
#include <stop_token>

#include "client_coroutine.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const ucx::url server(argv[1]);
  ucx::worker worker(context_for(server), {.progress = ucx::progress_mode::external});
  what_it_found found;
  std::stop_source stop;
  visit_store(worker, server, found, stop);
  worker.run(stop.get_token());
  std::cout << found.names.size() << " names, " << found.texts.size() << " read, "
            << found.pipes.size() << " pipes " << found.trouble << '\n';
  return found.trouble.empty() ? 0 : 1;
}
