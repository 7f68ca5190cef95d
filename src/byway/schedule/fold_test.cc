// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/fold.h"

#include <gtest/gtest.h>

#include "byway/base/error.h"

namespace byway {
namespace {

class Values : public testing::Test {
 protected:
  ValueId x(int position) { return table_.raw(position); }
  std::string order(int size, int owner) { return table_.text(expectedFold(table_, size, owner)); }
  ValueTable table_;
};

TEST_F(Values, AreEqualWhenTheirStructureIs) {
  EXPECT_EQ(x(3), x(3));
  EXPECT_NE(x(3), x(4));
  EXPECT_EQ(table_.fold({x(0), x(1)}), table_.fold({x(0), x(1)}));
  EXPECT_NE(table_.fold({x(0), x(1)}), table_.fold({x(1), x(0)}));
  const ValueId sum = table_.fold({x(0), x(1)});
  EXPECT_EQ(table_.finished(sum, 2), table_.finished(sum, 2));
  EXPECT_NE(table_.finished(sum, 2), table_.finished(sum, 3));
  EXPECT_NE(table_.finished(sum, 2), sum);
  EXPECT_NE(table_.fold({x(0)}), x(0)) << "PREMUL_SUM multiplies what is folded";
}

TEST_F(Values, HaveTheirKind) {
  EXPECT_EQ(table_.kind(0), ValueKind::None);
  EXPECT_EQ(table_.kind(x(0)), ValueKind::Raw);
  const ValueId sum = table_.fold({x(0)});
  EXPECT_EQ(table_.kind(sum), ValueKind::Partial);
  EXPECT_EQ(table_.kind(table_.finished(sum, 1)), ValueKind::Final);
}

TEST_F(Values, ContinueAPartialInFrontOnly) {
  const ValueId sum = table_.fold({x(0), x(1)});
  EXPECT_EQ(table_.fold({sum, x(2)}), table_.fold({x(0), x(1), x(2)}));
  EXPECT_EQ(table_.fold({sum}), sum);
  EXPECT_EQ(table_.text(table_.fold({x(2), sum})), "(x2 + (x0 + x1))");
  EXPECT_EQ(table_.text(table_.fold({sum, sum})), "(x0 + x1 + (x0 + x1))");
}

TEST_F(Values, Print) {
  EXPECT_EQ(table_.text(0), "nothing");
  EXPECT_EQ(table_.text(x(12)), "x12");
  EXPECT_EQ(table_.text(table_.finished(table_.fold({x(0), x(1)}), 2)), "finished(x0 + x1)/2");
}

TEST_F(Values, FoldSomething) { EXPECT_THROW(table_.fold({}), Error); }

TEST_F(Values, OrderOfASmallGroup) {
  EXPECT_EQ(order(1, -1), "(x0)");
  EXPECT_EQ(order(1, 0), "(x0)");
  EXPECT_EQ(order(3, -1), "(x0 + x1 + x2)");
  EXPECT_EQ(order(3, 0), "(x1 + x2 + x0)");
  EXPECT_EQ(order(3, 1), "(x0 + x2 + x1)");
  EXPECT_EQ(order(3, 2), "(x0 + x1 + x2)");
}

std::string row(int first, int last) {
  std::string text = "x" + std::to_string(first);
  for (int i = first + 1; i <= last; ++i) text += " + x" + std::to_string(i);
  return text;
}

TEST_F(Values, OrderOfALargeGroup) {
  EXPECT_EQ(order(16, -1), "(" + row(0, 15) + ")");
  EXPECT_EQ(order(17, -1), "(" + row(0, 16) + ")");
  EXPECT_EQ(order(18, -1), "(" + row(0, 15) + " + (x16 + x17))");
  EXPECT_EQ(order(33, -1), "(" + row(0, 15) + " + (" + row(16, 31) + ") + x32)");
  EXPECT_EQ(order(40, -1), "(" + row(0, 15) + " + (" + row(16, 31) + ") + (" + row(32, 39) + "))");
}

// The owner leaves a gap in its block; it does not move the borders.
TEST_F(Values, OrderOfALargeGroupWithAnOwner) {
  EXPECT_EQ(order(18, 0), "(" + row(1, 15) + " + (x16 + x17) + x0)");
  EXPECT_EQ(order(18, 17), "(" + row(0, 15) + " + x16 + x17)");
  EXPECT_EQ(order(17, 16), "(" + row(0, 15) + " + x16)");
  EXPECT_EQ(order(20, 18), "(" + row(0, 15) + " + (x16 + x17 + x19) + x18)");
}

}  // namespace
}  // namespace byway
