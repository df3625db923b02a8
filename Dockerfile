# docker build -t yolo9 .                           CPU
# docker build -t yolo9 --build-arg YOLO9_CUDA=1 .  CUDA; run it with --gpus all
# docker run --rm -v "$PWD:/work" yolo9 yolo9-train --data data.yaml --cfg yolov9-t
FROM debian:12 AS build
ARG YOLO9_CUDA=0
ENV YOLO9_CUDA=${YOLO9_CUDA} YOLO9_DEPS=/opt/yolo9-deps
WORKDIR /src
COPY . .
RUN ./yolo9 build \
 && cmake --install build --prefix /opt/yolo9 --strip \
 && rm -rf /opt/yolo9/include /opt/yolo9/lib /opt/yolo9-deps/torch-*/torch/include /opt/yolo9-deps/torch-*/torch/bin

# The same base, and LibTorch in the same place, so that libraries and RPATHs agree with the build stage.
FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 libopencv-imgcodecs406 libopencv-imgproc406 \
      libopencv-videoio406 libjpeg62-turbo libpng16-16 libexpat1 libspdlog1.10 libyaml-cpp0.7 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 yolo9
COPY --from=build /opt/yolo9-deps /opt/yolo9-deps
COPY --from=build /opt/yolo9 /opt/yolo9
ENV PATH=/opt/yolo9/bin:$PATH NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER yolo9
WORKDIR /work
CMD ["yolo9-train", "--help"]
