// Reads the lines of a compressed file that somebody serves, by URL, or of a local one: the filters
// of Boost.Iostreams over a device of ours. gzip_lines URL|PATH
//   ucxio serve notes.gz           prints ucxs://127.0.0.1:41231
//   gzip_lines ucxs://127.0.0.1:41231/notes.gz
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>

#include <ucx/boost_device.hpp>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: gzip_lines URL|PATH\n";
    return 2;
  }
  std::size_t lines = 0;
  std::size_t bytes = 0;

  const ucx::remote_source source(argv[1]);
  boost::iostreams::filtering_istream in;
  in.push(boost::iostreams::gzip_decompressor());
  in.push(source);
  std::string line;
  while (std::getline(in, line)) {
    ++lines;
    bytes += line.size() + (in.eof() ? 0 : 1);  // the last line may end without a newline
  }

  // Badbit is what a chain shows of any failure; the device knows whether it was its own.
  if (in.bad()) {
    std::cerr << "gzip_lines: "
              << (source.error() ? source.error_message() : "this is not what gzip makes") << '\n';
    return 1;
  }
  std::cout << lines << " lines, " << bytes << " bytes\n";
  return 0;
} catch (const std::exception& failed) {
  std::cerr << "gzip_lines: " << failed.what() << '\n';
  return 1;
}
