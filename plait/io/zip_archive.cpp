// Zip archives through libzip, with the checks that libzip leaves to its callers.
#include "plait/io/zip_archive.h"

#include <zip.h>

#include <cctype>
#include <tuple>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/printable.h"

namespace plait {
namespace {

constexpr zip_uint32_t kLevel = 6;  // of 1..9, as NumPy's; libzip's own is 9, several times slower
constexpr std::uint64_t kLargestZipRatio = 1032;                    // of deflate
constexpr std::uint64_t kWorthInflating = std::uint64_t{64} << 20;  // bytes

struct Release {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, Release>;

struct ZipError {
  zip_error_t error;
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
};

// Returns the words of an error, made to follow a colon.
std::string reason(zip_error_t* error) {
  std::string text = zip_error_strerror(error);
  const auto lower = [](char c) { return static_cast<char>(std::tolower(c)); };
  // The first letter becomes small, but not that of "CRC error".
  if (text.size() > 1 && text[1] == lower(text[1])) text[0] = lower(text[0]);
  return text;
}

std::string place_of(const zip_stat_t& stat) { return "member " + printable(stat.name); }

}  // namespace

void ZipDiscard::operator()(zip* archive) const { zip_discard(archive); }

void ZipReader::fail(const std::string& place, const std::string& problem) const {
  throw InputError(file_, place, problem, "copy the file again or write it anew");
}

void ZipReader::fail(const std::string& place, zip_error* error) const {
  fail(place, reason(error));
}

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string file) : file_(std::move(file)) {
  ZipError error;
  Source source(zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error.error));
  if (source)
    archive_.reset(zip_open_from_source(source.get(), ZIP_RDONLY | ZIP_CHECKCONS, &error.error));
  if (!archive_) fail("archive", &error.error);
  std::ignore = source.release();  // the archive owns it from here on
  list(bytes.size());
}

// Members that lie over each other would together unpack to more than any ratio allows.
void ZipReader::list(std::uint64_t file_bytes) {
  constexpr auto kWanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                           ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  std::uint64_t compressed = 0;
  const auto count = static_cast<std::uint64_t>(zip_get_num_entries(archive_.get(), 0));
  for (std::uint64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive_.get(), i, 0, &stat) != 0 || (stat.valid & kWanted) != kWanted)
      fail("archive", fmt::format("member {} has no readable description", i));
    if (stat.comp_size > file_bytes || (compressed += stat.comp_size) > file_bytes)
      fail("archive",
           fmt::format("its members promise more than the {} bytes of the file", file_bytes));
    if (!members_.emplace(stat.name, i).second) fail(place_of(stat), "it is there twice");
  }
}

Buffer<std::byte> ZipReader::inflate(std::uint64_t number) const {
  zip_stat_t stat;
  if (zip_stat_index(archive_.get(), number, 0, &stat) != 0)
    fail("archive", zip_get_error(archive_.get()));
  const std::string place = place_of(stat);
  if (stat.encryption_method != ZIP_EM_NONE) fail(place, "it is encrypted");
  const bool stored = stat.comp_method == ZIP_CM_STORE;
  if (!stored && stat.comp_method != ZIP_CM_DEFLATE)
    fail(place,
         fmt::format("compression method {} is neither stored nor deflated", stat.comp_method));
  if (stored ? stat.size != stat.comp_size : stat.size / kLargestZipRatio > stat.comp_size)
    fail(place, fmt::format("{} bytes cannot unpack to the {} that it promises", stat.comp_size,
                            stat.size));
  if (stat.size >= kWorthInflating) require_memory(stat.size, file_ + ": " + place);

  Buffer<std::byte> bytes(stat.size);
  const std::unique_ptr<zip_file_t, Release> member(zip_fopen_index(archive_.get(), number, 0));
  if (!member) fail(place, zip_get_error(archive_.get()));
  std::size_t done = 0;
  // libzip compares the checksum where it sees the end, so one more byte is asked for.
  while (true) {
    std::byte surplus;
    const bool full = done == bytes.size();
    const zip_int64_t got = full
                                ? zip_fread(member.get(), &surplus, 1)
                                : zip_fread(member.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0) fail(place, zip_file_get_error(member.get()));
    if (full && got == 0) return bytes;
    if (full || got == 0)
      fail(place, fmt::format("it does not unpack to the {} bytes that it promises", stat.size));
    done += static_cast<std::size_t>(got);
  }
}

void ZipWriter::add(std::string name, std::string head, std::span<const std::byte> body,
                    std::shared_ptr<const void> owner) {
  members_.push_back({std::move(name), std::move(head), body, std::move(owner)});
}

void ZipWriter::write(AtomicFile& file) const {
  ZipError error;
  const auto check = [&](bool right, zip_error_t* why) {
    if (!right) throw Error("a zip archive cannot be written: " + reason(why));
  };
  Source target(zip_source_buffer_create(nullptr, 0, 0, &error.error));
  check(target != nullptr, &error.error);
  std::unique_ptr<zip, ZipDiscard> archive(
      zip_open_from_source(target.get(), ZIP_TRUNCATE, &error.error));
  check(archive != nullptr, &error.error);
  zip_source_keep(target.get());  // one reference is the archive's, one is ours
  zip_error_t* const why = zip_get_error(archive.get());
  for (const Member& member : members_) {
    // libzip only reads fragments, though their type says otherwise.
    const auto fragment = [](const void* data, std::size_t size) {
      return zip_buffer_fragment_t{static_cast<zip_uint8_t*>(const_cast<void*>(data)), size};
    };
    const zip_buffer_fragment_t parts[] = {fragment(member.head.data(), member.head.size()),
                                           fragment(member.body.data(), member.body.size())};
    Source source(zip_source_buffer_fragment(archive.get(), parts, 2, 0));
    check(source != nullptr, why);
    const zip_int64_t index =
        zip_file_add(archive.get(), member.name.c_str(), source.get(), ZIP_FL_ENC_UTF_8);
    check(index >= 0, why);
    std::ignore = source.release();
    const auto number = static_cast<zip_uint64_t>(index);
    const auto method = compress_ ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    check(zip_set_file_compression(archive.get(), number, method, kLevel) == 0, why);
    constexpr zip_uint16_t kJanuary1980 = 0x21;  // the first date of a zip archive, as NumPy's
    check(zip_file_set_dostime(archive.get(), number, 0, kJanuary1980, 0) == 0, why);
  }
  check(zip_close(archive.get()) == 0, why);
  std::ignore = archive.release();  // closed

  check(zip_source_open(target.get()) == 0, zip_source_error(target.get()));
  Buffer<std::byte> piece(std::size_t{1} << 20);
  zip_int64_t got = 0;
  while ((got = zip_source_read(target.get(), piece.data(), piece.size())) > 0)
    file.write(piece.span().first(static_cast<std::size_t>(got)));
  zip_source_close(target.get());
  check(got == 0, zip_source_error(target.get()));
}

}  // namespace plait
