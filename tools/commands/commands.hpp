// The commands of the program. Each adds itself to the command line, and runs when it is asked for.
#pragma once

#include "output/cli_forward.hpp"
#include "process/client_settings.hpp"

namespace ucx::tool {

// `shared` may already hold what was said before the command; it has to outlive the parsing.
/// `ucxio serve`: publishes files.
void add_serve(CLI::App& program, const client_settings& shared);
/// `ucxio ls`: lists what a server publishes.
void add_list(CLI::App& program, client_settings& shared);
/// `ucxio cat`: copies what is published to the standard output.
void add_cat(CLI::App& program, client_settings& shared);
/// `ucxio cp`: copies files and trees.
void add_copy(CLI::App& program, client_settings& shared);
/// `ucxio put`: writes the standard input to a file of a store.
void add_put(CLI::App& program, client_settings& shared);
/// `ucxio mkdir`: makes directories in a store.
void add_make_directory(CLI::App& program, client_settings& shared);
/// `ucxio mv`: renames within a store.
void add_move(CLI::App& program, client_settings& shared);
/// `ucxio rm`: removes files of a store.
void add_remove(CLI::App& program, client_settings& shared);
/// `ucxio hash`: hashes files where they are.
void add_hash(CLI::App& program, client_settings& shared);
/// `ucxio stat`: describes what is published.
void add_stat(CLI::App& program, client_settings& shared);
/// `ucxio call`: calls a function of a server's program.
void add_call(CLI::App& program, client_settings& shared);
/// `ucxio bench`: measures how fast what is published can be read, and written.
void add_bench(CLI::App& program, client_settings& shared);
/// `ucxio completion`: prints what shells complete the command line by.
void add_completion(CLI::App& program);
/// `ucxio man`: prints the man page.
void add_manual(CLI::App& program);
/// `ucxio login`: gets a token from a server.
void add_login(CLI::App& program);
/// `ucxio token`: makes, lists and removes the tokens of ucxs://.
void add_token(CLI::App& program);
/// `ucxio pipe`: sends the standard input to the standard output of another process.
void add_pipe(CLI::App& program, client_settings& shared);
/// `ucxio info`: tells versions, transports, and how bytes move.
void add_info(CLI::App& program, client_settings& shared);

}  // namespace ucx::tool
