// The whole public interface. Narrower headers compile faster.
#pragma once

#include <yolo9/core/boxes.h>
#include <yolo9/core/communicator.h>
#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/core/random.h>
#include <yolo9/core/resources.h>
#include <yolo9/core/safetensors.h>
#include <yolo9/core/types.h>
#include <yolo9/core/yaml.h>

#include <yolo9/memory/governor.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>
#include <yolo9/memory/source.h>
#include <yolo9/memory/step_state.h>

#include <yolo9/nn/activation.h>
#include <yolo9/nn/arguments.h>
#include <yolo9/nn/blocks.h>
#include <yolo9/nn/catalog.h>
#include <yolo9/nn/conv.h>
#include <yolo9/nn/deploy.h>
#include <yolo9/nn/flops.h>
#include <yolo9/nn/graph.h>
#include <yolo9/nn/heads.h>
#include <yolo9/nn/layer.h>
#include <yolo9/nn/links.h>
#include <yolo9/nn/model.h>
#include <yolo9/nn/resolver.h>
#include <yolo9/nn/weights.h>

#include <yolo9/loss/anchors.h>
#include <yolo9/loss/assigner.h>
#include <yolo9/loss/class_loss.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/loss/regression_loss.h>

#include <yolo9/data/augment.h>
#include <yolo9/data/batch.h>
#include <yolo9/data/check.h>
#include <yolo9/data/data_config.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/frames.h>
#include <yolo9/data/image.h>
#include <yolo9/data/image_header.h>
#include <yolo9/data/labels.h>
#include <yolo9/data/loader.h>
#include <yolo9/data/mosaic.h>
#include <yolo9/data/objects.h>
#include <yolo9/data/rect.h>
#include <yolo9/data/sampling.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/shapes.h>
#include <yolo9/data/sources.h>

#include <yolo9/eval/coco.h>
#include <yolo9/eval/detector.h>
#include <yolo9/eval/evaluator.h>
#include <yolo9/eval/metrics.h>
#include <yolo9/eval/nms.h>

#include <yolo9/train/callback.h>
#include <yolo9/train/checkpoint.h>
#include <yolo9/train/dataset_facts.h>
#include <yolo9/train/early_stop.h>
#include <yolo9/train/ema.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/image_weights.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/parameter_store.h>
#include <yolo9/train/run_options.h>
#include <yolo9/train/run_setup.h>
#include <yolo9/train/schedule.h>
#include <yolo9/train/step.h>
#include <yolo9/train/trainer.h>

#include <yolo9/monitor/csv_file.h>
#include <yolo9/monitor/memory_log.h>
#include <yolo9/monitor/pictures.h>
#include <yolo9/monitor/plots.h>
#include <yolo9/monitor/progress.h>
#include <yolo9/monitor/results.h>
#include <yolo9/monitor/run_folder.h>
#include <yolo9/monitor/run_recorder.h>
