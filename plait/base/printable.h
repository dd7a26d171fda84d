// Makes text that others have written (names in files, names of files, values of the store) fit to
// be shown in one line of a terminal.
#pragma once

#include <string>
#include <string_view>

namespace plait {

// Returns the text with '?' for each control character (C0, DEL and C1) and for each byte that is
// not part of valid UTF-8 (RFC 3629).
std::string printable(std::string_view text);

}  // namespace plait
