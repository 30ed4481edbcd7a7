package export

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// wordsVersion is that of the layout of the words. aoti/internal/glue/c/glue.h describes it.
const wordsVersion = 5

// The first words, by their place in the glue's lx_plan.
const (
	wordVersion = iota
	wordLevels
	wordInputs
	wordOutputs
	wordConstants
	wordPlaces
	wordSteps
	wordReturned
	wordAssigned
	wordInputAt
	wordOutputAt
	wordConstantAt
	wordPlaceAt
	wordStepAt
	wordAssignedAt
	wordInSpec
	wordOutSpec
	wordWorkspace
	wordWeights
	wordWords
	wordSymbols
	wordSymbolAt
	wordPatches
	wordPatchAt
	wordFolds
	wordFoldAt
	wordFolded
	wordFunctions
	wordFunctionAt
	wordKernels
	wordKernelAt
	wordFaults
	wordFaultAt
	wordFaultPlace
	wordLiterals
	headWords
)

// Kinds of steps and of arguments, as in the glue.
const (
	stepKernel = 0
	stepCall   = 1
	stepLaunch = 2
	stepMove   = 3

	argInt = iota - 4
	argFloat
	argTensor
	argReturned
	argList
	argMemory
	argOptional
	argIgnored
	argText
	argShared
)

// levels says that there is code for AVX2 and for AVX-512, compiledLevels that there is one code for all.
const (
	levels         = 3
	compiledLevels = 1
)

// encoder writes a plan as words, texts and code.
type encoder struct {
	m         *model
	words     []int64
	text      []byte
	texts     map[string]int64
	literals  []byte
	compiled  bool // code is the source of functions, for a compiler
	code      []byte
	kernels   [][2]int64 // offsets of code, or numbers of functions
	images    []byte     // of a GPU's kernels
	functions []string
	tuning    map[int]tuning // by word
	titles    []title
	err       error
}

// tuning says that a word may be another than the sizes ask for.
type tuning uint8

const (
	roomy   tuning = iota + 1 // what it is for the largest sizes serves all
	anyWill                   // so does what it is for any, where it is no simple function of them
)

// title names the step whose words begin at a place.
type title struct {
	at   int
	text string
}

func newEncoder(m *model, compiled bool) *encoder {
	return &encoder{m: m, compiled: compiled, words: make([]int64, headWords), texts: map[string]int64{}, tuning: map[int]tuning{}}
}

