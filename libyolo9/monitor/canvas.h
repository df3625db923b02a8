// A white sheet to draw on. Internal to this layer: it shows OpenCV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <opencv2/core.hpp>

namespace yolo9 {

// The colour of class or series k, BGR; neighbours differ well.
cv::Scalar palette_colour(int64_t k);
// What OpenCV's font can show: each character outside ASCII becomes one '?'.
std::string printable(const std::string& text);

enum class Align { Begin, Centre, End };  // of text, along its line

// Coordinates are in output pixels; everything is drawn at twice the size and reduced on saving, which smooths
// lines and letters.
class Canvas {
 public:
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }

  void line(cv::Point2d a, cv::Point2d b, const cv::Scalar& colour, double thickness = 1);
  // Points that are not finite break the line. Drawn only inside `clip`.
  void polyline(const std::vector<cv::Point2d>& points, const cv::Scalar& colour, double thickness,
                const cv::Rect2d& clip);
  void dot(cv::Point2d centre, double radius, const cv::Scalar& colour);
  void fill(const cv::Rect2d& area, const cv::Scalar& colour);
  void frame(const cv::Rect2d& area, const cv::Scalar& colour, double thickness = 1);
  // Vertically centred on `at`. `size` is the letters' height in pixels.
  void text(const std::string& text, cv::Point2d at, double size, Align align = Align::Begin,
            const cv::Scalar& colour = {40, 40, 40});
  // Reads upwards, centred on `at`.
  void vertical_text(const std::string& text, cv::Point2d at, double size);
  double text_width(const std::string& text, double size) const;

  // Places a picture (8-bit, BGR) stretched over the area.
  void picture(const cv::Mat& image, const cv::Rect2d& area);
  // Throws Error(Usage) if the file cannot be written.
  void save(const std::string& path) const;

 private:
  int width_, height_;
  cv::Mat sheet_;
};

// Writes a picture by its extension; Error(Usage) if that fails.
void save_picture(const std::string& path, const cv::Mat& image);

}  // namespace yolo9
