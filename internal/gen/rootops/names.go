package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// byHand are the rows that the root package gives another form by hand: sources
// of tensors, which take settings, and ops with arguments that choose a row.
var byHand = map[string]string{
	"add": "Add", "sub": "Sub", "div": "Div",
	"full": "Full", "arange": "Arange", "linspace": "Linspace", "eye": "Eye",
	"uniform": "Rand, Uniform", "normal": "Randn, Normal", "randint": "RandInt",
	"randperm": "RandPerm", "bernoulli": "Bernoulli", "dropout": "Dropout",
}

// internal reports whether a row is one of ATen's own, which users do not call.
func internal(sp *ir.Spec) bool { return sp.Name[0] == '_' && sp.GoName == "" }

// optionNames are the options whose name is not the CamelCase of the argument's,
// which would mean nothing alone or is taken: by op and argument, or by argument.
var optionNames = map[string]string{
	"dtype": "As", "enable_gqa": "EnableGQA",
	"b_ih": "InputBias", "b_hh": "HiddenBias",
	"norm.p": "Ord", "cdist.p": "Ord", "grid_sample.mode": "InterpolateMode", "embedding_bag.mode": "BagMode", "pdist.p": "Ord", "roll.dims": "Dim",
	"nan": "NaNTo", "posinf": "PosInfTo", "neginf": "NegInfTo",
	"slice.start": "SliceStart", "slice.end": "SliceEnd", "slice.step": "SliceStep",
	"slice_scatter.start": "SliceStart", "slice_scatter.end": "SliceEnd", "slice_scatter.step": "SliceStep",
	"addcmul.value": "AddcValue", "addcdiv.value": "AddcValue", "pad.value": "PadValue",
	"rot90.k": "Turns", "rot90.dims": "RotationDims", "tril_indices.offset": "DiagonalOffset", "triu_indices.offset": "DiagonalOffset",
	"hamming_window.alpha": "HammingAlpha", "hamming_window.beta": "HammingBeta", "kaiser_window.beta": "KaiserBeta",
	"linalg_norm.ord": "MatrixOrd", "linalg_cond.p": "MatrixOrd", "istft.length": "SignalLength",
	"dist.p": "Ord", "equal_nan": "EqualNaN", "out_dtype": "OutDType",
	"diagonal.offset": "DiagonalOffset", "diagonal_scatter.offset": "DiagonalOffset", "diff.n": "DiffOrder", "diff.prepend": "DiffPrepend", "diff.append": "DiffAppend", "tril.diagonal": "DiagonalOffset", "triu.diagonal": "DiagonalOffset",
	"dim1": "DiagonalDims", "dim2": "DiagonalDims",
	"softplus.threshold": "SoftplusThreshold", "elu.scale": "EluScale", "elu.input_scale": "EluInputScale",
	"interpolate.size": "OutputSize", "interpolate.mode": "InterpolateMode", "pad.mode": "PadMode",
	"local_response_norm.k": "ResponseBias", "density": "BinDensity", "deform_conv2d.mask": "TapMask",
	"histc.min": "BinsFrom", "histc.max": "BinsTo", "right": "SearchRight", "side": "SearchSide",
	"transpose": "Transposed", "linalg_matrix_norm.ord": "MatrixOrd", "linalg_qr.mode": "QRMode",
	"norm": "FFTNorm", "n": "FFTSize", "s": "FFTSizes", "d": "SampleSpacing",
	"segment_reduce.initial": "SegmentInitial", "segment_reduce.offsets": "SegmentOffsets",
}

// optionName is the name of the constructor of an op's optional argument.
func optionName(op, param string) string {
	return cmp.Or(optionNames[op+"."+param], optionNames[param], camel(param))
}

// handWritten returns the exported names of the root package's own files.
func handWritten(root string) (map[string]bool, error) {
	paths, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_gen.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			for _, n := range declared(d) {
				names[n] = true
			}
		}
	}
	return names, nil
}

// declared returns the names that a declaration adds to the package.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// camel turns snake_case into CamelCase.
func camel(s string) string {
	var b strings.Builder
	for _, w := range strings.Split(s, "_") {
		if w != "" {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// paramName is the name of a Go parameter.
func paramName(name string) string {
	c := lowerFirst(camel(name))
	switch {
	case token.IsKeyword(c), c == "len", c == "min", c == "max", c == "any", c == "opts", c == "t":
		return c + "_"
	}
	return c
}

// lowerFirst makes an exported name an unexported one: dim of Dim, lu of LU, fftOption of FFTOption.
func lowerFirst(s string) string {
	n := 1
	for n < len(s) && 'A' <= s[n] && s[n] <= 'Z' {
		n++
	}
	if 1 < n && n < len(s) && 'a' <= s[n] && s[n] <= 'z' {
		n-- // the first letter of the next word
	}
	return strings.ToLower(s[:n]) + s[n:]
}
