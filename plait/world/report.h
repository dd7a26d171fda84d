// The one line on stderr with which a rank, or a program that is alone, ends.
#pragma once

#include <exception>

namespace plait {

// Prints "plait: TEXT" and returns the exit code. To be called where main() catches, after the
// World is destroyed.
//
// Ranks of one launcher (Plait's or torchrun's) that fail alike, as when all read the same bad
// file, print it once: each tells its text to the launcher's store, and one that is not rank 0
// waits a moment and is silent if a lower rank has failed with the same words, whatever each has
// measured to be free. Otherwise it prints "plait: rank 2: TEXT". A rank that ends because another
// has failed is silent if that one has told. Under mpirun and srun, where the store has ended with
// rank 0, all print.
int report_error(const std::exception& error);

}  // namespace plait
