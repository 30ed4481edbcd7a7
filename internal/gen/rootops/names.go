package main

import (
	"go/token"
	"strings"

	"github.com/loris-ml/loris/ir"
)

// byHand are the rows that the root package gives another form by hand: sources
// of tensors, which take settings, and ops with arguments that choose a row.
var byHand = map[string]string{
	"add": "Add", "sub": "Sub", "div": "Div",
	"full": "Full", "arange": "Arange", "linspace": "Linspace", "eye": "Eye",
	"uniform": "Rand, Uniform", "normal": "Randn, Normal", "randint": "RandInt",
	"randperm": "RandPerm", "bernoulli": "Bernoulli", "dropout": "Dropout",
}

// goNames are the ops whose Go name is not the CamelCase of ATen's.
var goNames = map[string]string{
	"matmul": "MatMul", "isnan": "IsNaN", "isinf": "IsInf", "isfinite": "IsFinite",
	"logsumexp": "LogSumExp", "_scaled_mm": "ScaledMM", "_int_mm": "IntMM",
}

// reserved are the names of the root package that options must not take, on top
// of those of the ops.
var reserved = map[string]bool{
	"Add": true, "Sub": true, "Div": true, "Full": true, "Arange": true, "Linspace": true, "Eye": true,
	"Rand": true, "Randn": true, "Uniform": true, "Normal": true, "RandInt": true, "RandPerm": true, "Bernoulli": true,
	"Zeros": true, "Ones": true, "Scalar": true, "Constant": true, "FromSlice": true, "FromBytes": true,
	"Tensor": true, "Variable": true, "Session": true, "Function": true, "Opt": true, "Shape": true, "DType": true,
	"Device": true, "Report": true, "Hash": true, "Hooks": true, "Elem": true, "Maker": true, "Bool": true,
	"Sync": true, "Keep": true, "Discard": true, "Grad": true, "Read": true, "Fetch": true, "Try": true,
	"Compile": true, "Default": true, "New": true, "With": true, "As": true, "On": true, "In": true,
	"Ref": true, "Null": true, "CPU": true,
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

func goName(sp *ir.Spec) string {
	if n, ok := goNames[sp.Name]; ok {
		return n
	}
	return camel(sp.Name)
}

// paramName is the name of a Go parameter.
func paramName(name string) string {
	c := camel(name)
	c = strings.ToLower(c[:1]) + c[1:]
	switch {
	case token.IsKeyword(c), c == "len", c == "min", c == "max", c == "any", c == "opts", c == "t":
		return c + "_"
	}
	return c
}

// optName is the name of an option's constructor.
func optName(param string, taken map[string]bool) string {
	if param == "dtype" {
		return "As"
	}
	if n := camel(param); !reserved[n] && !taken[n] {
		return n
	}
	return camel(param) + "Opt"
}
