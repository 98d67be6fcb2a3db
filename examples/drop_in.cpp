// A drop-in swap: code that was written for std::ifstream reads URLs too when one name changes.
//   drop_in PATH URL       reads the same content both ways
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include <ucx/fstream.hpp>

// As the code was, but for this line: it said std::ifstream.
using input_file = ucx::ifstream;

/// Returns the content's checksum: its second half first, to show that seeking works as it did.
unsigned long checksum(const std::string& name) {
  input_file in;
  in.open(name, std::ios::binary | std::ios::ate);
  if (!in.is_open()) {
    std::cerr << "can not open " << name << '\n';
    std::exit(1);
  }
  const std::streamoff size = in.tellg();
  unsigned long sum = 0;
  std::string piece(65536, '\0');
  const auto add = [&](std::streamoff from, std::streamoff to) {
    in.seekg(from);
    while (from < to && in) {
      in.read(piece.data(), std::min<std::streamoff>(to - from, 65536));
      for (std::streamoff i = 0; i < in.gcount(); ++i) {
        sum = sum * 31 + static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
      }
      from += in.gcount();
    }
  };
  add(size / 2, size);
  add(0, size / 2);
  if (!in) std::exit(1);
  return sum;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: drop_in PATH URL\n";
    return 2;
  }
  const unsigned long here = checksum(argv[1]);
  const unsigned long there = checksum(argv[2]);
  std::cout << std::hex << here << " by path, " << there << " by URL\n";
  return here == there ? 0 : 1;
}
