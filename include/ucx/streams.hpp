// All streams: over regions, over files by name, and between processes.
#pragma once

#include "ucx/fstream.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/stream.hpp"
#include "ucx/stream_options.hpp"
