#pragma once

// Makes Boost.Iostreams treat the file streams of <ucx/fstream.hpp> as it treats those of std.
// Otherwise its `copy`, its chains and its streams would flush them, and leave them open.
// <ucx/boost_device.hpp> includes this header.
#include <boost/iostreams/traits.hpp>
#include <boost/mpl/bool.hpp>
#include <concepts>

#include "ucx/fstream.hpp"

namespace boost::iostreams {

// `is_std_file_device`, and the category, follow from these.
template <std::derived_from<ucx::ifstream> Stream>
struct is_ifstream<Stream> : mpl::true_ {};
template <std::derived_from<ucx::ofstream> Stream>
struct is_ofstream<Stream> : mpl::true_ {};
template <std::derived_from<ucx::fstream> Stream>
struct is_fstream<Stream> : mpl::true_ {};
template <std::derived_from<ucx::filebuf> Buffer>
struct is_filebuf<Buffer> : mpl::true_ {};

}  // namespace boost::iostreams
