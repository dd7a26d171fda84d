// The one line on stderr with which a rank, or a program that is alone, ends after an error.
#pragma once

#include <exception>

namespace plait {

// Prints "plait: TEXT" and returns the exit code. main() calls it in its catch, after the World is
// destroyed.
//
// Ranks of one launcher (Plait's or torchrun's) that fail alike, as when all read the same bad
// file, print it once: each tells its text to the launcher's store, and a rank other than 0 waits a
// moment and is silent if a lower rank has failed with the same words, apart from figures of free
// memory. Otherwise it prints "plait: rank 2: TEXT". A rank that ends because another has failed is
// silent if the other one has told. Under mpirun and srun, where the store has ended with rank 0,
// all ranks print.
int report_error(const std::exception& error);

}  // namespace plait
