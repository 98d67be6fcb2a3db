// Uses the installed devices with Boost's filters and streams: compresses into a local file, and
// reads it back.
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <iostream>
#include <string>
#include <ucx/boost_device.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  namespace io = boost::iostreams;
  {
    io::filtering_ostream out;
    out.push(io::gzip_compressor());
    out.push(ucx::remote_sink(argv[1]));
    out << "forty-two 42\n";
  }
  io::filtering_istream in;
  in.push(io::gzip_decompressor());
  in.push(ucx::remote_source(argv[1]));
  std::string word;
  int number = 0;
  in >> word >> number;
  std::cout << "through gzip: " << word << ' ' << number << '\n';
  return word == "forty-two" && number == 42 ? 0 : 1;
}
