package onnx

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/elements"
	program "github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// exportOpset is the opset that Export writes, and exportIR the version of the file format: the newest
// that runtimes of a year's age read.
const exportOpset, exportIR = 20, 9

// ExportOptions say what Export makes of a Program's parameters.
type ExportOptions struct {
	// Name is the name of the graph, that of the Program if empty.
	Name string
	// Constants are the values of those parameters that are weights, by the parameters' names. The
	// others are the model's inputs.
	Constants map[string]Constant
}

// Constant is the value of a weight: dense, row-major, little endian.
type Constant struct {
	Shape loris.Shape
	Data  []byte
}

// Export writes a Program as a model of ONNX, opset 20. Sizes are those of the Program's parameters.
// Composite ops without a counterpart in ONNX are written as what they are made of; ops that ONNX cannot
// say are one *UnsupportedError that names them all. Constants that are no parameter, or of another
// shape, are an error wrapping ir.ErrArg or ir.ErrShape. A file of more than 2 GiB, which no reader takes,
// is refused.
func Export(ctx context.Context, w io.Writer, p *program.Program, o ExportOptions) error {
	if err := ir.CheckContext("onnx", ctx); err != nil {
		return err
	}
	lowered, _ := program.Optimize(p, program.Options{Supports: func(op ir.Op) bool { return exportRows[op.String()] != nil }, Takes: takes})
	x := &exporter{p: lowered, g: &pb.Graph{Name: o.Name}}
	if x.g.Name == "" {
		x.g.Name = p.Name
	}
	if err := x.params(o.Constants); err != nil {
		return err
	}
	for i := range lowered.Instrs {
		x.instr(&lowered.Instrs[i])
	}
	if len(x.bad) > 0 {
		return &UnsupportedError{Path: "@" + p.Name, Items: x.bad}
	}
	for i, id := range lowered.Returns {
		// An output has a name of its own, also where it is an input or comes twice.
		name := fmt.Sprintf("out%d", i)
		x.node("Identity", []string{x.names[id]}, []string{name})
		x.g.Outputs = append(x.g.Outputs, x.info(name, lowered.Shape(id)))
	}
	b := pb.EncodeModel(&pb.Model{IRVersion: exportIR, Producer: "loris", Graph: x.g, Opsets: []pb.Opset{{Version: exportOpset}}})
	if len(b) > math.MaxInt32 {
		return fmt.Errorf("onnx: the model has %d bytes, readers take %d", len(b), math.MaxInt32)
	}
	_, err := w.Write(b)
	return err
}

// takes reports whether ONNX has a use of a composite: some have it for plain arguments only.
func takes(a ir.Args) bool {
	row := exportRows[a.Spec.Op.String()]
	return row != nil && (row.takes == nil || row.takes(a))
}

// exporter writes the graph of a Program.
type exporter struct {
	p     *program.Program
	g     *pb.Graph
	names []string // by ID
	count int      // of names made up
	bad   []string
}

// exportRow says how an op is written.
type exportRow struct {
	takes func(a ir.Args) bool // of a composite; nil: all uses
	write func(x *exportCall) []string
}

// exportCall is an instruction that is being written.
type exportCall struct {
	*exporter
	a    ir.Args
	in   []string
	outs []ir.Shape
}

// onnxType is the element type of a dtype.
func onnxType(d ir.DType) int64 { return int64(elemOf(d)) }

func (x *exporter) info(name string, s ir.Shape) *pb.ValueInfo {
	t := &pb.Type{Kind: pb.KindTensor, DType: onnxType(s.DType()), HasShape: true}
	for _, d := range s.Dims() {
		t.Shape = append(t.Shape, pb.Dim{Size: int64(d), HasSize: true})
	}
	return &pb.ValueInfo{Name: name, Type: t}
}

// params makes inputs and initialisers of the parameters.
func (x *exporter) params(constants map[string]Constant) error {
	x.names = make([]string, len(x.p.Shapes))
	used := map[string]bool{}
	for i, q := range x.p.Params {
		if used[q.Name] || q.Name == "" {
			return fmt.Errorf("onnx: %w: there are two parameters %q, or one without a name", ir.ErrArg, q.Name)
		}
		x.names[i], used[q.Name] = q.Name, true
		v, constant := constants[q.Name]
		if !constant {
			x.g.Inputs = append(x.g.Inputs, x.info(q.Name, q.Shape))
			continue
		}
		if v.Shape != q.Shape || len(v.Data) != q.Shape.Bytes() {
			return fmt.Errorf("onnx: %w: constant %q is %v with %d bytes, the Program takes %v", ir.ErrShape, q.Name, v.Shape, len(v.Data), q.Shape)
		}
		x.g.Initializers = append(x.g.Initializers, tensorOf(q.Name, q.Shape, v.Data))
	}
	for name := range constants {
		if !used[name] {
			return fmt.Errorf("onnx: %w: constant %q is no parameter of the Program", ir.ErrArg, name)
		}
	}
	return nil
}

