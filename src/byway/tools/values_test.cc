// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(ValuesTest, Bytes) {
  EXPECT_EQ(parseBytes("0", "--bytes"), 0u);
  EXPECT_EQ(parseBytes("8M", "--bytes"), 8000000u);
  EXPECT_EQ(parseBytes("64Ki", "--bytes"), 65536u);
  EXPECT_EQ(parseBytes("1.5k", "--bytes"), 1500u);
  EXPECT_EQ(parseBytes("1Gi", "--bytes"), std::uint64_t{1} << 30);
  for (const char* bad : {"", "M", "-1", "1.5", "8MB", "x", "1e30", "nan"}) {
    EXPECT_THAT(refusal([&] { parseBytes(bad, "--bytes"); }), HasSubstr("--bytes")) << bad;
  }
}

TEST(ValuesTest, Sizes) {
  EXPECT_THAT(parseSizes("4Ki-64Ki", "--sizes"), ElementsAre(4096, 16384, 65536));
  EXPECT_THAT(parseSizes("4Ki-1Gi", "--sizes"), SizeIs(10));
  EXPECT_THAT(parseSizes("1k,3k", "--sizes"), ElementsAre(1000, 3000));
  EXPECT_THAT(parseSizes("4Ki:16Ki:x2", "--sizes"), ElementsAre(4096, 8192, 16384));
  EXPECT_THAT(parseSizes("4Ki:64Ki", "--sizes"), ElementsAre(4096, 16384, 65536));
  EXPECT_THAT(parseSizes("1k,4Ki:8Ki:x2,3k", "--sizes"), ElementsAre(1000, 4096, 8192, 3000));
  for (const char* bad : {"4k:8k:2", "4k:8k:x1", "4k:8k:x", "4k:8k:x2:1", "4k:", "4k-8k-16k"}) {
    EXPECT_THAT(refusal([&] { parseSizes(bad, "--sizes"); }), HasSubstr("--sizes")) << bad;
  }
  EXPECT_THAT(refusal([] { parseSizes("8k-4k", "--sizes"); }), HasSubstr("range"));
  EXPECT_THAT(refusal([] { parseSizes("0-4k", "--sizes"); }), HasSubstr("range"));
}

TEST(ValuesTest, Rates) {
  EXPECT_EQ(parseRate("10M", "--rate"), 1e7);
  EXPECT_EQ(parseRate("50G", "--rate"), 5e10);
  EXPECT_THAT(refusal([] { parseRate("0", "--rate"); }), HasSubstr("\"0\""));
  EXPECT_THAT(refusal([] { parseRate("fast", "--rate"); }), HasSubstr("\"fast\""));
}

TEST(ValuesTest, Groups) {
  const auto groups = parseGroups("0,1;2,3", "--groups");
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[1].ranks, ElementsAre(2, 3));
  EXPECT_EQ(groupsText(groups), "0,1;2,3");
  for (const char* bad : {"", "0,", ";", "a", "0,-1", "0;;1"}) {
    EXPECT_THAT(refusal([&] { parseGroups(bad, "--groups"); }), HasSubstr("not a rank")) << bad;
  }
}

TEST(ValuesTest, RegularGroups) {
  EXPECT_EQ(groupsText(regularGroups(8, 2, false)), "0,1");
  EXPECT_EQ(groupsText(regularGroups(8, 3, true)), "0,1,2;3,4,5");
}

TEST(ValuesTest, Names) {
  EXPECT_EQ(collectiveNamed("all-to-all"), Collective::AllToAll);
  EXPECT_EQ(dtypeNamed("bfloat16"), DType::BFloat16);
  EXPECT_EQ(reduceOpNamed("avg"), ReduceOp::Avg);
  EXPECT_THAT(refusal([] { collectiveNamed("sum"); }), HasSubstr("allreduce, all-gather"));
  EXPECT_THAT(refusal([] { dtypeNamed("float"); }), HasSubstr("float32"));
}

TEST(ValuesTest, BytesAsText) {
  EXPECT_EQ(bytesText(8000000), "8 MB");
  EXPECT_EQ(bytesText(65536), "64 KiB");
  EXPECT_EQ(bytesText(999), "999 B");
}

}  // namespace
}  // namespace byway::tools
