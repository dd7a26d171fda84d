// Matrices of SciPy that are no csr; npz_test.cpp has those that are.
#include "plait/io/scipy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/npz_archive.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string parse_error(const Arrays& arrays) {
  return error_of([&] { parse(arrays); });
}

// Entries (0, 3) = 2, (1, 0) = 1 and (3, 2) = -1 of a matrix of 4 x 4.
Arrays scipy_form(const std::string& form) {
  Arrays arrays{{"format", file_of(dictionary("|S3", "()"), form)},
                {"shape", file_of<std::int64_t>("<i8", "(2,)", {4, 4})}};
  const auto ids = [](const char* shape, const Int32s& values) {
    return file_of<std::int32_t>("<i4", shape, values);
  };
  if (form == "coo") {
    arrays["row"] = ids("(3,)", {3, 0, 1});
    arrays["col"] = ids("(3,)", {2, 3, 0});
    arrays["data"] = file_of<float>("<f4", "(3,)", {-1, 2, 1});
  } else if (form == "csc") {
    arrays["indptr"] = ids("(5,)", {0, 1, 1, 2, 3});
    arrays["indices"] = ids("(3,)", {1, 3, 0});
    arrays["data"] = file_of<float>("<f4", "(3,)", {1, -1, 2});
  } else {
    arrays["indptr"] = ids("(3,)", {0, 2, 3});
    arrays["indices"] = ids("(3,)", {1, 0, 1});
    arrays["data"] = file_of<float>("<f4", "(3, 2, 2)", {0, 2, 0, 0, 0, 0, 1, 0, 0, 0, -1, 0});
  }
  return arrays;
}

TEST(NpzScipy, OtherForms) {
  for (const char* form : {"coo", "csc", "bsr"}) {
    ParsedDataset parsed =
        parse(with(scipy_form(form), "_is_array", file_of<std::uint8_t>("|b1", "()", {1})));
    EXPECT_THAT(parsed.warnings, IsEmpty()) << form;
    const auto csr = std::get<Csr32>(build_csr(std::move(parsed.edges)));
    EXPECT_THAT(csr.offsets.span(), ElementsAre(0, 1, 2, 2, 3)) << form;
    EXPECT_THAT(csr.neighbours.span(), ElementsAre(3, 0, 2)) << form;
    EXPECT_THAT(csr.weights.span(), ElementsAre(2, 1, -1)) << form;
  }
}

TEST(NpzScipy, RefusesOtherFormsThatAreWrong) {
  const auto error = [](const char* form, const char* key, const std::string& file) {
    return parse_error(with(scipy_form(form), key, file));
  };
  const auto shape = [](std::int64_t n) { return file_of<std::int64_t>("<i8", "(2,)", {n, n}); };
  EXPECT_THAT(error("coo", "shape", shape(3)), HasSubstr("array row: element (0): value 3"));
  EXPECT_THAT(error("coo", "shape", shape(400000000)),
              HasSubstr("array shape: 400000000 vertices"));
  EXPECT_THAT(error("coo", "col", file_of<std::int32_t>("<i4", "(1,)", {1})),
              HasSubstr("array col"));
  EXPECT_THAT(error("coo", "data", file_of<float>("<f4", "(1,)", {1})), HasSubstr("array data"));
  EXPECT_THAT(error("csc", "shape", shape(5)), HasSubstr("array indptr"));
  EXPECT_THAT(error("csc", "indices", file_of<std::int32_t>("<i4", "(3,)", {1, 4, 0})),
              HasSubstr("value 4 is outside 0..3"));
  EXPECT_THAT(error("bsr", "shape", shape(5)), HasSubstr("(blocks, height, width)"));
  EXPECT_THAT(error("bsr", "data", file_of<float>("<f4", "(2, 2, 2)", Floats(8))),
              HasSubstr("where (3, 2, 2) belongs"));
  EXPECT_THAT(error("bsr", "data", file_of<float>("<f4", "(3, 0, 2)", {})),
              HasSubstr("array data"));
  EXPECT_THAT(error("bsr", "data", file_of<float>("<f4", "(12,)", Floats(12))),
              HasSubstr("array data"));
  EXPECT_THAT(error("bsr", "indices", file_of<std::int32_t>("<i4", "(3,)", {1, 0, 2})),
              HasSubstr("value 2 is outside 0..1"));
  Arrays huge = with(scipy_form("bsr"), "shape", shape(400000000));
  huge["indptr"] = file_of<std::int32_t>("<i4", "(3,)", {0, 0, 0});
  huge["indices"] = file_of<std::int32_t>("<i4", "(0,)", {});
  huge["data"] = file_of<float>("<f4", "(0, 200000000, 200000000)", {});
  EXPECT_THAT(parse_error(huge), HasSubstr("400000000 vertices are far more"));
}

}  // namespace
}  // namespace plait
