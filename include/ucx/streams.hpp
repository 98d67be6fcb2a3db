// All streams: over regions, over files by name, and between processes.
#pragma once

#include "ucx/filebuf.hpp"
#include "ucx/fstream.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/pipe_streambuf.hpp"
#include "ucx/remote_streambuf.hpp"
#include "ucx/stream.hpp"
#include "ucx/stream_options.hpp"
#include "ucx/stream_statistics.hpp"
