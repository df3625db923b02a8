#!/usr/bin/env bash
# COCO and Pascal VOC sets as a user has them: checked, converted, trained on directly; and nothing of theirs is touched.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes made --train 4 --val 2 --size 64x64
go() { yolo9-train --cfg yolov9-t --hyp scratch-small --img 64 --batch 2 --epochs 1 --workers 1 --noplots --project runs "$@"; }
digest() { (cd "$1" && find -L . -type f -print0 | sort -z | xargs -0 sha256sum); }

# ---- COCO: one JSON file a split, pictures in train2017 and val2017 ------------------------------------------------
mkdir -p coco/annotations coco/train2017 coco/val2017
cp made/images/train/*.png coco/train2017/
cp made/images/val/*.png coco/val2017/
# instances SPLIT: every picture with one box, the first also with what is odd.
instances() {
  local id=0 images="" boxes="" extra=""
  for picture in coco/$12017/*.png; do
    id=$((id + 1))
    images+="{\"id\":$id,\"file_name\":\"$(basename "$picture")\",\"width\":64,\"height\":64},"
    boxes+="{\"id\":$id,\"image_id\":$id,\"category_id\":7,\"bbox\":[10,12,30,20]},"
  done
  [ $# = 1 ] || extra=$2
  printf '{"images":[%s],"categories":[{"id":7,"name":"a thing"},{"id":2,"name":"other"}],"annotations":[\n%s%s\n' \
    "${images%,}" "$extra" "${boxes%,}]}"
}
instances train '{"id":90,"image_id":1,"category_id":2,"iscrowd":1,"bbox":[1,1,9,9]},
{"id":91,"image_id":1,"category_id":5,"bbox":[1,1,9,9]},
{"id":92,"image_id":1,"category_id":2,"bbox":[40,40,60,60]},
{"id":93,"image_id":1,"category_id":2,"segmentation":{"size":[64,64],"counts":[1300,9,55,9,2723]},"bbox":[20,20,2,9]},
' > coco/annotations/instances_train2017.json
instances val > coco/annotations/instances_val2017.json
printf 'path: .\ntrain: annotations/instances_train2017.json\nval: annotations/instances_val2017.json\nnames: [a thing, other]\n' > coco/data.yaml
digest coco > coco.before

status=0
yolo9-data check coco/data.yaml > check.log || status=$?
[ $status = 3 ] || { cat check.log; fail "check gives $status for a set with a fault"; }
for line in ':2: note: annotation 90 of .*: a crowd' ':3: fault: annotation 91 of .*: category 5' \
  ':4: note: annotation 92 of .*: the box leaves'; do
  grep -q "instances_train2017.json$line" check.log || { cat check.log; fail "check does not list $line"; }
done
grep -q '^fault unknown_category: 1$' check.log || fail "check does not count by kind"
yolo9-data check coco/data.yaml --json > check.json || true
grep -q '"unknown_category": 1' check.json || fail "the JSON does not count by kind"

go --data coco/data.yaml --name coco > coco.log 2>&1 || { cat coco.log; fail "training on COCO"; }
grep -q 'instances_train2017.json:3.*category 5' coco.log || { cat coco.log; fail "the dropped row is not named"; }
expect_failure 3 "instances_train2017.json:" go --data coco/data.yaml --strict

yolo9-data convert --from coco --input coco/annotations --names "a thing,other" --output converted > convert.log || { cat convert.log; fail convert; }
grep -q 'crowd: 1, the first: .*instances_train2017.json:2' convert.log || { cat convert.log; fail "convert does not say what was dropped"; }
yolo9-data check converted/data.yaml > check.log || { cat check.log; fail "what convert made is not good"; }
grep -q '^train: 4 pictures, 6 objects (1 polygons)' check.log || { cat check.log; fail "convert lost something"; }
grep -q '^val: 2 pictures, 2 objects' check.log || { cat check.log; fail "convert lost something"; }
go --data converted/data.yaml --name converted > converted.log 2>&1 || { cat converted.log; fail "training on what convert made"; }
# The same labels in the same order: the same loss, to the last digit.
[ "$(csv_column runs/coco/results.csv train/box_loss)" = "$(csv_column runs/converted/results.csv train/box_loss)" ] ||
  fail "converted labels train otherwise"

# ---- Pascal VOC ----------------------------------------------------------------------------------------------------
mkdir -p voc/JPEGImages voc/Annotations voc/ImageSets/Main
for split in train val; do
  for picture in made/images/$split/*.png; do
    name=${split}_$(basename "$picture" .png)
    cp "$picture" "voc/JPEGImages/$name.png"
    echo "$name" >> voc/ImageSets/Main/$split.txt
    printf '<annotation><size><width>64</width><height>64</height></size>\n<object><name>dog</name><bndbox><xmin>11</xmin><ymin>13</ymin><xmax>40</xmax><ymax>32</ymax></bndbox></object>\n</annotation>\n' > "voc/Annotations/$name.xml"
  done
done
printf 'path: .\ntrain: ImageSets/Main/train.txt\nval: ImageSets/Main/val.txt\nnames: [dog]\n' > voc/data.yaml
digest voc > voc.before
yolo9-data check voc/data.yaml --strict > check.log || { cat check.log; fail "a good VOC set"; }
grep -q '^train: 4 pictures, 4 objects' check.log || { cat check.log; fail "objects of the VOC set"; }
go --data voc/data.yaml --name voc --strict > voc.log 2>&1 || { cat voc.log; fail "training on VOC"; }
yolo9-data convert --from voc --input voc --output converted --copy > convert.log || { cat convert.log; fail "convert VOC"; }
yolo9-data check converted/data.yaml --strict > check.log || { cat check.log; fail "what convert made of VOC is not good"; }

# Notes alone: an error only with --strict.
sed -i 's/<xmax>40/<xmax>90/' voc/Annotations/train_00000.xml
yolo9-data check voc/data.yaml > check.log || { cat check.log; fail "a note is no error"; }
status=0
yolo9-data check voc/data.yaml --strict > check.log || status=$?
[ $status = 3 ] || fail "a note is an error with --strict"
grep -q 'train_00000.xml:2: note: the box leaves' check.log || { cat check.log; fail "the note is not listed"; }
sed -i 's/<xmax>90/<xmax>40/' voc/Annotations/train_00000.xml

# ---- mistakes, and what must not be touched ------------------------------------------------------------------------
expect_failure 2 "holds something already" yolo9-data convert --from voc --input voc --output made
expect_failure 2 "holds the input" yolo9-data convert --from voc --input voc --output voc
expect_failure 2 "cannot be converted" yolo9-data convert --from yolo --input voc --output new
expect_failure 3 "none.json" yolo9-data convert --from coco --input none.json --output new
echo '{"images": [' > broken.json
expect_failure 3 "broken.json:2: is not JSON" yolo9-data convert --from coco --input broken.json --output new
[ ! -e new ] || fail "a refused conversion left something behind"
digest coco | diff coco.before - || fail "the COCO set was changed"
digest voc | diff voc.before - || fail "the VOC set was changed"