func tensorOf(name string, s ir.Shape, data []byte) *pb.Tensor {
	t := &pb.Tensor{Name: name, DType: onnxType(s.DType()), Raw: data, HasRaw: true}
	for _, d := range s.Dims() {
		t.Dims = append(t.Dims, int64(d))
	}
	return t
}

// instr writes one instruction, or notes that it cannot.
func (x *exporter) instr(in *program.Instr) {
	a := x.p.Args(in)
	outs := x.p.Outs(in)
	row := exportRows[in.Op.String()]
	if row == nil {
		x.note(in, "")
		return
	}
	call := &exportCall{exporter: x, a: a, outs: outs}
	for _, id := range in.Args {
		if !x.p.Shape(id).DType().Valid() || onnxType(x.p.Shape(id).DType()) == 0 {
			x.note(in, fmt.Sprintf(" of %v", x.p.Shape(id).DType()))
		}
		call.in = append(call.in, x.names[id])
	}
	names := row.write(call)
	if names == nil {
		x.note(in, " with these arguments")
		return
	}
	for i, name := range names {
		x.names[int(in.Out)+i] = name
	}
}

func (x *exporter) note(in *program.Instr, what string) {
	item := in.Op.String() + what
	if line := ir.FormatLine(in.Line); line != "" {
		item += " (at " + line + ")"
	}
	if !slices.Contains(x.bad, item) {
		x.bad = append(x.bad, item)
	}
}

func (x *exporter) node(op string, in, out []string, attrs ...*pb.Attribute) {
	x.g.Nodes = append(x.g.Nodes, &pb.Node{Name: fmt.Sprintf("%s_%d", op, len(x.g.Nodes)), OpType: op, Inputs: in, Outputs: out, Attributes: attrs})
}

func (x *exporter) fresh() string {
	x.count++
	return fmt.Sprintf("_v%d", x.count)
}

// emit writes a node with one output and returns its name.
func (x *exporter) emit(op string, in []string, attrs ...*pb.Attribute) string {
	name := x.fresh()
	x.node(op, in, []string{name}, attrs...)
	return name
}

// constant writes elements as an initialiser.
func (x *exporter) constant(s ir.Shape, data []byte) string {
	name := x.fresh()
	x.g.Initializers = append(x.g.Initializers, tensorOf(name, s, data))
	return name
}

func (x *exporter) ints(v ...int) string {
	wide := make([]int64, len(v))
	for i, n := range v {
		wide[i] = int64(n)
	}
	return x.constant(ir.MakeShape(ir.I64, len(v)), elements.EncodeInts(ir.I64, wide))
}

// number writes a number of a dtype.
func (x *exporter) number(d ir.DType, v float64) string {
	return x.constant(ir.MakeShape(d), elements.AppendNumber(nil, d, v))
}

// cast writes a conversion, unless the name has the dtype.
func (x *exporter) cast(name string, from, to ir.DType) string {
	if from == to {
		return name
	}
	return x.emit("Cast", []string{name}, attrInt("to", int(onnxType(to))))
}

func attrInt(name string, v int) *pb.Attribute {
	return &pb.Attribute{Name: name, Type: pb.AttrInt, I: int64(v)}
}

func attrBool(name string, v bool) *pb.Attribute {
	if v {
		return attrInt(name, 1)
	}
	return attrInt(name, 0)
}

func attrFloat(name string, v float64) *pb.Attribute {
	return &pb.Attribute{Name: name, Type: pb.AttrFloat, F: float32(v)}
}

func attrText(name, v string) *pb.Attribute {
	return &pb.Attribute{Name: name, Type: pb.AttrString, S: v}
}

func attrInts(name string, v ...int) *pb.Attribute {
	a := &pb.Attribute{Name: name, Type: pb.AttrInts}
	for _, n := range v {
		a.Ints = append(a.Ints, int64(n))
	}
	return a
}

// dtype returns the dtype of operand i.
func (x *exportCall) dtype(i int) ir.DType { return x.a.In[i].DType() }

func (x *exportCall) rank(i int) int { return x.a.In[i].Rank() }
