package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// OpCallModel runs a model that another runtime compiled, see backend.Callable. Ops leaves it out,
// since its meaning is the model's.
var opCallModel = declare("call_model")

func init() {
	register("call_model(Tensor[] inputs, int model, str outputs) -> Tensor[]", Spec{
		Doc:      "The outputs of a model that is registered in this process under a number, whose shapes are given as text. Each use runs the model, also on equal inputs.",
		Category: CustomCall, Impure: true, Infer: inferCallModel,
		NoGrad: "the model is opaque", GradFails: true,
	})
}

func inferCallModel(a Args) []Shape {
	shapes, err := parseShapes(a.Str("outputs"))
	if err != nil {
		a.Fail(ErrArg, "outputs: %v", err)
	}
	return shapes
}

// AppendShapes writes shapes as ParseShapes reads them: "f32[8,10] i64[]".
func AppendShapes(b []byte, shapes []Shape) []byte {
	for i, s := range shapes {
		if i > 0 {
			b = append(b, ' ')
		}
		b = s.Append(b)
	}
	return b
}

// parseShapes reads shapes separated by spaces.
func parseShapes(text string) ([]Shape, error) {
	var out []Shape
	for _, word := range strings.Fields(text) {
		s, err := parseShape(word)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// parseShape reads what Shape.String writes.
func parseShape(text string) (Shape, error) {
	name, rest, _ := strings.Cut(text, "[")
	list, closed := strings.CutSuffix(rest, "]")
	d, err := ParseDType(name)
	if err != nil || !closed {
		return Shape{}, fmt.Errorf("%w: %q is no shape such as f32[8,64]", ErrArg, text)
	}
	var dims []int
	if list != "" {
		for _, w := range strings.Split(list, ",") {
			n, err := strconv.Atoi(w)
			if err != nil {
				return Shape{}, fmt.Errorf("%w: %q is no dimension in %q", ErrArg, w, text)
			}
			dims = append(dims, n)
		}
	}
	return NewShape(d, dims)
}
