// Many clients, one matrix: eight processes read blocks of rows of a matrix that the parent
// publishes, and write the sum of each row where the parent reads it.
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <ucx/client.hpp>
#include <ucx/server.hpp>

constexpr std::size_t rows = 1024, columns = 512, processes = 8, block = rows / processes;

int sum_block(const std::string& server, std::size_t number) {
  ucx::client client(server);
  ucx::remote_region matrix = client.open("matrix");
  ucx::remote_region sums = client.open("sums", ucx::access::write);
  std::vector<double> mine(block * columns);
  matrix.read_at(number * block * columns * sizeof(double),
                 std::as_writable_bytes(std::span(mine)));
  std::vector<double> found;
  for (auto row = mine.begin(); row != mine.end(); row += columns) {
    found.push_back(std::accumulate(row, row + columns, 0.0));
  }
  sums.write_at(number * block * sizeof(double), std::as_bytes(std::span(found)));
  sums.flush();  // from here on the parent sees them
  return 0;
}

int main(int argc, char** argv) {
  try {
    if (argc == 3) return sum_block(argv[1], std::stoul(argv[2]));
    std::vector<double> matrix(rows * columns);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<double>(i / columns);
    std::vector<double> sums(rows, -1);
    ucx::server server;
    const auto a = server.publish("matrix", std::as_bytes(std::span(matrix)));
    const auto b =
        server.publish("sums", std::as_writable_bytes(std::span(sums)), ucx::access::write);
    for (std::size_t i = 0; i < processes; ++i) {
      const std::string url = server.url(), number = std::to_string(i);
      if (fork() == 0) _exit(execl("/proc/self/exe", *argv, url.c_str(), number.c_str(), nullptr));
    }
    int failures = 0;
    for (int status = 0; wait(&status) > 0;) failures += status != 0 ? 1 : 0;
    for (std::size_t i = 0; i < rows; ++i) failures += sums[i] != static_cast<double>(i * columns);
    std::cout << processes << " processes, " << rows << " rows, " << failures << " failures\n";
    return failures != 0;
  } catch (const std::exception& failure) {
    std::cerr << "one_matrix: " << failure.what() << '\n';
    return 1;
  }
}
