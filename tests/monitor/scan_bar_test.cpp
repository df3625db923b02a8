#include <yolo9/monitor/progress.h>

#include <sstream>
#include <thread>

#include <catch2/catch.hpp>

using yolo9::ScanBar;

TEST_CASE("scan_bar: one line on a terminal, gone at the end", "[monitor]") {
  CHECK(ScanBar::line(50, 200, 10) == "scan [=======                       ] 50 of 200 pictures, 30s left");
  std::ostringstream stream;
  ScanBar bar(stream, true);
  bar.update(1, 200);
  CHECK(stream.str().empty());  // too early to be worth a line
  std::this_thread::sleep_for(std::chrono::milliseconds(550));
  bar.update(100, 200);
  const std::string shown = stream.str();
  CHECK(shown.find("100 of 200 pictures") != std::string::npos);
  CHECK(shown.find('\n') == std::string::npos);
  bar.update(200, 200);
  CHECK(stream.str().size() > shown.size());
  CHECK(stream.str().back() == '\r');
  // Another scan begins its own time.
  const size_t before = stream.str().size();
  bar.update(10, 20);
  CHECK(stream.str().size() == before);
}

TEST_CASE("scan_bar: a short scan says nothing where there is no terminal", "[monitor]") {
  std::ostringstream stream;
  ScanBar bar(stream, false);
  for (int i = 0; i <= 100; ++i) bar.update(i, 100);
  CHECK(stream.str().empty());
}
