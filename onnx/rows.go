package onnx

import (
	"maps"

	"github.com/loris-ml/loris"
)

// rows are the ops of the default domain by name, and those of other domains as "domain.name".
var rows = merge(mathRows, compareRows, castRows, reduceRows, shapeRows, gatherRows, layerRows, poolRows, normRows, controlRows, sequenceRows,
	attentionRows, resizeRows, recurrentRows, signalRows, detectRows, trainRows, randomRows, ngramRows)

// refused says of ops why they are not supported.
var refused = map[string]string{
	"StringNormalizer": reasonStrings, "StringConcat": reasonStrings, "StringSplit": reasonStrings, "RegexFullMatch": reasonStrings,
	"ImageDecoder":            "images are decoded by the program: package image of Go reads them",
	"ai.onnx.ml.LabelEncoder": reasonML, "ai.onnx.ml.TreeEnsemble": reasonML, "ai.onnx.ml.ArrayFeatureExtractor": reasonML,
	"ai.onnx.ml.Binarizer": reasonML, "ai.onnx.ml.TreeEnsembleRegressor": reasonML, "ai.onnx.ml.TreeEnsembleClassifier": reasonML,
	"ai.onnx.preview.training.Gradient": "loris.Grad records gradients of what Call returns",
}

const (
	reasonStrings = "strings are not supported: Loris computes with numbers only"
	reasonML      = "the domain ai.onnx.ml, of classical machine learning, is not supported"
)

func merge(tables ...map[string]*row) map[string]*row {
	all := map[string]*row{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// one is the row of an op with one output.
func one(lo, hi int, record func(c *call, in []*value) *value) *row {
	return &row{min: lo, max: hi, record: func(c *call, in []*value) []*value { return []*value{record(c, in)} }}
}

// many is the row of an op with several.
func many(lo, hi int, record func(c *call, in []*value) []*value) *row {
	return &row{min: lo, max: hi, record: record}
}

// folding adds what computes the result while recording.
func (r *row) folding(fold func(c *call, in []*value) *value) *row {
	r.fold = fold
	return r
}

// same is the row of a function of one tensor whose result has its type.
func same(f func(x *loris.Tensor) *loris.Tensor) *row {
	return one(1, 1, func(c *call, in []*value) *value { return out(in[0].elem, f(c.tensor(in[0]))) })
}

// with is same for functions that read attributes.
func with(f func(c *call, x *loris.Tensor) *loris.Tensor) *row {
	return one(1, 1, func(c *call, in []*value) *value { return out(in[0].elem, f(c, c.tensor(in[0]))) })
}

// wide calls f on x in f32 where x is a narrower float or an integer, and returns x's dtype: for
// formulas whose steps ONNX does not round.
func wide(x *loris.Tensor, f func(x *loris.Tensor) *loris.Tensor) *loris.Tensor {
	d := x.DType()
	if d == loris.F64 || d == loris.F32 {
		return f(x)
	}
	return f(x.Cast(loris.F32)).Cast(d)
}
