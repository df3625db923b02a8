// Pictures and video frames to detect on, one after the other, as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <yolo9/core/types.h>

namespace yolo9 {

struct Frame {
  torch::Tensor image;  // uint8 [3,H,W], RGB
  std::string path;     // of the picture or video
  bool video = false;
  int64_t number = 0;  // of a video's frame, from 0
  int64_t frames = 0;  // of the video, 0 if it does not tell
  double frames_per_second = 0;
};

bool has_video_extension(const std::string& path);

// What a source names, sorted within each part: a picture or video file, a folder of them (nested), a pattern with
// * ? [], or a .txt list of any of these, one a line, relative to the list or the current folder.
// Throws Error(Data) if there is nothing.
std::vector<std::string> expand_source(const std::string& source);

class FrameSource {
 public:
  explicit FrameSource(std::vector<std::string> paths);
  ~FrameSource();
  FrameSource(const FrameSource&) = delete;
  FrameSource& operator=(const FrameSource&) = delete;

  // The next frame, or nothing at the end. A file that cannot be decoded is named in a warning and passed over;
  // Error(Data) if that was true of all.
  std::optional<Frame> next();
  int64_t unreadable() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes frames of one size as a video (MPEG-4 part 2 in .mp4).
class VideoSink {
 public:
  // Throws Error(Usage) if it cannot be written.
  VideoSink(const std::string& path, double frames_per_second, int64_t height, int64_t width);
  ~VideoSink();
  VideoSink(const VideoSink&) = delete;
  VideoSink& operator=(const VideoSink&) = delete;
  void write(const torch::Tensor& image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A picture as one network input: longest side to `size`, padded to multiples of `stride`. uint8 [3,h,w].
torch::Tensor letterbox_picture(const torch::Tensor& image, int64_t size, int64_t stride, LetterboxInfo& info);

}  // namespace yolo9