func (e *encoder) bytes() []byte {
	b := make([]byte, 0, 8*len(e.words))
	for _, w := range e.words {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

func (e *encoder) put(words ...int64) { e.words = append(e.words, words...) }

// tuned puts words that may be others.
func (e *encoder) tuned(t tuning, words ...int64) {
	for _, w := range words {
		e.tuning[len(e.words)] = t
		e.put(w)
	}
}

// string returns where a text lies.
func (e *encoder) string(s string) int64 {
	at, ok := e.texts[s]
	if !ok {
		at = int64(len(e.text))
		e.texts[s] = at
		e.text = append(append(e.text, s...), 0)
	}
	return at
}

// dims puts the sizes of a shape and returns where.
func (e *encoder) dims(s ir.Shape) int64 {
	at := int64(len(e.words))
	for _, d := range s.Dims() {
		e.put(int64(d))
	}
	return at
}

func (e *encoder) dtype(d ir.DType, what string) int64 {
	code, ok := ahead.TypeCode(d)
	if !ok && e.err == nil {
		e.err = fmt.Errorf("%w: %s is %v, which packages cannot hold", ir.ErrDType, what, d)
	}
	return code
}

func (e *encoder) encode() error {
	m, h := e.m, [headWords]int64{}
	h[wordVersion], h[wordLevels] = wordsVersion, levels
	if e.compiled {
		h[wordLevels] = compiledLevels
	}
	h[wordInputs], h[wordOutputs], h[wordConstants] = int64(len(m.inputs)), int64(len(m.outputs)), int64(len(m.constants))
	h[wordPlaces], h[wordSteps], h[wordReturned] = int64(len(m.plan.Places)), int64(len(m.plan.Steps)), int64(m.plan.Returned)
	h[wordWorkspace], h[wordWeights] = int64(m.workspace), m.weights
	h[wordInSpec], h[wordOutSpec] = e.string(m.inSpec()), e.string(m.outSpec())
	h[wordInputAt] = e.list(m.inputs, e.param)
	h[wordOutputAt] = e.list(m.outputs, e.param)
	h[wordConstantAt] = e.list(m.constants, e.constant)
	numbersAt := e.literalBytes()
	h[wordPlaceAt] = int64(len(e.words))
	for _, p := range m.plan.Places {
		if p.Space == ahead.Param && m.sources[p.Index].kind == fromNumber {
			p = ahead.Place{Space: ahead.Literal, Offset: numbersAt + m.sources[p.Index].index}
		}
		if p.Space == ahead.Output {
			p = m.results[p.Index]
		}
		e.put(e.base(p))
		e.tuned(roomy, int64(p.Offset))
	}
	e.kernelCode()
	h[wordKernels], h[wordKernelAt] = int64(len(m.plan.GPU)), e.gpuKernels()
	h[wordFaults], h[wordFaultAt], h[wordFaultPlace] = int64(len(m.plan.Faults)), e.faults(), int64(m.plan.FaultsAt)
	h[wordLiterals] = int64(len(e.literals))
	h[wordFolds], h[wordFoldAt], h[wordFolded] = int64(len(m.plan.Folds)), int64(len(e.words)), int64(m.plan.FoldedBytes)
	for i := range m.plan.Folds {
		e.step(&m.plan.Folds[i])
	}
	h[wordStepAt] = int64(len(e.words))
	for i := range m.plan.Steps {
		e.step(&m.plan.Steps[i])
	}
	h[wordAssigned], h[wordAssignedAt] = int64(len(m.assigned)), e.assignments()
	if m.device == deviceCUDA {
		h[wordFunctions], h[wordFunctionAt] = int64(len(e.functions)), int64(len(e.words))
		for _, f := range e.functions {
			e.put(e.string(f))
		}
	}
	copy(e.words, h[:])
	e.tuning[wordWorkspace] = roomy
	return e.err
}

// literalBytes lays the numbers out that the plan knows, and returns where those of the model begin.
func (e *encoder) literalBytes() int {
	e.literals = e.m.plan.Literals
	for len(e.literals)%numberAlign != 0 {
		e.literals = append(e.literals, 0)
	}
	at := len(e.literals)
	e.literals = append(e.literals, e.m.numbers...)
	return at
}

// list puts records one after another, whose other parts come before them, and returns where.
func (e *encoder) list(params []param, record func(q *param) []int64) int64 {
	var all []int64
	for i := range params {
		all = append(all, record(&params[i])...)
	}
	at := int64(len(e.words))
	e.put(all...)
	return at
}

func (e *encoder) param(q *param) []int64 {
	return []int64{e.string(q.name), e.dtype(q.shape.DType(), q.name), int64(q.shape.Rank()), e.dims(q.shape)}
}

func (e *encoder) constant(q *param) []int64 {
	return []int64{
		e.string(q.name), e.string(q.fqn), e.dtype(q.shape.DType(), q.name), int64(q.shape.Rank()), e.dims(q.shape), q.offset, int64(len(q.data)), int64(q.kind()), bit(q.assigned),
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// assignments puts where values that runs assign lie and go, and returns where it put them.
func (e *encoder) assignments() int64 {
	var all []int64
	for _, a := range e.m.assigned {
		q, target := a.target(e.m)
		all = append(all, target, int64(a.at), e.dtype(q.shape.DType(), q.name), int64(q.shape.Rank()), e.dims(q.shape), int64(q.shape.Bytes()))
	}
	at := int64(len(e.words))
	e.put(all...)
	for i := range e.m.assigned {
		e.tuning[int(at)+assignedWords*i+1] = roomy
	}
	return at
}

// assignedWords is the number of words of an assignment.
const assignedWords = 6

// base returns the number of the memory of a place: inputs, constants, outputs, the workspace, the
// literals, folded constants and returned tensors, in this order.
func (e *encoder) base(p ahead.Place) int64 {
	outputs := len(e.m.inputs) + len(e.m.constants)
	work := outputs + len(e.m.outputs)
	switch p.Space {
	case ahead.Param:
		if q := e.m.sources[p.Index]; q.kind == fromConstant {
			return int64(len(e.m.inputs) + q.index)
		} else {
			return int64(q.index)
		}
	case ahead.Output:
		return int64(outputs + p.Index)
	case ahead.Literal:
		return int64(work + 1)
	case ahead.Folded:
		return int64(work + 2)
	case ahead.Returned:
		return int64(work + 3 + p.Index)
	}
	return int64(work)
}

// kernelCode lays the machine code of both levels out, or writes the source of all kernels.
func (e *encoder) kernelCode() {
	if e.compiled {
		e.kernelSource()
		return
	}
	add := func(text []byte) int64 {
		for len(e.code)%64 != 0 {
			e.code = append(e.code, 0)
		}
		e.code = append(e.code, text...)
		return int64(len(e.code) - len(text))
	}
	for _, k := range e.m.plan.Kernels {
		e.kernels = append(e.kernels, [2]int64{add(k.AVX2.Text), add(k.AVX512.Text)})
	}
}

// titled returns the text that names an op, with the user's line if there is one.
func titled(op, line string) string {
	if line == "" {
		return op
	}
	return op + " (at " + line + ")"
}

func (e *encoder) step(s *ahead.Step) {
	at := len(e.words)
	name := titled(s.Op, s.Line)
	e.titles = append(e.titles, title{at, name})
	put := func(kind int64) { e.put(kind, 0, e.string(name)) }
	switch {
	case s.Call != nil:
		put(stepCall)
		e.call(s.Call)
	case s.Launch != nil:
		put(stepLaunch)
		e.launch(s.Launch)
	case s.Copy != nil:
		put(stepMove)
		e.put(int64(s.Copy.To.Buf), int64(s.Copy.To.Offset), int64(s.Copy.From.Buf), int64(s.Copy.From.Offset), int64(s.Copy.Bytes))
	default:
		put(stepKernel)
		e.kernel(s)
		e.defined(s.Kernel, name)
	}
	e.words[at+1] = int64(len(e.words) - at)
}

func (e *encoder) kernel(s *ahead.Step) {
	n := s.Nest
	u := &n.Units
	rows, cols, parts := int64(n.Rows), int64(n.Cols), int64(0)
	switch {
	case u.RowParts:
		parts = int64(u.Rows)
	case u.ColParts:
		parts = -int64(u.Cols)
	}
	if n.Count() == 0 {
		rows = 0
	}
	var at [2]int64
	var spill [2]int64
	if s.Kernel < len(e.kernels) {
		k := &e.m.plan.Kernels[s.Kernel]
		at, spill = e.kernels[s.Kernel], [2]int64{int64(k.AVX2.Spill), int64(k.AVX512.Spill)}
		if e.compiled {
			spill = [2]int64{cxx.Spill, cxx.Spill}
		}
	}
	e.put(at[0], at[1], spill[0], spill[1])
	e.tuned(roomy, int64(n.Scratch))
	e.put(rows, cols)
	e.tuned(anyWill, int64(u.RowSize), int64(u.ColSize))
	e.put(parts)
	e.tuned(roomy, int64(s.Grain))
	e.put(int64(len(n.Outer)), int64(len(n.Args)))
	for _, o := range n.Outer {
		e.put(int64(o))
	}
	for i := range n.Args {
		a := &n.Args[i]
		place := int64(a.Buf)
		e.put(place, int64(a.Off), int64(a.Row), int64(a.Col), int64(a.Part))
		if a.Buf == loop.Private {
			e.words[len(e.words)-5] = -1
			e.tuning[len(e.words)-4] = roomy
		}
		for _, o := range a.Outer {
			e.put(int64(o))
		}
	}
}

func (e *encoder) call(c *ahead.Call) {
	n := slices.Index(e.functions, c.Function)
	if n < 0 {
		n = len(e.functions)
		e.functions = append(e.functions, c.Function)
	}
	e.put(int64(n), int64(len(c.Args)))
	for _, a := range c.Args {
		switch a := a.(type) {
		case ahead.Int:
			e.put(argInt, int64(a))
		case ahead.Float:
			e.put(argFloat, int64(math.Float64bits(float64(a))))
		case ahead.Text:
			e.put(argText, e.string(string(a)))
		case ahead.List:
			e.put(argList, int64(len(a)))
			e.put(a...)
		case ahead.Memory:
			e.put(argMemory, int64(a.Buf), int64(a.Offset))
		case ahead.Result:
			e.put(argReturned, int64(a.Index), e.dtype(a.DType, c.Function), int64(a.View.Rank))
			e.layout(&a.Tensor)
		case ahead.Ignored:
			e.put(argIgnored)
		case ahead.Tensor:
			kind := int64(argTensor)
			if e.shared(&a) {
				kind = argShared
			}
			e.tensor(kind, &a, c.Function)
		case ahead.Optional:
			e.tensor(argOptional, &a.Tensor, c.Function)
		}
	}
}

// shared reports whether a tensor is a view of a constant that no run assigns, of which a host may want
// to keep what it makes.
func (e *encoder) shared(t *ahead.Tensor) bool {
	p := e.m.plan.Places[t.Buf]
	if !t.Weights || p.Space != ahead.Param || e.m.sources[p.Index].kind != fromConstant {
		return false
	}
	return !e.m.constants[e.m.sources[p.Index].index].assigned
}

func (e *encoder) tensor(kind int64, t *ahead.Tensor, function string) {
	e.put(kind, int64(t.Buf), int64(t.View.Offset*t.DType.Size()), e.dtype(t.DType, function), int64(t.View.Rank))
	e.layout(t)
}

// layout puts the sizes and the strides of a view.
func (e *encoder) layout(t *ahead.Tensor) {
	for _, d := range t.View.Dims[:t.View.Rank] {
		e.put(int64(d))
	}
	for _, s := range t.View.Strides[:t.View.Rank] {
		e.put(int64(s))
	}
}
