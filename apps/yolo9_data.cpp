// yolo9-data: makes the small synthetic data set, checks data sets and converts them.
#include <iostream>

#include <yolo9/yolo9.h>

#include "program.h"

using namespace yolo9;

namespace {

// "192x128": width, then height.
void parse_size(const std::string& text, ShapesOptions& options) {
  const size_t cross = text.find('x');
  const auto number = [&](const std::string& part) {
    if (part.empty() || part.size() > 5 || part.find_first_not_of("0123456789") != std::string::npos) {
      throw Error(ErrorKind::Usage, "\"" + text + "\" is not a size", "--size", "write WIDTHxHEIGHT, such as 192x192");
    }
    return std::stoll(part);
  };
  options.width = number(text.substr(0, cross));
  options.height = number(cross == std::string::npos ? "" : text.substr(cross + 1));
}

int run_make_shapes(const std::string& folder, const std::string& size, ShapesOptions options) {
  parse_size(size, options);
  make_shapes(folder, options);
  std::cout << folder << "/data.yaml: " << options.train << " training and " << options.val
            << " validation pictures of " << options.width << "x" << options.height << "\n";
  return kExitDone;
}

void print_split(const SplitReport& split, const std::vector<std::string>& names) {
  std::cout << split.name << ": " << split.pictures << " pictures, " << split.objects << " objects (" << split.polygons
            << " polygons), " << split.unlabelled << " without label file, " << split.empty << " with an empty one\n";
  for (size_t i = 0; i < names.size(); ++i) {
    std::cout << "  " << i << " " << names[i] << ": " << split.class_counts[i] << "\n";
  }
}

int run_check(const std::string& data, bool json, bool strict) {
  const DataReport report = check_data(load_data_config(data));
  if (json) {
    std::cout << to_json(report) << "\n";
  } else {
    for (const DataFinding& finding : report.findings) std::cout << to_string(finding) << "\n";
    for (const SplitReport& split : report.splits) print_split(split, report.names);
    for (const KindCount& kind : report.kinds()) {
      std::cout << (kind.is_fault ? "fault " : "note ") << kind.kind << ": " << kind.count << "\n";
    }
    std::cout << report.faults() << (report.faults() == 1 ? " fault, " : " faults, ") << report.notes()
              << (report.notes() == 1 ? " note\n" : " notes\n");
  }
  const bool bad = report.faults() > 0 || (strict && report.notes() > 0);
  return bad ? static_cast<int>(ErrorKind::Data) : kExitDone;
}

int run_convert(const std::string& from, ConvertOptions options) {
  if (from != "coco" && from != "voc") {
    throw Error(ErrorKind::Usage, "\"" + from + "\" cannot be converted", "--from", "choose coco or voc");
  }
  options.from = from == "coco" ? ConvertFrom::Coco : ConvertFrom::Voc;
  const ConvertReport report = convert_data(options);
  for (const ConvertReport::Split& split : report.splits) {
    std::cout << options.output << "/data.yaml: " << split.name << ": " << split.pictures << " pictures, "
              << split.objects << " objects\n";
  }
  if (report.missing_pictures > 0) {
    std::cout << report.missing_pictures << " pictures left out, the first: " << report.example.at("picture") << "\n";
  }
  for (const auto& [kind, count] : report.faults) {
    std::cout << kind << ": " << count << ", the first: " << report.example.at(kind) << "\n";
  }
  return kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes the small synthetic data set, checks data sets, and converts them.", "yolo9-data");
  app.require_subcommand(1);
  app.fallthrough();

  std::string folder, size = "192x192";
  ShapesOptions shapes;
  CLI::App* make = app.add_subcommand("make-shapes", "write a small data set of coloured shapes");
  make->add_option("folder", folder, "where to write data.yaml, images/ and labels/")->required();
  make->add_option("--seed", shapes.seed, "another seed gives other pictures")->capture_default_str();
  make->add_option("--train", shapes.train, "training pictures")->capture_default_str();
  make->add_option("--val", shapes.val, "validation pictures")->capture_default_str();
  make->add_option("--size", size, "of the pictures, WIDTHxHEIGHT")->capture_default_str();

  std::string data;
  bool json = false, strict = false;
  CLI::App* check = app.add_subcommand("check", "list every fault of a data set with file and line");
  check->add_option("data", data, "data.yaml")->required();
  check->add_flag("--json", json, "print the report as JSON");
  check->add_flag("--strict", strict, "exit status 3 for notes as well as for faults");

  std::string from;
  ConvertOptions convert_options;
  CLI::App* convert = app.add_subcommand("convert", "write a data set with YOLO labels from COCO JSON or Pascal VOC");
  convert->add_option("--from", from, "coco or voc")->required();
  convert
      ->add_option("--input", convert_options.input,
                   "COCO: the JSON file or a folder of them; VOC: the folder of the set or of its XML files")
      ->required();
  convert->add_option("--output", convert_options.output, "an empty or new folder, or one made by this command")
      ->required();
  convert->add_option("--images", convert_options.images, "the folder of the pictures, if it is an unusual one");
  convert->add_option("--names", convert_options.names, "the classes; otherwise those of the input")->delimiter(',');
  convert->add_flag("--copy", convert_options.copy_pictures, "copy pictures instead of making symbolic links");

  return run_program(app, argc, argv, [&] {
    if (convert->parsed()) return run_convert(from, convert_options);
    return make->parsed() ? run_make_shapes(folder, size, shapes) : run_check(data, json, strict);
  });
}
