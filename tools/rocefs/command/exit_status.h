// Exit statuses of rocefs and its subcommands.
#pragma once

#include <string>

namespace rocefs {

// Exit status for a command line or a configuration that is wrong.
inline constexpr int kUsageError = 2;

// The end of a command: a reason for stderr and the exit status, 2 for a wrong file or command
// line.
struct Failure {
  int exit_code;
  std::string reason;
};

// Prints the reason on stderr; returns the exit status.
int print_failure(const Failure& failure);

// Flushes stdout. Returns `exit_code`, or 1 with a line on stderr when the output could not be
// written.
int finish_output(int exit_code);

}  // namespace rocefs
