package pt2

import (
	"bytes"
	"math"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// ParseSource reads what the generated C++ source of a model says of its inputs,
// outputs and constants. It understands the sources of PyTorch 2.6 to 2.15; lines
// that it does not know are passed over, so what a newer one writes in another
// way is missing from the result. Time and memory are bounded by the size of the
// source.
func ParseSource(src []byte) *Spec {
	p := &sourceParser{spec: &Spec{}, inputs: map[string]int{}, constants: map[string]int{}, symbols: map[string]int{}}
	for len(src) > 0 {
		line, rest, _ := bytes.Cut(src, []byte("\n"))
		src = rest
		p.line(string(bytes.TrimSpace(clip(line))))
	}
	p.finish()
	return p.spec
}

// Bounds on what a source can ask for.
const (
	// maxLine is what is looked at of one line; metadata of packed weights is long.
	maxLine      = 256 << 10
	maxInputs    = 4096
	maxOutputs   = 1 << 16
	maxConstants = 1 << 17
	maxDims      = 64 // of an input
)

func clip(line []byte) []byte { return line[:min(len(line), maxLine)] }

type sourceParser struct {
	spec      *Spec
	inputs    map[string]int // by name
	constants map[string]int // by name
	symbols   map[string]int // by name
	in, out   strings.Builder
	call      *strings.Builder // in or out: the call spec that is spread over lines
}

// line reads one line without the space around it.
func (p *sourceParser) line(s string) {
	if p.call != nil {
		p.callLine(s)
		return
	}
	switch {
	case strings.HasPrefix(s, "constants_info_["):
		p.constant(s[len("constants_info_["):])
	case strings.HasPrefix(s, "inputs_info_["):
		if i, field, value, ok := entry(s[len("inputs_info_["):]); ok && field == "name" {
			if i == len(p.spec.Inputs) && i < maxInputs {
				name := unquote(value)
				p.spec.Inputs = append(p.spec.Inputs, InputSpec{Name: name})
				p.inputs[name] = i
			}
		}
	case strings.HasPrefix(s, "outputs_info_["):
		if i, field, value, ok := entry(s[len("outputs_info_["):]); ok && field == "name" && i == len(p.spec.Outputs) && i < maxOutputs {
			p.spec.Outputs = append(p.spec.Outputs, unquote(value))
		}
	case strings.HasPrefix(s, "in_spec_ ="):
		p.call = &p.in
		p.callLine(strings.TrimPrefix(s, "in_spec_ ="))
	case strings.HasPrefix(s, "out_spec_ ="):
		p.call = &p.out
		p.callLine(strings.TrimPrefix(s, "out_spec_ ="))
	case strings.HasPrefix(s, "if (") && strings.HasSuffix(s, ") {"):
		p.check(s[len("if (") : len(s)-len(") {")])
	case strings.HasPrefix(s, "int32_t "):
		p.expected(s[len("int32_t "):])
	case strings.HasPrefix(s, "int64_t "):
		p.bind(s[len("int64_t "):])
	case strings.Contains(s, "assert_size_stride("):
		_, args, _ := strings.Cut(s, "assert_size_stride(")
		p.assert(args)
	default:
		p.noteUses(s)
	}
}

// callLine reads one line of a call spec: a literal, raw or not, several of which
// make one, up to the semicolon.
func (p *sourceParser) callLine(s string) {
	s = strings.TrimSpace(s)
	end := strings.HasSuffix(s, ";")
	s = strings.TrimSpace(strings.TrimSuffix(s, ";"))
	if raw, ok := strings.CutPrefix(s, `R"(`); ok {
		p.call.WriteString(strings.TrimSuffix(raw, `)"`))
	} else {
		p.call.WriteString(unquote(s))
	}
	if end {
		p.call = nil
	}
}

// entry splits `3].name = "x";` into its parts.
func entry(s string) (index int, field, value string, ok bool) {
	num, rest, ok1 := strings.Cut(s, "].")
	field, value, ok2 := strings.Cut(rest, " = ")
	n, ok3 := parseNumber(num)
	if !ok1 || !ok2 || !ok3 || n < 0 || n > math.MaxInt32 {
		return 0, "", "", false
	}
	return int(n), strings.TrimSpace(field), strings.TrimSuffix(strings.TrimSpace(value), ";"), true
}

// unquote reads a C string literal; what is none is returned as it is.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// constant reads one field of one constant. Entries come in order, the name
// first.
func (p *sourceParser) constant(s string) {
	i, field, value, ok := entry(s)
	if !ok || i > len(p.spec.Constants) || i >= maxConstants {
		return
	}
	if i == len(p.spec.Constants) {
		if field != "name" {
			return
		}
		p.spec.Constants = append(p.spec.Constants, ConstantSpec{ReadOnly: true})
	}
	c := &p.spec.Constants[i]
	switch field {
	case "name":
		c.Name = unquote(value)
		p.constants[c.Name] = i
	case "original_fqn":
		c.OriginalName = unquote(value)
	case "dtype":
		c.TypeName = afterLast(value, "torch_dtype_")
	case "device_type":
		c.Device = afterLast(value, "device_type_")
	case "offset":
		c.Offset, _ = parseNumber(value)
	case "data_size":
		c.Bytes, _ = parseNumber(value)
	case "from_folded":
		c.FromFolded = value == "true"
	case "type":
		c.Type = constantType(value)
	case "shape":
		c.Sizes = numbers(value)
	case "stride":
		c.Strides = numbers(value)
	case "opaque_metadata":
		for _, n := range numbers(value) {
			c.Opaque = append(c.Opaque, byte(n))
		}
	}
}

// afterLast returns the word that follows the last mark in s.
func afterLast(s, mark string) string {
	i := strings.LastIndex(s, mark)
	if i < 0 {
		return ""
	}
	s = s[i+len(mark):]
	end := 0
	for end < len(s) && wordByte(s[end]) {
		end++
	}
	return s[:end]
}

func constantType(value string) backend.ConstantType {
	switch afterLast(value, "ConstantType::") {
	case "Parameter":
		return backend.ConstantParameter
	case "Buffer":
		return backend.ConstantBuffer
	case "TensorConstant":
		return backend.ConstantTensor
	case "FoldedConstant":
		return backend.ConstantFolded
	}
	return backend.ConstantUnknown
}

// numbers reads "{8L, 64L}"; nil if anything in it is no number.
func numbers(s string) []int64 {
	list := braces(s)
	out := make([]int64, 0, len(list))
	for _, part := range list {
		n, ok := parseNumber(part)
		if !ok {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// braces splits "{a, b}" at its commas.
func braces(s string) []string {
	s = strings.TrimSpace(s)
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(s[1:len(s)-1], ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// dim returns the dimension of the input that "arg0_1_size[2]" names, with what
// is before the bracket after the input's name ("size" or "stride").
func (p *sourceParser) dim(s string) (d *DimSpec, kind string, ok bool) {
	s, ok1 := strings.CutSuffix(s, "]")
	name, index, ok2 := strings.Cut(s, "[")
	n, ok3 := parseNumber(index)
	i := strings.LastIndexByte(name, '_')
	if !ok1 || !ok2 || !ok3 || i < 0 || n < 0 || n >= maxDims {
		return nil, "", false
	}
	in, ok := p.inputs[name[:i]]
	if !ok {
		return nil, "", false
	}
	p.grow(in, int(n)+1)
	return &p.spec.Inputs[in].Dims[n], name[i+1:], true
}

// grow gives an input at least n dimensions, of any size.
func (p *sourceParser) grow(input, n int) {
	in := &p.spec.Inputs[input]
	for in.Known = true; len(in.Dims) < n; {
		in.Dims = append(in.Dims, DimSpec{Max: -1})
	}
}

// check reads the condition of a generated check: "8 != x_size[0]",
// "x_size[0] < 2", "x_size[0] > 16" or "1 != x_stride[1]".
func (p *sourceParser) check(cond string) {
	l, r, ok := strings.Cut(cond, " != ")
	if ok {
		n, isNum := parseNumber(l)
		d, kind, found := p.dim(r)
		switch {
		case !isNum || !found:
		case kind == "size":
			d.Min, d.Max, d.Size = n, n, l
			d.size = &expr{op: 'n', n: n}
		case kind == "stride":
			d.Stride, d.stride = l, &expr{op: 'n', n: n}
		}
		return
	}
	for _, op := range []string{" < ", " > "} {
		l, r, ok := strings.Cut(cond, op)
		n, isNum := parseNumber(r)
		if !ok || !isNum {
			continue
		}
		d, kind, found := p.dim(l)
		switch {
		case !found || kind != "size":
		case op == " > ":
			if n != math.MaxInt64 {
				d.Max = n
			}
		case n == 2:
			d.AtMostTwo = true
		default:
			d.Min = n
		}
	}
}

// expected reads `x_expected_dtype = aoti_torch_dtype_float32();` and
// `x_expected_device_type = 0;`.
func (p *sourceParser) expected(s string) {
	l, r, ok := strings.Cut(strings.TrimSuffix(s, ";"), " = ")
	if !ok {
		return
	}
	if name, ok := strings.CutSuffix(l, "_expected_dtype"); ok {
		if i, ok := p.inputs[name]; ok {
			p.spec.Inputs[i].TypeName = afterLast(r, "torch_dtype_")
			p.grow(i, 0)
		}
	}
	if name, ok := strings.CutSuffix(l, "_expected_device_type"); ok {
		if i, ok := p.inputs[name]; ok {
			p.spec.Inputs[i].Device = deviceName(r)
		}
	}
}

// deviceName returns the name of a device type's number (c10/core/DeviceType.h).
func deviceName(number string) string {
	switch number {
	case "0":
		return "cpu"
	case "1":
		return "cuda"
	case "12":
		return "xpu"
	case "13":
		return "mps"
	}
	return "device type " + printable(number)
}

// bind reads `s0 = x_size[1];`, `s0 = x.sizes()[1];` and `s1 = s0;`. What comes
// first is taken; sources repeat names in other scopes only.
func (p *sourceParser) bind(s string) {
	name, value, ok := strings.Cut(strings.TrimSuffix(s, ";"), " = ")
	if !ok || !isSymbol(name) {
		return
	}
	if _, ok := p.symbols[name]; ok || len(p.symbols) == maxInputs {
		return
	}
	value = strings.Replace(value, ".sizes()[", "_size[", 1)
	sym := symbol{name: name, input: -1, same: -1}
	if same, ok := p.symbols[value]; ok {
		sym.same = same
	} else if _, kind, ok := p.dim(value); ok && kind == "size" {
		input, index, _ := strings.Cut(value, "_size[")
		n, _ := parseNumber(strings.TrimSuffix(index, "]"))
		sym.input, sym.dim = p.inputs[input], int(n)
	}
	p.symbols[name] = len(p.spec.symbols)
	p.spec.symbols = append(p.spec.symbols, sym)
}

// isSymbol reports whether a name is that of a dynamic size: s0, s77, u0.
func isSymbol(name string) bool {
	if len(name) < 2 || len(name) > 20 || name[0] != 's' && name[0] != 'u' {
		return false
	}
	for i := 1; i < len(name); i++ {
		if !digit(name[i]) {
			return false
		}
	}
	return true
}

// assert reads `x, {s0, 8L}, {8L, 1L}, "input"); }`, which sources from 2.15 on
// have for each input, with all sizes and strides.
func (p *sourceParser) assert(args string) {
	name, rest, ok := strings.Cut(args, ", {")
	i, isInput := p.inputs[name]
	sizes, rest, ok2 := strings.Cut(rest, "}, {")
	strides, rest, ok3 := strings.Cut(rest, "}")
	if !ok || !isInput || !ok2 || !ok3 || !strings.HasPrefix(rest, `, "input"`) && !strings.HasPrefix(rest, ")") {
		return
	}
	size, stride := braces("{"+sizes+"}"), braces("{"+strides+"}")
	if len(size) != len(stride) || len(size) > maxDims {
		return
	}
	p.grow(i, len(size))
	dims := p.spec.Inputs[i].Dims
	if len(dims) != len(size) {
		return
	}
	symbol := func(name string) (int, bool) { i, ok := p.symbols[name]; return i, ok }
	for d := range dims {
		if e := parseExpr(size[d], symbol); e != nil {
			dims[d].size, dims[d].Size = e, plain(size[d])
			if e.op == 'n' {
				dims[d].Min, dims[d].Max = e.n, e.n
			}
		}
		if e := parseExpr(stride[d], symbol); e != nil {
			dims[d].stride, dims[d].Stride = e, plain(stride[d])
		}
	}
}

// plain drops the suffixes of numbers: "8L*s0" becomes "8*s0".
func plain(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] == 'L' && i > 0 && digit(s[i-1]) {
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// finish fills in what follows from the rest.
func (p *sourceParser) finish() {
	p.spec.InSpec, p.spec.OutSpec = p.in.String(), p.out.String()
	for i, sym := range p.spec.symbols {
		if sym.input < 0 {
			continue
		}
		// A size that no line says more about stands for itself.
		if dim := &p.spec.Inputs[sym.input].Dims[sym.dim]; dim.size == nil {
			dim.size, dim.Size = &expr{op: 's', sym: i}, sym.name
		}
	}
	points := samplePoints(p.spec.symbols)
	for i := range p.spec.Inputs {
		in := &p.spec.Inputs[i]
		in.DType = torchDTypes[in.TypeName]
		in.RowMajor = in.rowMajor(points)
	}
	for i := range p.spec.Constants {
		c := &p.spec.Constants[i]
		if c.FromFolded || len(c.Strides) == len(c.Sizes) { // nobody gives a folded one
			c.Shape = constantShape(torchDTypes[c.TypeName], c.Sizes)
		}
	}
}

// constantShape returns the shape of a constant; the zero Shape if it can't be
// one.
func constantShape(d ir.DType, sizes []int64) ir.Shape {
	dims := make([]int, 0, len(sizes))
	for _, n := range sizes {
		if n < 0 || n > math.MaxInt32 {
			return ir.Shape{}
		}
		dims = append(dims, int(n))
	}
	s, err := ir.NewShape(d, dims)
	if err != nil {
		return ir.Shape{}
	}
	return s
}
