// Reads the lines of what somebody serves, by URL, or of a local file: three_lines URL|PATH
//   ucxio serve notes.txt          prints ucxs://127.0.0.1:41231
//   three_lines ucxs://127.0.0.1:41231/notes.txt
#include <cstddef>
#include <iostream>
#include <string>

#include <ucx/fstream.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: three_lines URL|PATH\n";
    return 2;
  }
  std::size_t lines = 0;
  std::size_t bytes = 0;

  ucx::ifstream in(argv[1]);
  std::string line;
  while (std::getline(in, line)) {
    ++lines;
    bytes += line.size() + (in.eof() ? 0 : 1);  // the last line may end without a newline
  }

  // The end of the data is no error: then error() says nothing.
  if (in.error()) {
    std::cerr << "three_lines: " << in.error_message() << '\n';
    return 1;
  }
  std::cout << lines << " lines, " << bytes << " bytes\n";
  return 0;
}
