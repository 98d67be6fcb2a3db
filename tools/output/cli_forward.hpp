// CLI11's names, for headers: the whole of it is dear to compile.
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI
