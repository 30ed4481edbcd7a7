package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// ErrKernel is wrapped by the errors of Validate.
var ErrKernel = errors.New("the kernel is malformed")

// compute lists the dtypes that values can have.
var compute = map[ir.DType]bool{
	ir.Bool: true, ir.U8: true, ir.I8: true, ir.I16: true, ir.I32: true, ir.I64: true, ir.F32: true, ir.F64: true,
}

// ComputeDType returns the dtype of a loaded element: f32 for the floats that
// are narrower, the storage dtype itself otherwise.
func ComputeDType(d ir.DType) ir.DType {
	switch d {
	case ir.F16, ir.BF16, ir.F8E4M3FN, ir.F8E5M2:
		return ir.F32
	}
	return d
}

// Result returns the dtype of an instruction's result: its DType, but f32 for Round, whose DType is
// that to which it rounds.
func (in *Instr) Result() ir.DType {
	if in.Code == Round {
		return ir.F32
	}
	return in.DType
}

// checker is the state of Validate: which values may be used at the present instruction.
type checker struct {
	k       *Kernel
	defined []bool // in the present Body or Final, or for all later passes
	listed  []bool
}

// Validate returns an error that wraps ErrKernel unless k is well formed: every
// instruction is in one list at most, uses only what is known by then and has
// operands of the right number and dtypes. Consts may be used without being
// listed.
func (k *Kernel) Validate() error {
	if len(k.Args) > MaxArgs {
		return fmt.Errorf("%w: %d operands, at most %d", ErrKernel, len(k.Args), MaxArgs)
	}
	c := checker{k, make([]bool, len(k.Instrs)), make([]bool, len(k.Instrs))}
	for i := range k.Instrs {
		c.defined[i] = k.Instrs[i].Code == Const
	}
	for i := range k.Args {
		if why := k.choice(i); why != "" {
			return fmt.Errorf("%w: operand %d: %s", ErrKernel, i, why)
		}
	}
	for p := range k.Passes {
		if err := c.pass(&k.Passes[p]); err != nil {
			return fmt.Errorf("%w: pass %d: %w", ErrKernel, p, err)
		}
	}
	return nil
}

// choice returns what is wrong with the index of an operand, or "".
func (k *Kernel) choice(arg int) string {
	a := &k.Args[arg]
	if a.By == 0 {
		return ""
	}
	if a.By < 0 || int(a.By) > len(k.Args) || a.Write && k.Axis != None {
		return "there is no such index, or it chooses what is written beside a reduction"
	}
	if by := &k.Args[a.By-1]; by.DType != ir.I64 || by.Cols != Fixed || by.Write || by.By != 0 {
		return "an index is an i64 that is fixed along columns"
	}
	return ""
}

// Indexes reports whether an operand is the index of another.
func (k *Kernel) Indexes(arg int) bool {
	return slices.ContainsFunc(k.Args, func(a Arg) bool { return int(a.By) == arg+1 })
}

func (c *checker) pass(p *Pass) error {
	var reduced []Value
	for _, v := range p.Body {
		if err := c.instr(v, false); err != nil {
			return err
		}
		if c.k.Instrs[v].Code == Reduce {
			reduced = append(reduced, v)
			continue // known after the pass
		}
		c.defined[v] = true
	}
	for _, v := range p.Body {
		c.defined[v] = c.k.Instrs[v].Code == Const
	}
	for _, v := range reduced {
		c.defined[v] = true
	}
	if c.k.Axis == None && len(p.Final) > 0 {
		return errors.New("a Final without an axis")
	}
	for _, v := range p.Final {
		if err := c.instr(v, true); err != nil {
			return err
		}
		c.defined[v] = true
	}
	return nil
}

func (c *checker) instr(v Value, final bool) error {
	if v < 0 || int(v) >= len(c.k.Instrs) {
		return fmt.Errorf("there is no instruction %d", v)
	}
	in := &c.k.Instrs[v]
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%%%d: "+format, append([]any{v}, args...)...)
	}
	if c.listed[v] {
		return fail("listed twice")
	}
	c.listed[v] = true
	for _, o := range in.In[:in.N] {
		if o < 0 || int(o) >= len(c.defined) || !c.defined[o] {
			return fail("%%%d is not known here", o)
		}
	}
	if in.Code != Store && in.Code != Round && !compute[in.DType] {
		return fail("%v is no compute dtype", in.DType)
	}
	if (in.Code == Load || in.Code == Store) && in.Arg >= 0 && in.Arg < len(c.k.Args) && (c.k.Indexes(in.Arg) || final && c.k.Args[in.Arg].By > 0) {
		return fail("operand %d is an index, or has one in a Final", in.Arg)
	}
	if why := c.operands(in, final); why != "" {
		return fail("%s", why)
	}
	return nil
}

// operands returns what is wrong with the operands of an instruction, or "".
func (c *checker) operands(in *Instr, final bool) string {
	switch in.Code {
	case Load, Store:
		return c.access(in)
	case Index, Const:
		if in.N != 0 || (in.Code == Index && (in.DType != ir.I64 || final)) {
			return "an Index is an i64 of a Body and takes no operands"
		}
	case Round:
		if in.N != 1 || c.dtype(in.In[0]) != ir.F32 || ComputeDType(in.DType) != ir.F32 {
			return "a Round takes an f32 to a narrower float"
		}
	case Reduce:
		if in.N != 1 || final || c.k.Axis == None || reductions[in.Op] == nil {
			return "a Reduce takes one operand, is in a Body and needs an axis"
		}
		if in.Bits != 0 && (in.Bits != NarrowSum || in.Op != aten.Sum || in.DType != ir.F32) {
			return "only a sum of f32s may be narrow"
		}
	case Apply:
		return c.apply(in)
	default:
		return "no such code"
	}
	return ""
}

func (c *checker) dtype(v Value) ir.DType { return c.k.Instrs[v].Result() }

func (c *checker) access(in *Instr) string {
	if in.Arg < 0 || in.Arg >= len(c.k.Args) {
		return "there is no such operand in memory"
	}
	d := ComputeDType(c.k.Args[in.Arg].DType)
	switch {
	case in.Code == Load && (in.N != 0 || in.DType != d):
		return "a Load takes no operands and has the dtype of the memory"
	case in.Code == Store && (in.N != 1 || c.dtype(in.In[0]) != d):
		return "a Store takes a value of the dtype of the memory"
	case in.Code == Store && !c.k.Args[in.Arg].Write:
		return "the operand is not for writing"
	}
	return ""
}

func (c *checker) apply(in *Instr) string {
	sp := in.Op.Spec()
	if sp == nil || sp.Category != ir.Pointwise || sp.Composite() {
		return "not a pointwise primitive"
	}
	if in.Op == aten.Cast {
		if in.N != 1 {
			return "a cast takes one operand"
		}
		return ""
	}
	if int(in.N) != len(sp.Schema.Params) {
		return "the wrong number of operands"
	}
	d := c.dtype(in.In[in.N-1])
	for i, o := range in.In[:in.N] {
		want := d
		if in.Op == aten.Where && i == 0 {
			want = ir.Bool
		}
		if c.dtype(o) != want {
			return fmt.Sprintf("operand %d is %v, not %v", i, c.dtype(o), want)
		}
	}
	if sp.Predicate {
		d = ir.Bool
	}
	if in.DType != d {
		return fmt.Sprintf("gives %v, not %v", d, in.DType)
	}
	return ""
}

var axisNames = [...]string{"none", "columns", "rows", "both"}

// String returns the axis in lower case.
func (a Axis) String() string { return axisNames[a] }

var strideNames = [...]string{"fixed", "unit", "free"}

// String returns the stride in lower case.
func (s Stride) String() string { return strideNames[s] }

// String lists the kernel, one instruction a line.
func (k *Kernel) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel axis=%v", k.Axis)
	if k.Planes {
		b.WriteString(" planes")
	}
	b.WriteByte('\n')
	for i, a := range k.Args {
		fmt.Fprintf(&b, "  arg%d %v %v", i, a.DType, a.Cols)
		if a.Write {
			b.WriteString(" write")
		}
		if a.Stream {
			b.WriteString(" stream")
		}
		if a.Ahead {
			b.WriteString(" ahead")
		}
		if a.By > 0 {
			fmt.Fprintf(&b, " by arg%d", a.By-1)
		}
		if a.Moves {
			b.WriteString(" moves")
		}
		b.WriteByte('\n')
	}
	for i, p := range k.Passes {
		fmt.Fprintf(&b, "  pass %d\n", i)
		k.list(&b, "body", p.Body)
		k.list(&b, "final", p.Final)
	}
	return b.String()
}

func (k *Kernel) list(b *strings.Builder, name string, vs []Value) {
	for _, v := range vs {
		fmt.Fprintf(b, "    %-5s ", name)
		in := &k.Instrs[v]
		if in.Code != Store {
			fmt.Fprintf(b, "%%%d %v = ", v, in.DType)
		}
		switch in.Code {
		case Load:
			fmt.Fprintf(b, "load arg%d", in.Arg)
		case Const:
			fmt.Fprintf(b, "const %#x", in.Bits)
		case Index:
			b.WriteString("index")
		case Apply:
			b.WriteString(in.Op.String())
		case Round:
			b.WriteString("round")
		case Reduce:
			fmt.Fprintf(b, "reduce %v", in.Op)
			if in.Bits == NarrowSum {
				b.WriteString(" narrow")
			}
		case Store:
			fmt.Fprintf(b, "store arg%d", in.Arg)
		}
		for _, o := range in.In[:in.N] {
			fmt.Fprintf(b, " %%%d", o)
		}
		b.WriteByte('\n')
	}
}
