#include <yolo9/data/batch.h>

#include <set>

#include <catch2/catch.hpp>

TEST_CASE("memory that nobody holds is used again", "[data]") {
  yolo9::BatchMemory memory(3);
  std::set<const void*> seen;
  for (int i = 0; i < 50; ++i) {
    const auto images = memory.take({2, 3, 64, 64});
    CHECK(images.sizes() == at::IntArrayRef({2, 3, 64, 64}));
    CHECK(images.is_contiguous());
    seen.insert(images.data_ptr());
  }
  CHECK(seen.size() == 1);
}

TEST_CASE("memory that is held is left alone", "[data]") {
  yolo9::BatchMemory memory(2);
  std::vector<at::Tensor> held;
  for (int i = 0; i < 6; ++i) {
    auto images = memory.take({2, 3, 8, 8});
    images.fill_(i);
    // A slice, a view of another shape and the whole hold it alike.
    if (i % 3 == 0) images = images.narrow(0, 1, 1);
    if (i % 3 == 1) images = images.view({-1});
    held.push_back(images);
  }
  for (int i = 0; i < 6; ++i) CHECK(held[static_cast<size_t>(i)].eq(i).all().item<bool>());
}

TEST_CASE("released memory is not kept, but stays with its holder", "[data]") {
  yolo9::BatchMemory memory(2);
  auto held = memory.take({1, 3, 8, 8});
  held.fill_(7);
  memory.release();
  memory.take({1, 3, 8, 8}).fill_(1);
  CHECK(held.eq(7).all().item<bool>());
}

TEST_CASE("memory serves changing shapes", "[data]") {
  yolo9::BatchMemory memory(2);
  for (const int64_t side : {8, 64, 16, 64, 32, 128, 8}) {
    const auto a = memory.take({1, 3, side, side});
    const auto b = memory.take({1, 3, side, side});
    const auto c = memory.take({1, 3, side, side});  // one more than are kept
    CHECK(std::set<const void*>{a.data_ptr(), b.data_ptr(), c.data_ptr()}.size() == 3);
    CHECK(a.numel() == 3 * side * side);
    CHECK(static_cast<int64_t>(a.storage().nbytes()) >= a.numel());
  }
}

TEST_CASE("a batch needs as many samples as pictures", "[data]") {
  CHECK_THROWS_AS(yolo9::collate({}), c10::Error);
  CHECK_THROWS_AS(yolo9::collate_into(at::empty({2, 3, 4, 4}, at::kByte), std::vector<yolo9::Sample>(1)), c10::Error);
}
