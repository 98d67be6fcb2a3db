// Follows a log of another node, as tail -f does:  follow_log ucxs://node7:7471/log
// Without a URL, writer, server and follower are in this process, and the log ends with "end".
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include <ucx/fstream.hpp>
#include <ucx/server.hpp>

using namespace std::chrono_literals;

/// Returns how many lines came before "end".
int follow(const std::string& url) {
  // Each read at the end waits for an hour; a server that is started again is waited for as long.
  ucx::ifstream in(url, std::ios::in, {.follow_timeout = 1h, .reconnect_timeout = 1h});
  std::string line;
  std::string whole;
  int count = 0;
  for (;;) {
    while (std::getline(in, line)) {
      whole += line;
      if (in.eof()) break;  // the rest of this line has not been written yet
      if (whole == "end") return count;
      std::cout << whole << '\n';
      ++count;
      whole.clear();
    }
    if (!in.eof()) break;
    in.clear();  // a quiet hour
  }
  std::cerr << in.error_message() << '\n';
  return -1;
}

int main(int argc, char** argv) {
  if (argc > 1) return follow(argv[1]) < 0;
  const auto log =
      std::filesystem::temp_directory_path() / ("log" + std::to_string(std::random_device()()));
  std::ofstream writer(log);
  ucx::server server;
  const ucx::publication published = server.publish_file("log", log, ucx::access::read);
  std::jthread writing([&writer] {
    for (int i = 1; i <= 20; ++i) {
      writer << "event " << i << std::endl;
      std::this_thread::sleep_for(10ms);
    }
    writer << "end" << std::endl;
  });
  const int lines = follow(published.url());
  std::filesystem::remove(log);
  return lines == 20 ? 0 : 1;
}
