// gunzip against files that zlib packs, and against damage.
#include "plait/io/gzip.h"

#include <zlib.h>

#include <random>

#include "tests/io/damage.h"

namespace plait {
namespace {

std::string pack(const std::string& content, int level = 6) {
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string unpack(const std::string& packed) {
  const Buffer<std::byte> content = gunzip(to_bytes(packed).span(), "x.gz");
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

TEST(Gzip, UnpacksWhatZlibPacks) {
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 1000, 100000, 3000000}) {
    std::string noise(size, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    const std::string zeros(size, '0');
    for (const int level : {0, 1, 9}) {
      EXPECT_TRUE(unpack(pack(noise, level)) == noise) << size << " at level " << level;
      EXPECT_TRUE(unpack(pack(zeros, level)) == zeros) << size << " at level " << level;
    }
  }
}

TEST(Gzip, MembersAreJoined) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(unpack(pack("0,1\n") + pack("") + pack("1,2\n")), "0,1\n1,2\n");
  // The last member's size, which comes last, is no measure of the others.
  EXPECT_TRUE(unpack(pack(large) + pack("y")) == large + "y");
}

TEST(Gzip, AWrongSizeAtTheEndTakesNoMemoryAndIsRefused) {
  std::string packed = pack("0,1\n1,2\n");
  packed.replace(packed.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_FALSE(reads(to_bytes(packed), [](const auto& b) { gunzip(b.span(), "x"); }));
}

TEST(Gzip, DamagedFilesGiveErrorsOnly) {
  const auto read = [](const Buffer<std::byte>& b) { gunzip(b.span(), "x"); };
  const auto packed = to_bytes(pack("0,1\n1,2\n2,3\n3,4\n"));
  expect_every_truncation_refused(packed.span(), read);
  // Some bytes of the header say nothing of the content.
  EXPECT_GT(count_refused_flips(packed.span(), read), 8 * (packed.size() - 10));
}

}  // namespace
}  // namespace plait
