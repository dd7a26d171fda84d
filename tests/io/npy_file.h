// .npy files made by hand, right or wrong.
#pragma once

#include <string>
#include <vector>

namespace plait {

// Returns the bytes of a file with this dictionary, made by hand from the format's description.
inline std::string file_of(const std::string& dictionary, const std::string& data,
                           int version = 1) {
  const std::string header = dictionary + "\n";
  std::string bytes = "\x93NUMPY" + std::string(1, static_cast<char>(version)) + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> 8 * i & 0xff);
  return bytes + header + data;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string dictionary(const std::string& descr, const std::string& shape,
                              const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

template <class T>
inline std::string file_of(const std::string& descr, const std::string& shape,
                           const std::vector<T>& values) {
  return file_of(dictionary(descr, shape), bytes_of(values));
}

}  // namespace plait
