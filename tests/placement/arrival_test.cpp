#include "plait/placement/arrival.h"

#include <gtest/gtest.h>

#include <set>

namespace plait {
namespace {

TEST(Arrival, EachRankHasOneSenderInEachTurn) {
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (int turn = 1; turn < ranks; ++turn) {
      std::set<int> receivers;
      for (int rank = 0; rank < ranks; ++rank) {
        const int to = receiver_in_turn(rank, turn, ranks);
        EXPECT_NE(to, rank) << ranks << " ranks, turn " << turn;
        EXPECT_TRUE(receivers.insert(to).second) << ranks << " ranks, turn " << turn;
        // The receiver waits for this rank's block in this turn.
        EXPECT_EQ(sender_in_turn(to, turn, ranks), rank) << ranks << " ranks, turn " << turn;
      }
      EXPECT_EQ(*receivers.begin(), 0);
      EXPECT_EQ(*receivers.rbegin(), ranks - 1);
    }
}

TEST(Arrival, EachRankServesAllOthersOnce) {
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> served, met;
      for (int turn = 1; turn < ranks; ++turn) {
        served.insert(receiver_in_turn(rank, turn, ranks));
        met.insert(sender_in_turn(rank, turn, ranks));
      }
      EXPECT_EQ(served.size(), static_cast<std::size_t>(ranks - 1));
      EXPECT_EQ(served, met);
      EXPECT_FALSE(served.contains(rank));
    }
}

}  // namespace
}  // namespace plait
